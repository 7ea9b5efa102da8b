//! Makes a run's summary, and prints it.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::metrics::{ANSWERED_TO_ACKED, CALLED_TO_ACKED, CALLED_TO_ANSWERED, REGISTERED_TO_CALLED};
use fanfold::notice::{FanoutEnded, Notice};
use fanfold::policy::Destination;
use fanfold_local::prices::{self, Cost};
use fanfold_local::{Invocations, OperationUsage};

use super::begin::Begun;
use super::summary::{Dollars, FailedTask, Operation, RunEnd, Summary, Undelivered, WAYS};
use super::tally::Tally;
use crate::failure::Failure;
use crate::job::Job;
use crate::latencies::Percentiles;

/// Why items failed whose tasks failed in no batch.
const IN_NO_BATCH: &str = "cancelled, or acked as failed by somebody else";

/// How a run ends.
#[derive(Debug)]
pub(super) enum End {
    /// By the notice of its fan-out's end: the last task is done, or it was cut short.
    Ended(Box<Notice>),
    /// By too many tasks that failed.
    FailFast,
}

/// What a summary is made from.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) job: &'a Job,
    pub(super) begun: &'a Begun,
    /// What this process invoked, by function.
    pub(super) invocations: BTreeMap<String, Invocations>,
}

/// What became of the tasks.
struct Counts {
    total: u64,
    succeeded: u64,
    failed: u64,
    duplicates: u64,
    open: u64,
    missing: u64,
}

impl Counts {
    /// As the notice of its fan-out's end says. Rows that had not become items when that came are missing, too.
    fn of(end: &FanoutEnded, rows: u64) -> Self {
        let total = end.total.max(rows);
        let missing = end.missing + (total - end.total);
        Self { total, succeeded: end.succeeded, failed: end.failed, duplicates: end.duplicates, open: 0, missing }
    }

    /// Those with an outcome.
    fn done(&self) -> u64 {
        self.total.saturating_sub(self.open + self.missing)
    }
}

impl Report<'_> {
    /// Sums up.
    pub(super) async fn summary(&self, end: End, notices: usize, wall: Duration) -> Result<Summary, Failure> {
        let Begun { stack, fanout, auditor, meter, done_before, .. } = self.begun;
        let usage = stack.engine.usage();
        let tally = auditor.tally(*fanout).await?;
        let (ended, counts, notice) = match end {
            End::Ended(notice) => {
                let ended = notice.event.end().ok_or_else(not_an_end)?;
                (RunEnd::of(ended.state), Counts::of(ended, meter.total), Some(*notice))
            }
            End::FailFast => (RunEnd::FailFast, self.counts(&tally).await?, None),
        };
        let failed_tasks = self.failed_tasks(&tally.failed).await?;
        let done_in_last_leg = counts.done().saturating_sub(*done_before);
        let cost = Cost::of(&usage, self.invocations.values());
        Ok(Summary {
            name: self.job.name(),
            fanout: *fanout,
            ended,
            shown_again: false,
            total: counts.total,
            succeeded: counts.succeeded,
            failed: counts.failed,
            duplicates: counts.duplicates,
            open: counts.open,
            missing: counts.missing,
            failures: errors(&failed_tasks, counts.failed),
            failed_tasks,
            batches: tally.batches,
            mean_batch: tally.members as f64 / (tally.batches as f64).max(1.0),
            calls: tally.calls,
            retries: tally.retries,
            undelivered: self.undelivered(&tally),
            notices,
            notice,
            resumed: meter.resumed,
            done_in_last_leg,
            wall_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
            write_units: usage.write_units,
            read_units: usage.read_units,
            dynamodb_requests: usage.dynamodb_requests,
            sqs_requests: usage.sqs_requests,
            by_operation: operations(&usage.by_operation),
            latency_ms: self.latency(),
            invocations: self.invocations.iter().map(|(function, invoked)| (function.clone(), invoked.count)).collect(),
            prices: prices::LIST.to_owned(),
            dollars_per_million_tasks: Dollars::of(cost.per_million(done_in_last_leg)),
            peak_rss_kib: peak_rss_kib(),
        })
    }

    /// What became of the tasks of a run that ended early. The batches know more than the fan-out: not every outcome is acked
    /// yet.
    async fn counts(&self, tally: &Tally) -> Result<Counts, Failure> {
        let Begun { fanout, auditor, meter, .. } = self.begun;
        // An earlier process dropped some, too.
        let duplicates = if meter.resumed { auditor.duplicates(*fanout).await? } else { meter.duplicates() };
        let (total, failed) = (meter.total, tally.failed.len() as u64);
        let open = total.saturating_sub(tally.settled + duplicates);
        Ok(Counts { total, succeeded: tally.settled - failed, failed, duplicates, open, missing: 0 })
    }

    fn latency(&self) -> BTreeMap<String, Percentiles> {
        let percentiles = |name: &str| self.begun.meter.counters.latencies(name).percentiles();
        let histograms = [REGISTERED_TO_CALLED, CALLED_TO_ANSWERED, ANSWERED_TO_ACKED, CALLED_TO_ACKED];
        let measured = WAYS.into_iter().zip(histograms);
        measured.filter_map(|(way, histogram)| Some((way.to_owned(), percentiles(histogram)?))).collect()
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
        let contents = self.begun.auditor.contents(&ids).await?;
        let starts = self.begun.pages.rows_before_groups(self.begun.fanout);
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
        self.job.policy.assign(&content, "").ok()?.key
    }
}

fn not_an_end() -> Failure {
    Failure::Internal("the notice is not one of an end".to_owned())
}

fn operations(used: &BTreeMap<String, OperationUsage>) -> BTreeMap<String, Operation> {
    let operation = |used: &OperationUsage| Operation { requests: used.requests, units: used.units };
    used.iter().map(|(name, used)| (name.clone(), operation(used))).collect()
}

/// How many tasks failed with each error. `all`: those that the fan-out counts; no batch knows of some of them.
fn errors(failed: &[FailedTask], all: u64) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for task in failed {
        *errors.entry(task.error.clone()).or_default() += 1;
    }
    let others = all.saturating_sub(failed.len() as u64);
    if others > 0 {
        errors.insert(IN_NO_BATCH.to_owned(), others);
    }
    errors
}

/// Who gets the notices of failed tasks.
pub(super) fn receiver(job: &Job) -> String {
    match &job.policy.policy.notify {
        Some(Destination::Url(to) | Destination::Sqs(to) | Destination::EventBus(to)) => to.clone(),
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
