//! Makes a run's summary, and prints it.

use std::collections::{BTreeMap, HashMap};
use std::io::{ErrorKind, Write};
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::metrics::{ANSWERED_TO_ACKED, CALLED_TO_ANSWERED, REGISTERED_TO_CALLED};
use fanfold::notice::{Event, Notice};
use fanfold::policy::Destination;
use fanfold_local::Invocations;
use fanfold_local::prices::{self, Cost};
use uuid::Uuid;

use super::produce::Opened;
use super::summary::{Dollars, Ended, FailedTask, Operation, Summary, Undelivered, WAYS};
use super::tally::{Auditor, Tally};
use crate::counters::Counters;
use crate::failure::Failure;
use crate::job::Job;
use crate::latencies::Percentiles;
use crate::stack::Stack;

/// How a run ends.
#[derive(Debug)]
pub(super) enum End {
    /// By the notice that the last task is done.
    Completed(Notice),
    /// By too many tasks that failed.
    FailFast,
}

/// What a summary is made from.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) job: &'a Job,
    pub(super) opened: &'a Opened,
    pub(super) stack: &'a Stack,
    pub(super) auditor: &'a Auditor,
    /// Tasks of the file.
    pub(super) total: u64,
    /// Tasks that this process dropped because another has their key.
    pub(super) duplicates: u64,
    /// What this process invoked, by function.
    pub(super) invocations: BTreeMap<String, Invocations>,
    pub(super) counters: &'a Counters,
}

/// What became of the tasks.
struct Counts {
    total: u64,
    succeeded: u64,
    failed: u64,
    duplicates: u64,
    open: u64,
}

impl Report<'_> {
    /// Sums up. `done_before`: tasks that were done when this process went on with an earlier one's run.
    pub(super) async fn summary(
        &self,
        end: End,
        notices: usize,
        wall: Duration,
        done_before: u64,
        resumed: bool,
    ) -> Result<Summary, Failure> {
        let usage = self.stack.engine.usage();
        let fanout = self.opened.fanout.id;
        let tally = self.auditor.tally(fanout).await?;
        let (ended, notice, counts) = match end {
            End::Completed(notice) => {
                let Event::FanoutCompleted(completed) = &notice.event else {
                    return Err(Failure::Internal("the notice is not one of completion".to_owned()));
                };
                let (total, succeeded, failed) = (completed.total, completed.succeeded, completed.failed);
                let duplicates = completed.duplicates;
                let counts = Counts { total, succeeded, failed, duplicates, open: 0 };
                (Ended::Completed, Some(notice), counts)
            }
            // The batches know more than the fan-out: not every outcome is acked yet.
            End::FailFast => {
                let failed = tally.failed.len() as u64;
                let counts = Counts {
                    total: self.total,
                    succeeded: tally.settled - failed,
                    failed,
                    duplicates: self.duplicates,
                    open: self.total.saturating_sub(tally.settled + self.duplicates),
                };
                (Ended::FailFast, None, counts)
            }
        };
        let failed_tasks = self.failed_tasks(&tally.failed).await?;
        let mut failures = BTreeMap::new();
        for task in &failed_tasks {
            *failures.entry(task.error.clone()).or_default() += 1;
        }
        let operations = usage.by_operation.iter();
        let done_in_last_leg = (counts.total - counts.open).saturating_sub(done_before);
        let cost = Cost::of(&usage, self.invocations.values());
        Ok(Summary {
            name: self.job.name(),
            fanout,
            ended,
            shown_again: false,
            total: counts.total,
            succeeded: counts.succeeded,
            failed: counts.failed,
            duplicates: counts.duplicates,
            open: counts.open,
            failures,
            failed_tasks,
            batches: tally.batches,
            mean_batch: tally.members as f64 / (tally.batches as f64).max(1.0),
            calls: tally.calls,
            retries: tally.calls.saturating_sub(tally.batches),
            undelivered: self.undelivered(&tally),
            notices,
            notice,
            resumed,
            done_in_last_leg,
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            write_units: usage.write_units,
            read_units: usage.read_units,
            dynamodb_requests: usage.dynamodb_requests,
            sqs_requests: usage.sqs_requests,
            by_operation: operations
                .map(|(name, used)| (name.clone(), Operation { requests: used.requests, units: used.units }))
                .collect(),
            latency_ms: self.latency(),
            invocations: self.invocations.iter().map(|(function, invoked)| (function.clone(), invoked.count)).collect(),
            prices: prices::LIST.to_owned(),
            dollars_per_million_tasks: Dollars::of(cost.per_million(done_in_last_leg)),
            peak_rss_kib: peak_rss_kib(),
        })
    }

    fn latency(&self) -> BTreeMap<String, Percentiles> {
        let percentiles = |name: &str| self.counters.latencies(name).percentiles();
        let histograms = [REGISTERED_TO_CALLED, CALLED_TO_ANSWERED, ANSWERED_TO_ACKED];
        let told = WAYS.into_iter().zip(histograms);
        told.filter_map(|(way, histogram)| Some((way.to_owned(), percentiles(histogram)?))).collect()
    }

    fn undelivered(&self, tally: &Tally) -> Vec<Undelivered> {
        let to = receiver(self.job);
        let undelivered = tally.undelivered.iter();
        undelivered
            .map(|(error, notices)| Undelivered { to: to.clone(), notices: *notices, error: error.clone() })
            .collect()
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
            key: contents.get(&TaskId::Item(*item)).and_then(|content| self.key(&content.json)),
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

/// Who gets the notices of failed tasks.
pub(super) fn receiver(job: &Job) -> String {
    match &job.policy.policy.notify {
        Some(Destination::Url(url)) => url.clone(),
        _ => "the queue of notices".to_owned(),
    }
}

/// Prints a summary on standard output.
pub(super) fn print(summary: &Summary, json: bool) -> Result<(), Failure> {
    let text = if json {
        serde_json::to_string_pretty(summary).map_err(|error| Failure::Internal(error.to_string()))?
    } else {
        summary.to_string()
    };
    match writeln!(std::io::stdout(), "{text}") {
        // Who reads it has read enough.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::io("standard output", error)),
        _ => Ok(()),
    }
}

/// The most memory this process had, as Linux reports it.
fn peak_rss_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
