//! Least privilege: over all seeds, what a function asks for is what `template.yaml` allows it, no less and no more.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_local::Template;
use fanfold_simulation::{Stats, run};
use serde_json::Value;

use crate::runs;

/// Seeds that are run at most to see what few runs do.
const MORE_SEEDS: u64 = 400;

/// Function, action, resource.
type Permission = (String, String, String);

/// The function whose code a step of the simulation is; none for what only the local runner does.
fn function(step: &str) -> Option<&'static str> {
    match step {
        "api" => Some("ApiFunction"),
        "register" => Some("RegisterFunction"),
        "elect" => Some("ElectFunction"),
        "group" => Some("GroupFunction"),
        "handle" => Some("HandleFunction"),
        "ack" | "ack http" => Some("AckFunction"),
        "notify" => Some("NotifyFunction"),
        "sweep" => Some("SweepFunction"),
        _ => None,
    }
}

fn one_or_many(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |values| values.iter().collect())
}

/// The resource that a statement names: a table, its index, a queue.
fn resource(value: &Value) -> String {
    let text = value["Fn::GetAtt"].as_str().or(value["Fn::Sub"].as_str());
    let text = text.unwrap_or_else(|| panic!("{value} names no resource of the stack"));
    text.replace("${", "").replace('}', "").replace(".Arn", "")
}

/// What the template grants.
fn granted() -> BTreeSet<Permission> {
    let template = Template::document(include_str!("../../../../template.yaml")).unwrap();
    let resources: BTreeMap<String, Value> = serde_json::from_value(template["Resources"].clone()).unwrap();
    let mut granted = BTreeSet::new();
    for (name, function) in resources.iter().filter(|(_, it)| it["Type"] == "AWS::Serverless::Function") {
        let policies = function["Properties"]["Policies"].as_array().unwrap();
        for statement in policies.iter().flat_map(|policy| policy["Statement"].as_array().unwrap()) {
            // What is denied takes from what SAM grants by itself: see tests/tests/template.rs.
            if statement["Effect"] == "Deny" {
                continue;
            }
            for action in one_or_many(&statement["Action"]) {
                let action = action.as_str().unwrap();
                assert!(!action.contains('*'), "{name} is allowed {action}");
                for target in one_or_many(&statement["Resource"]) {
                    let target = resource(target);
                    assert!(!target.contains('*'), "{name} is allowed {action} on {target}");
                    granted.insert((name.clone(), action.to_owned(), target));
                }
            }
        }
    }
    granted
}

/// What functions did.
fn used(stats: &Stats) -> BTreeSet<Permission> {
    let actions = stats.actions.iter();
    let of_functions = actions.filter_map(|(step, action, on)| Some((function(step)?, action, on)));
    of_functions.map(|(function, action, on)| (function.to_owned(), action.clone(), on.clone())).collect()
}

#[test]
fn functions_are_allowed_what_they_do_and_nothing_else() {
    let granted = granted();
    let mut used = used(&runs().stats);
    // Some requests are made in few runs only: more are run until all were seen.
    let mut seed = runs().count;
    while !granted.is_subset(&used) && seed < runs().count + MORE_SEEDS {
        seed += 1;
        used.extend(self::used(&run(seed).unwrap().stats));
    }
    let missing: Vec<&Permission> = used.difference(&granted).collect();
    assert!(missing.is_empty(), "the template does not allow {missing:?}");
    let spare: Vec<&Permission> = granted.difference(&used).collect();
    assert!(spare.is_empty(), "no function used {spare:?} in {seed} seeds");
}
