//! How a run ended: as JSON, and for people.

use std::collections::BTreeMap;
use std::fmt;

use fanfold::notice::{Event, Notice};
use indicatif::HumanCount;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How a run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The run's name.
    pub(crate) name: String,
    /// Its fan-out.
    pub(crate) fanout: Uuid,
    /// Tasks, which are the items of the fan-out.
    pub(crate) total: u64,
    /// Items that succeeded.
    pub(crate) succeeded: u64,
    /// Items that failed.
    pub(crate) failed: u64,
    /// Tasks dropped because another has their key.
    pub(crate) duplicates: u64,
    /// How many failed for which reason.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Which failed.
    pub(crate) failed_tasks: Vec<FailedTask>,
    /// Batches.
    pub(crate) batches: u64,
    /// Members of a batch on average.
    pub(crate) mean_batch: f64,
    /// Calls of the batch API.
    pub(crate) calls: u64,
    /// Calls after the first of their batch.
    pub(crate) retries: u64,
    /// Completion notices.
    pub(crate) notices: usize,
    /// The completion notice.
    pub(crate) notice: Notice,
    /// Whether an earlier process did a part of the run. What follows is of the last process alone.
    pub(crate) resumed: bool,
    /// Milliseconds from the first registration to the completion notice.
    pub(crate) wall_ms: u64,
    /// DynamoDB write request units.
    pub(crate) write_units: f64,
    /// DynamoDB read request units.
    pub(crate) read_units: f64,
    /// Calls to DynamoDB.
    pub(crate) dynamodb_requests: u64,
    /// Calls to SQS.
    pub(crate) sqs_requests: u64,
    /// Calls and units by operation.
    pub(crate) by_operation: BTreeMap<String, Operation>,
    /// The most memory this process had, if the operating system tells.
    pub(crate) peak_rss_kib: Option<u64>,
}

/// The calls of one operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub(crate) requests: u64,
    pub(crate) units: f64,
}

/// A task that failed for good.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FailedTask {
    /// Its item.
    pub(crate) id: String,
    /// Its number in the file, from 1.
    pub(crate) row: u64,
    /// Its key, if the policy has one.
    pub(crate) key: Option<String>,
    /// Why it failed.
    pub(crate) error: String,
}

/// Failed tasks named in the summary for people.
const NAMED: usize = 4;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.wall_ms as f64 / 1_000.0;
        let rate = HumanCount((self.total as f64 / seconds.max(0.001)) as u64);
        let resumed = if self.resumed { ", in the last of several goes" } else { "" };
        writeln!(f, "{}: {} tasks in {seconds:.1} s{resumed} ({rate} a second)\n", self.name, HumanCount(self.total))?;
        writeln!(f, "  succeeded   {:>9}", HumanCount(self.succeeded).to_string())?;
        writeln!(f, "  failed      {:>9}", HumanCount(self.failed).to_string())?;
        self.write_failures(f)?;
        if self.duplicates > 0 {
            let what = "dropped, because another task has their key";
            writeln!(f, "  duplicates  {:>9}   {what}", HumanCount(self.duplicates).to_string())?;
        }
        let batches = HumanCount(self.batches).to_string();
        writeln!(f, "  batches     {batches:>9}   {:.1} tasks a batch", self.mean_batch)?;
        let calls = HumanCount(self.calls).to_string();
        let retries = HumanCount(self.retries);
        writeln!(f, "  calls       {calls:>9}   {}, {retries} of them retries", self.saved())?;
        writeln!(f, "  notices     {:>9}   {}\n", self.notices, Told(&self.notice))?;
        let each = |count: f64| count / (self.total as f64).max(1.0);
        writeln!(
            f,
            "  DynamoDB    {} write units, {} read units, {} calls: {:.2}, {:.2} and {:.2} a task",
            HumanCount(self.write_units as u64),
            HumanCount(self.read_units as u64),
            HumanCount(self.dynamodb_requests),
            each(self.write_units),
            each(self.read_units),
            each(self.dynamodb_requests as f64)
        )?;
        let requests = HumanCount(self.sqs_requests);
        write!(f, "  SQS         {requests} calls: {:.2} a task", each(self.sqs_requests as f64))
    }
}

impl Summary {
    fn write_failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut reasons: Vec<(&String, &u64)> = self.failures.iter().collect();
        reasons.sort_by_key(|(reason, count)| (std::cmp::Reverse(**count), *reason));
        for (reason, count) in reasons {
            let tasks = self.failed_tasks.iter().filter(|task| task.error == *reason);
            let name = |task: &FailedTask| task.key.clone().unwrap_or_else(|| format!("row {}", task.row));
            let mut names: Vec<String> = tasks.take(NAMED).map(name).collect();
            if *count > NAMED as u64 {
                names.push("…".to_owned());
            }
            writeln!(f, "              {:>9}   {reason}: {}", HumanCount(*count).to_string(), names.join(", "))?;
        }
        Ok(())
    }

    /// Compared with one call a task.
    fn saved(&self) -> String {
        if self.total == 0 || self.calls >= self.total {
            return "no fewer than one a task".to_owned();
        }
        let share = 100.0 * (1.0 - self.calls as f64 / self.total as f64);
        format!("{} saved against one a task ({share:.1} %)", HumanCount(self.total - self.calls))
    }
}

/// A notice in short.
struct Told<'a>(&'a Notice);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.event {
            Event::FanoutCompleted(completed) => write!(
                f,
                "fan-out {} completed: {} succeeded, {} failed",
                completed.fanout,
                HumanCount(completed.succeeded),
                HumanCount(completed.failed)
            ),
            Event::TasksFailed(failed) => write!(f, "{} tasks failed", failed.failures.len()),
        }
    }
}
