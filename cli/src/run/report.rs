//! Makes a run's summary, and prints it.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::notice::{Event, Notice};
use uuid::Uuid;

use super::produce::Opened;
use super::summary::{FailedTask, Operation, Summary};
use super::tally::Auditor;
use crate::failure::Failure;
use crate::job::Job;
use crate::stack::Stack;

/// What a summary is made from.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) job: &'a Job,
    pub(super) opened: &'a Opened,
    pub(super) stack: &'a Stack,
    pub(super) auditor: &'a Auditor,
}

impl Report<'_> {
    pub(super) async fn summary(
        &self,
        notice: Notice,
        notices: usize,
        wall: Duration,
        resumed: bool,
    ) -> Result<Summary, Failure> {
        let Event::FanoutCompleted(completed) = notice.event.clone() else {
            return Err(Failure::Internal("the notice is not one of completion".to_owned()));
        };
        let usage = self.stack.engine.usage();
        let tally = self.auditor.tally(completed.fanout).await?;
        let failed_tasks = self.failed_tasks(&tally.failed).await?;
        let mut failures = BTreeMap::new();
        for task in &failed_tasks {
            *failures.entry(task.error.clone()).or_default() += 1;
        }
        let operations = usage.by_operation.iter();
        Ok(Summary {
            name: self.job.name(),
            fanout: completed.fanout,
            total: completed.total,
            succeeded: completed.succeeded,
            failed: completed.failed,
            duplicates: completed.duplicates,
            failures,
            failed_tasks,
            batches: tally.batches,
            mean_batch: tally.members as f64 / (tally.batches as f64).max(1.0),
            calls: tally.calls,
            retries: tally.calls.saturating_sub(tally.batches),
            notices,
            notice,
            resumed,
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            write_units: usage.write_units,
            read_units: usage.read_units,
            dynamodb_requests: usage.dynamodb_requests,
            sqs_requests: usage.sqs_requests,
            by_operation: operations
                .map(|(name, used)| (name.clone(), Operation { requests: used.requests, units: used.units }))
                .collect(),
            peak_rss_kib: peak_rss_kib(),
        })
    }

    /// Names the tasks that failed, in the order of the file.
    async fn failed_tasks(&self, failed: &BTreeMap<ItemId, String>) -> Result<Vec<FailedTask>, Failure> {
        let ids: Vec<TaskId> = failed.keys().copied().map(TaskId::Item).collect();
        let contents = self.auditor.contents(&ids).await?;
        let mut before = 0;
        let mut starts: HashMap<Uuid, u64> = HashMap::new();
        for group in &self.opened.groups {
            starts.insert(group.id, before);
            before += u64::from(group.upto);
        }
        let task = |(item, error): (&ItemId, &String)| FailedTask {
            id: item.to_string(),
            row: starts.get(&item.group).copied().unwrap_or_default() + u64::from(item.index) + 1,
            key: contents.get(&TaskId::Item(*item)).and_then(|content| self.key(content)),
            error: error.clone(),
        };
        let mut tasks: Vec<FailedTask> = failed.iter().map(task).collect();
        tasks.sort_by_key(|task| task.row);
        Ok(tasks)
    }

    fn key(&self, content: &str) -> Option<String> {
        let content = serde_json::from_str(content).ok()?;
        self.job.policy.place(&content, "").ok()?.key
    }
}

/// Prints a summary on standard output.
pub(super) fn print(summary: &Summary, json: bool) -> Result<(), Failure> {
    let text = if json {
        serde_json::to_string_pretty(summary).map_err(|error| Failure::Internal(error.to_string()))?
    } else {
        summary.to_string()
    };
    writeln!(std::io::stdout(), "{text}").map_err(|error| Failure::io("standard output", error))
}

/// The most memory this process had, as Linux tells it.
fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
