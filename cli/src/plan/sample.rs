//! A sample of the tasks, run on this machine: how many requests and units they take is the same on AWS.

use std::process::Stdio;

use serde::Serialize;
use serde_json::Value;
use tokio::process::Command;

use super::Shape;
use crate::failure::Failure;
use crate::say::say;

/// Tasks of a sample at most, batches, and bytes of contents, which are kept in memory: 2,684 tasks of the largest.
const TASKS: u64 = 20_000;
const BATCHES: u64 = 1_000;
const BYTES: u64 = 256 * 1_024 * 1_024;

/// What the tasks of a sample took on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Measured {
    /// Its tasks.
    pub(super) sample: u64,
    /// Write units of DynamoDB per task.
    pub(super) write_units: f64,
    /// Read units of DynamoDB per task.
    pub(super) read_units: f64,
    /// Requests of SQS per task.
    pub(super) sqs_requests: f64,
    /// Invocations of functions per task.
    pub(super) invocations: f64,
    /// Dollars of all tasks for write units, read units, SQS and Lambda, but for the time that calls take.
    #[serde(skip)]
    pub(super) dollars_per_task: [f64; 4],
}

/// Runs a sample.
pub(super) async fn measure(shape: &Shape) -> Result<Measured, Failure> {
    let folder = tempfile::tempdir().map_err(|error| Failure::io("a temporary folder", error))?;
    let sample = Sample::of(shape);
    let program = std::env::current_exe().map_err(|error| Failure::io("this program", error))?;
    let file = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).map_err(|error| Failure::io(name, error))
    };
    file("policy.yaml", sample.policy(shape))?;
    file("rows.csv", sample.rows(shape))?;
    let start = serde_json::json!([program, "sandbox"]);
    file("run.yaml", format!("start: {start}\n"))?;
    if crate::say::on_terminal() {
        say(format_args!("running a sample of {} tasks …", indicatif::HumanCount(sample.tasks)));
    }
    let mut run = Command::new(&program);
    run.arg("run").arg(folder.path()).arg("--json").stdin(Stdio::null()).kill_on_drop(true);
    let output = run.output().await.map_err(|error| Failure::io("running the sample", error))?;
    let said = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if !output.status.success() {
        return Err(Failure::Local(format!("the sample did not succeed: {}", said())));
    }
    let summary = serde_json::from_slice(&output.stdout);
    let summary = summary.map_err(|error| Failure::Internal(format!("the sample has no summary: {error}")))?;
    Ok(measured(&summary))
}

/// The averages of a run.
fn measured(summary: &Value) -> Measured {
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let tasks = summary["total"].as_u64().unwrap_or_default();
    let per_task = |count: f64| count / (tasks.max(1) as f64);
    let invocations = summary["invocations"].as_object().into_iter().flatten().map(|(_, count)| number(count)).sum();
    let dollars = &summary["dollars_per_million_tasks"];
    let dollars = ["dynamodb_writes", "dynamodb_reads", "sqs", "lambda"].map(|name| number(&dollars[name]) / 1e6);
    Measured {
        sample: tasks,
        write_units: per_task(number(&summary["write_units"])),
        read_units: per_task(number(&summary["read_units"])),
        sqs_requests: per_task(number(&summary["sqs_requests"])),
        invocations: per_task(invocations),
        dollars_per_task: dollars,
    }
}

/// How many tasks, and of how many targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    tasks: u64,
    targets: u64,
}

impl Sample {
    /// As many tasks per target as asked for, as far as these are in a sample at all.
    fn of(shape: &Shape) -> Self {
        let per_target = shape.items.div_ceil(shape.targets);
        let most = TASKS.min(BYTES / u64::from(shape.bytes)).min(BATCHES * per_target.min(u64::from(shape.batch)));
        let tasks = shape.items.min(most);
        Self { tasks, targets: tasks.div_ceil(per_target).max(1) }
    }

    /// A batch that is not full waits until all tasks are registered.
    fn policy(self, shape: &Shape) -> String {
        let key = if shape.keys { "key: content.item\n" } else { "" };
        let Shape { batch, max_in_flight, calls_at_once, .. } = shape;
        format!(
            "kind: plan\ntarget: content.target\n{key}max_batch: {batch}\nlinger: 1m\nmax_in_flight: {max_in_flight}\n\
             max_calls: {calls_at_once}\nbatch_api: {{url: \"http://127.0.0.1:${{PORT}}/\"}}\n"
        )
    }

    fn rows(self, shape: &Shape) -> String {
        // Names of columns and quotes take some of a content's bytes.
        let padding = "x".repeat((shape.bytes as usize).saturating_sub(40).max(1));
        let row = |n: u64| format!("{n},{},{padding}\n", n % self.targets);
        "item,target,padding\n".to_owned() + &(0..self.tasks).map(row).collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::shape;
    use super::*;

    #[test]
    fn a_sample_has_as_many_tasks_per_target() {
        let of = |items, targets| Sample::of(&shape(items, targets, 100));
        assert_eq!(of(1_000_000, 500), Sample { tasks: 20_000, targets: 10 });
        assert_eq!(of(1_000_000, 1), Sample { tasks: 20_000, targets: 1 });
        assert_eq!(of(1_000_000, 1_000_000), Sample { tasks: 1_000, targets: 1_000 });
        assert_eq!(of(12, 5), Sample { tasks: 12, targets: 4 });
    }

    #[test]
    fn a_sample_of_large_tasks_has_fewer() {
        let of = |bytes, batch| Sample::of(&Shape { bytes, ..shape(1_000_000, 500, batch) });
        assert_eq!(of(13_000, 100), Sample { tasks: 20_000, targets: 10 });
        assert_eq!(of(100_000, 41), Sample { tasks: 2_684, targets: 2 });
    }
}
