//! How a run ended: as JSON, and for people.

mod end;
mod text;

use std::collections::BTreeMap;

use fanfold::notice::Notice;
use fanfold_local::prices::Cost;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(crate) use self::end::RunEnd;
use crate::latencies::Percentiles;

/// How a run ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The run's name.
    pub(crate) name: String,
    /// Its fan-out.
    pub(crate) fanout: Uuid,
    /// How it ended.
    #[serde(default)]
    pub(crate) ended: RunEnd,
    /// Whether it was finished before, so that nothing was done now.
    #[serde(default)]
    pub(crate) shown_again: bool,
    /// Tasks, which are the items of the fan-out.
    pub(crate) total: u64,
    /// Items that succeeded.
    pub(crate) succeeded: u64,
    /// Items that failed.
    pub(crate) failed: u64,
    /// Tasks that are duplicates: another has their key.
    pub(crate) duplicates: u64,
    /// Tasks without an outcome, if the run was stopped.
    #[serde(default)]
    pub(crate) open: u64,
    /// Tasks that were not done when the run's fan-out was cut short. These, those that succeeded, those that failed
    /// and the duplicates make up the total.
    #[serde(default)]
    pub(crate) missing: u64,
    /// How many failed for which reason, as far as reasons are kept.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Which failed in a batch.
    pub(crate) failed_tasks: Vec<FailedTask>,
    /// Batches.
    pub(crate) batches: u64,
    /// Members of a batch on average.
    pub(crate) mean_batch: f64,
    /// Attempts of all batches, also those in which nobody was called.
    pub(crate) calls: u64,
    /// Calls after the first of their batch.
    pub(crate) retries: u64,
    /// Notices of failed tasks that could not be delivered.
    #[serde(default)]
    pub(crate) undelivered: Vec<Undelivered>,
    /// Completion notices.
    pub(crate) notices: usize,
    /// The completion notice.
    pub(crate) notice: Option<Notice>,
    /// Whether an earlier process did a part of the run. What follows is of its last leg alone: of the process that ended it.
    pub(crate) resumed: bool,
    /// Tasks that were done in that leg.
    #[serde(default)]
    pub(crate) done_in_last_leg: u64,
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
    /// How long tasks took from one step of their way to the next, in milliseconds.
    #[serde(default)]
    pub(crate) latency_ms: BTreeMap<String, Percentiles>,
    /// Invocations by function.
    #[serde(default)]
    pub(crate) invocations: BTreeMap<String, u64>,
    /// Where and when the prices are list prices.
    #[serde(default)]
    pub(crate) prices: String,
    /// What a million such tasks cost.
    #[serde(default)]
    pub(crate) dollars_per_million_tasks: Dollars,
    /// The most memory this process had, if the operating system reports it.
    pub(crate) peak_rss_kib: Option<u64>,
}

/// The calls of one operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub(crate) requests: u64,
    pub(crate) units: f64,
}

/// Dollars by service.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Dollars {
    /// Write units of DynamoDB.
    pub(crate) dynamodb_writes: f64,
    /// Read units of DynamoDB.
    pub(crate) dynamodb_reads: f64,
    /// Requests of SQS.
    pub(crate) sqs: f64,
    /// Invocations, and their time as it was here.
    pub(crate) lambda: f64,
    /// All of it.
    pub(crate) total: f64,
}

impl Dollars {
    pub(crate) fn of(cost: Cost) -> Self {
        let total = cost.total();
        let Cost { writes, reads, sqs, lambda } = cost;
        Self { dynamodb_writes: writes, dynamodb_reads: reads, sqs, lambda, total }
    }
}

/// Notices that could not be delivered for one reason.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Undelivered {
    /// Where to.
    pub(crate) to: String,
    /// How many.
    pub(crate) notices: u64,
    /// Why.
    pub(crate) error: String,
}

/// A task that failed for good.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FailedTask {
    /// Its item.
    pub(crate) id: String,
    /// Which task of the file it is, from 1.
    pub(crate) row: u64,
    /// Its key, if the policy has one.
    pub(crate) key: Option<String>,
    /// Why it failed.
    pub(crate) error: String,
}

/// The ways of a task whose times are reported.
pub(crate) const WAYS: [&str; 4] =
    ["registered_to_called", "called_to_answered", "answered_to_acked", "called_to_acked"];
