//! Policies: how tasks of one kind are targeted, grouped, paced and handled.

mod batch_api;
mod bounded;
mod check;
mod compiled;
mod destination;
mod expression;
mod kind;
mod matches;
mod names;
mod span;
mod tree;
mod url;
mod weight;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use batch_api::{BatchApi, Way};
pub use check::{FieldError, PolicyError};
pub use compiled::{CompiledPolicy, Placement, Values};
#[cfg(feature = "openapi")]
pub(crate) use destination::{CALLBACK_ID, EVENT_BUS, QUEUE, TASK_TOKEN};
pub use destination::{Destination, NoticesQueue, domain, queue_url};
pub use expression::{Expression, ExpressionError, Subject};
pub use kind::{KIND_ALLOWED, is_kind, no_policy};
pub use span::Span;
pub use weight::Weight;

use crate::backoff::Backoff;
use crate::ids::derived;
#[cfg(feature = "openapi")]
use crate::limits::{
    ATTEMPTS_MAX, BATCH_BYTES_MAX, BATCH_MEMBERS_MAX, EXPRESSION_BYTES_MAX, IN_FLIGHT_MAX, PARTITIONS_MAX,
};

/// How tasks of one kind are targeted, grouped, paced and handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The kind of task this policy is for: letters, digits, `.`, `_`, `-`.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::kind_field"))]
    pub kind: String,
    /// CEL expression over `kind` and `content`: tasks with the same value may share a batch.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    pub target: String,
    /// CEL expression over `kind` and `content`: a task is accepted once per value. Also decides the partition.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// CEL expression over `kind` and `content`: within its value a key is accepted once, whichever fan-outs the tasks belong to.
    /// Without it, within a fan-out, or among the tasks that belong to none.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Lanes each target is split into.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = PARTITIONS_MAX)))]
    #[serde(default = "one", deserialize_with = "crate::whole::u32")]
    pub partitions: u32,
    /// Members of a batch at most.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = BATCH_MEMBERS_MAX)))]
    #[serde(default = "hundred", deserialize_with = "crate::whole::u32")]
    pub max_batch: u32,
    /// Bytes of a call's members at most: their contents as JSON, and 128 bytes more for each. A task that has more goes alone.
    /// Without it, 4 MiB.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = BATCH_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::whole::optional_u32")]
    pub max_batch_bytes: Option<u32>,
    /// CEL expression over `kind` and `content`: a task's weight, a number; in thousandths at most. Goes with `max_weight`.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// The weight of a batch at most. A task that weighs more goes alone.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_weight"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_weight: Option<Weight>,
    /// CEL expression over `kind` and `content`: two tasks with the same value do not share a batch.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<String>,
    /// How long a leader waits for a batch to fill, in whole seconds.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::delay"))]
    #[serde(default = "one_second")]
    pub linger: Span,
    /// Batches of one lane handled at once.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = IN_FLIGHT_MAX)))]
    #[serde(default = "one", deserialize_with = "crate::whole::u32")]
    pub max_in_flight: u32,
    /// Calls of the batch API for one batch before its members fail; those lost with their worker aside.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = ATTEMPTS_MAX)))]
    #[serde(default = "twenty", deserialize_with = "crate::whole::u32")]
    pub max_attempts: u32,
    /// Delays between attempts.
    #[serde(default)]
    pub backoff: BackoffPolicy,
    /// What follows from calls that say that the caller is wrong or must wait: `wait` uses up no attempt, and lets the kind
    /// stand still after a few in a row; `fail` takes them for what other failed calls are.
    #[serde(default)]
    pub refusals: Refusals,
    /// What becomes of the key of a task that failed.
    #[serde(default)]
    pub key_after_failure: KeyAfterFailure,
    /// The batch API.
    pub batch_api: BatchApi,
    /// Where failures of tasks are reported, and that the kind stands still or goes on; if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Destination>,
}

/// What follows from calls that say that the caller is wrong or must wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refusals {
    /// They use up no attempt; after a few in a row the kind stands still until the batch API works again.
    #[default]
    Wait,
    /// They count as other failed calls do, or fail the members at once.
    Fail,
}

impl Policy {
    /// Identifies a version of the policy: what is known of a batch API holds for the version it was called by.
    #[must_use]
    pub fn version(&self) -> Uuid {
        derived::policy_version(&serde_json::to_string(self).unwrap_or_default())
    }
}

/// What becomes of the key of a task that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeyAfterFailure {
    /// Another task may take it, if the batch API answered that the task failed; not after silence: it may have worked.
    #[default]
    Release,
    /// The task keeps it.
    Keep,
}

/// Delays between attempts: doubling from `base` to `max`, with jitter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BackoffPolicy {
    /// Delay after the first attempt, at most `max`; whole milliseconds.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::pause"))]
    pub base: Span,
    /// The longest delay: a day at most.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::pause"))]
    pub max: Span,
}

impl Default for BackoffPolicy {
    fn default() -> Self {
        Self { base: Span::from_secs(1), max: Span::from_secs(600) }
    }
}

impl From<&BackoffPolicy> for Backoff {
    fn from(policy: &BackoffPolicy) -> Self {
        Self { base: policy.base.0, max: policy.max.0 }
    }
}

fn one() -> u32 {
    1
}
/// With the default backoff these take more than an hour: a downstream's bad one is survived.
fn twenty() -> u32 {
    20
}
fn hundred() -> u32 {
    100
}
fn one_second() -> Span {
    Span::from_secs(1)
}
