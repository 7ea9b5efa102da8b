//! Policies: how tasks of one kind are targeted, grouped, paced and handled.

mod bounded;
mod check;
mod compiled;
mod expression;
mod span;

use serde::{Deserialize, Serialize};

pub use check::{FieldError, PolicyError, is_kind};
pub use compiled::{CompiledPolicy, Placement};
pub use expression::{Expression, ExpressionError, Subject};
pub use span::Span;

use crate::backoff::Backoff;

/// How tasks of one kind are targeted, grouped, paced and handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The kind of task this policy is for: 1 to 64 letters, digits, `.`, `_`, `-`.
    pub kind: String,
    /// CEL expression over `kind` and `content`: tasks with the same value may share a batch.
    pub target: String,
    /// CEL expression over `kind` and `content`: a task is accepted once per value. Also decides the partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Lanes each target is split into, 1 to 1,024.
    #[serde(default = "one")]
    pub partitions: u32,
    /// Members of a batch at most, 1 to 10,000.
    #[serde(default = "hundred")]
    pub max_batch: u32,
    /// How long a leader waits for a batch to fill, up to 15 minutes, in whole seconds.
    #[serde(default = "one_second")]
    pub linger: Span,
    /// Batches of one lane handled at once, 1 to 1,000.
    #[serde(default = "one")]
    pub max_in_flight: u32,
    /// Calls of the batch API for one batch before its members fail, 1 to 1,000; those lost with their worker aside.
    #[serde(default = "five")]
    pub max_attempts: u32,
    /// Delays between attempts.
    #[serde(default)]
    pub backoff: BackoffPolicy,
    /// The batch API.
    pub handler: Handler,
    /// Where failures of tasks are told, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Destination>,
}

/// Delays between attempts: doubling from `base` to `max`, with jitter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackoffPolicy {
    /// Delay after the first attempt.
    pub base: Span,
    /// The longest delay, up to 15 minutes.
    pub max: Span,
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        Self { base: Span::from_secs(1), max: Span::from_secs(60) }
    }
}

impl From<&BackoffPolicy> for Backoff {
    fn from(policy: &BackoffPolicy) -> Self {
        Self { base: policy.base.0, max: policy.max.0 }
    }
}

/// The batch API: exactly one of `url` and `command`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handler {
    /// An HTTP endpoint; `https`, or `http` on the local machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A program and its arguments, for the local runner: the call on its standard input, the answer on its standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// How long one call may take, up to 90 seconds.
    #[serde(default = "ten_seconds")]
    pub timeout: Span,
}

/// Where notices go: exactly one of `url` and `queue`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Destination {
    /// An HTTPS endpoint.
    Url(String),
    /// The stack's own queue of notices.
    Queue(NoticesQueue),
}

/// The queue of the stack that notices can be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticesQueue {
    /// `NoticesQueue` in template.yaml.
    Notices,
}

fn one() -> u32 {
    1
}
fn five() -> u32 {
    5
}
fn hundred() -> u32 {
    100
}
fn one_second() -> Span {
    Span::from_secs(1)
}
fn ten_seconds() -> Span {
    Span::from_secs(10)
}
