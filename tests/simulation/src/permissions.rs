//! Least privilege: what functions ask for is what `template.yaml` allows them, no less; over thousands of seeds also no more.

use std::collections::BTreeSet;

use fanfold_local::Template;
use serde_json::Value;

use crate::run::TEMPLATE;
use crate::stats::Stats;

/// Function, action, resource.
pub type Permission = (String, String, String);

/// What hardly a seed reaches, if one does: a deployed sweep looks after bundles that wait for weeks, as `tests/tests/it/bundles.rs`
/// has them do; the end of a source may decide that a fan-out failed, as in `tests/tests/it/producers/failures.rs`, and so may the
/// ack of a duplicate, if the worker that acked the last failure died. Nobody moves dead letters back here, or resets all that failed
/// in a scope, but `tests/tests/it/control` does.
const SELDOM: [(&str, &str, &str); 7] = [
    ("SweepFunction", "dynamodb:BatchGetItem", "TasksTable"),
    ("SweepFunction", "dynamodb:PartiQLUpdate", "TasksTable"),
    ("ProduceFunction", "dynamodb:Query", "GroupsTable/index/open"),
    ("RegisterFunction", "dynamodb:Query", "GroupsTable/index/open"),
    ("ApiFunction", "dynamodb:Scan", "BatchesTable"),
    ("ApiFunction", "sqs:SendMessage", "RegisterQueue"),
    ("ApiFunction", "sqs:SendMessage", "AckQueue"),
];

/// How what functions did differs from what they may do.
#[derive(Debug)]
pub struct Permissions {
    /// Done, and not granted.
    pub missing: Vec<Permission>,
    /// Granted, and never used.
    pub spare: Vec<Permission>,
}

impl Permissions {
    /// Compares what functions did with what the template grants.
    ///
    /// # Errors
    /// The template grants something that is no action on one resource of the stack.
    pub fn compare(stats: &Stats) -> Result<Self, String> {
        let (granted, used) = (granted()?, used(stats));
        let missing = used.difference(&granted).cloned().collect();
        let seldom = |(function, action, on): &&Permission| {
            SELDOM.contains(&(function, action, on)) || on.ends_with("DeadLetterQueue") && function == "ApiFunction"
        };
        Ok(Self { missing, spare: granted.difference(&used).filter(|it| !seldom(it)).cloned().collect() })
    }
}

/// The function whose code a step of the simulation is; none for what only the local runner does.
fn function(step: &str) -> Option<&'static str> {
    match step {
        "api" => Some("ApiFunction"),
        "produce" => Some("ProduceFunction"),
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
fn resource(value: &Value) -> Result<String, String> {
    let text = value["Fn::GetAtt"].as_str().or(value["Fn::Sub"].as_str());
    let text = text.ok_or_else(|| format!("{value} names no resource of the stack"))?;
    Ok(text.replace("${", "").replace('}', "").replace(".Arn", ""))
}

/// What the template grants.
fn granted() -> Result<BTreeSet<Permission>, String> {
    let template = Template::document(TEMPLATE).map_err(|error| error.to_string())?;
    let resources = template["Resources"].as_object().into_iter().flatten();
    let mut granted = BTreeSet::new();
    for (name, function) in resources.filter(|(_, it)| it["Type"] == "AWS::Serverless::Function") {
        let policies = function["Properties"]["Policies"].as_array().into_iter().flatten();
        let statements = policies.flat_map(|policy| policy["Statement"].as_array().into_iter().flatten());
        // What is denied takes from what SAM grants by itself: see tests/tests/it/template.rs, also for what is granted only
        // where a parameter names it, as it does in no simulated stack.
        let always = |statement: &&Value| statement["Effect"] != "Deny" && statement["Fn::If"].is_null();
        for statement in statements.filter(always) {
            for action in one_or_many(&statement["Action"]) {
                let action = action.as_str().unwrap_or("*");
                for target in one_or_many(&statement["Resource"]) {
                    let target = resource(target)?;
                    if action.contains('*') || target.contains('*') {
                        return Err(format!("{name} is allowed {action} on {target}"));
                    }
                    granted.insert((name.clone(), action.to_owned(), target));
                }
            }
        }
    }
    Ok(granted)
}

/// What functions did.
fn used(stats: &Stats) -> BTreeSet<Permission> {
    let actions = stats.actions.iter();
    let of_functions = actions.filter_map(|(step, action, on)| Some((function(step)?, action, on)));
    of_functions.map(|(function, action, on)| (function.to_owned(), action.clone(), on.clone())).collect()
}
