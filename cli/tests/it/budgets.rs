//! What work may cost, in requests and request units: they are counted, and nearly the same in each run.

use serde_json::Value;

use crate::example::example;
use crate::folder::Folder;

/// What a task cost on average.
struct Cost(Value);

impl Cost {
    fn per_task(&self, what: f64) -> f64 {
        what / self.0["total"].as_f64().unwrap()
    }

    fn write_units(&self) -> f64 {
        self.per_task(self.0["write_units"].as_f64().unwrap())
    }

    fn sqs_requests(&self) -> f64 {
        self.per_task(self.0["sqs_requests"].as_f64().unwrap())
    }

    fn invocations(&self) -> f64 {
        let of = self.0["invocations"].as_object().unwrap().values();
        self.per_task(of.map(|count| count.as_f64().unwrap()).sum())
    }

    fn assert_at_most(&self, write_units: f64, sqs_requests: f64, invocations: f64) {
        let cost = [self.write_units(), self.sqs_requests(), self.invocations()];
        let budget = [write_units, sqs_requests, invocations];
        assert!(cost.iter().zip(budget).all(|(cost, budget)| *cost <= budget), "{cost:?}, the budget is {budget:?}");
    }
}

/// The example, where a batch that is not full waits until every order is registered. Otherwise a slow machine registers few
/// orders within a linger, and makes smaller batches, which cost more.
fn patient_example() -> Folder {
    let folder = example();
    change_policy(&folder, "\nlinger: 2s\n", "\nlinger: 10m\n");
    folder
}

fn change_policy(folder: &Folder, from: &str, to: &str) {
    let policy = std::fs::read_to_string(folder.path().join("policy.yaml")).unwrap();
    assert!(policy.contains(from), "{policy}");
    folder.write("policy.yaml", policy.replace(from, to));
}

/// A unit for the key, one for the task itself; bundles and batches share the rest. A busy machine needs more of all: this only notices
/// gross errors of the command. The budgets of 2.6 units, 0.15 requests to SQS and 0.05 invocations are held exactly, in simulated
/// time, by `request_budgets.rs` of the protocol tests.
#[test]
fn an_order_of_the_example_costs_some_2_6_write_units() {
    let cost = Cost(patient_example().summary(&[]));
    cost.assert_at_most(2.75, 0.25, 0.1);
}

#[test]
fn an_order_without_a_key_costs_some_1_6_write_units() {
    let folder = patient_example();
    change_policy(&folder, "\nkey: content.order\n", "\n");
    let cost = Cost(folder.summary(&[]));
    cost.assert_at_most(1.75, 0.25, 0.1);
}

/// What tasks cost where each has a target, and so a batch, of its own. Nothing is shared: it is what they cost before there were
/// bundles.
fn alone(rows: usize) -> Cost {
    let folder = Folder::new();
    let row = |n: usize| format!("R-{n},shop-{n}\n");
    folder.write("rows.csv", "ref,shop\n".to_owned() + &(0..rows).map(row).collect::<String>());
    let policy = "kind: row\ntarget: content.shop\nkey: content.ref\nmax_batch: 60\nlinger: 0s\nmax_in_flight: 2\n\
                  batch_api: {command: [\"true\"], timeout: 5s}\n";
    folder.write("policy.yaml", policy);
    Cost(folder.summary(&[]))
}

#[test]
fn a_task_alone_in_its_lane_costs_no_bundle() {
    // It is 16 units, 4.1 requests and 1.2 invocations. A slow machine adds looks at a gate that is full, a unit each, and batches
    // that come again because of it; a bundle would add at least one unit for each task.
    alone(1_000).assert_at_most(16.9, 5.5, 1.6);
}

#[test]
#[ignore = "200,000 batches take minutes: `just tiny-targets`"]
fn two_hundred_thousand_tasks_alone_in_their_lanes_cost_no_bundles() {
    // In minutes the sweep comes, too, and takes each idle lane out of the index for two units.
    alone(200_000).assert_at_most(18.1, 5.0, 1.3);
}
