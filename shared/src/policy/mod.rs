//! Policies: how tasks of one kind are targeted, grouped, paced and handled.

mod batch_api;
mod bounded;
mod check;
mod compiled;
mod destination;
mod expression;
mod expressions;
mod fields;
mod head_start;
mod kind;
mod matches;
mod names;
mod presets;
mod rate;
mod span;
mod tree;
mod url;
mod waits;
mod weight;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use batch_api::{BatchApi, Mode, Way};
pub use check::{FieldError, PolicyError};
pub use compiled::{Assignment, CompiledPolicy, Values};
#[cfg(feature = "openapi")]
pub(crate) use destination::{ANY_QUEUE, CALLBACK_ID, EVENT_BUS, QUEUE, TASK_TOKEN};
pub use destination::{Destination, NoticesQueue, domain, queue_url};
pub(crate) use expression::within_bounds;
pub use expression::{Expression, ExpressionError, Subject};
pub use head_start::HeadStart;
pub use kind::{KIND_ALLOWED, bad_kind, is_kind, no_policy, unknown_kind};
pub use rate::{Per, Rate, Unit};
pub use span::Span;
pub use weight::Weight;

use crate::backoff::Backoff;
use crate::ids::derived;
use crate::limits::{ATTEMPTS_DEFAULT, BACKOFF_DEFAULT, BATCH_MEMBERS_DEFAULT, LINGER_DEFAULT};
#[cfg(feature = "openapi")]
use crate::limits::{
    ATTEMPTS_MAX, BATCH_BYTES_MAX, BATCH_MEMBERS_MAX, CALLS_MAX, EXPRESSION_BYTES_MAX, IN_FLIGHT_MAX, PARTITIONS_MAX,
};

/// How tasks of one kind are targeted, grouped, paced and handled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "openapi", schemars(rename = "Policy"))]
#[serde(remote = "Self", deny_unknown_fields, expecting = "struct Policy")]
pub struct Policy {
    /// The kind of task this policy is for: letters, digits, `.`, `_`, `-`.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::kind_field"))]
    pub kind: String,
    /// CEL expression over `kind` and `content`: tasks with the same value may share a batch.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    pub target: String,
    /// CEL expression over `kind` and `content`: for each value one task is accepted. It also decides the partition.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// CEL expression over `kind` and `content`: for each value of it a key is accepted once, whichever fan-outs the tasks belong to.
    /// By default a key is accepted once per fan-out, and once among the tasks without one.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// How many lanes each target is split into.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = PARTITIONS_MAX)))]
    #[serde(default = "one", deserialize_with = "crate::whole::u32")]
    pub partitions: u32,
    /// The most members of a batch. By default 100, or what the preset of the batch API says.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = BATCH_MEMBERS_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::whole::optional_u32")]
    pub max_batch: Option<u32>,
    /// The most bytes of a call's members: their contents as JSON, and 128 bytes more for each. A task that has more goes alone.
    /// By default 4 MiB.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = BATCH_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::whole::optional_u32")]
    pub max_batch_bytes: Option<u32>,
    /// CEL expression over `kind` and `content`: a task's weight, a number that is rounded to thousandths. Requires `max_weight`.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// The most weight of a batch. A task that weighs more goes alone.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_weight"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_weight: Option<Weight>,
    /// CEL expression over `kind` and `content`: two tasks with the same value do not share a batch.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<String>,
    /// CEL expression over `kind` and `content`, true or false: while a task waits for which it is true, its lane does not linger.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flush_when: Option<String>,
    /// CEL expression over `kind` and `content`: a task's head start, in seconds or as a text such as `10m`; none if it is null. In the
    /// order of its lane the task counts as registered that much earlier. At most 7 days.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = EXPRESSION_BYTES_MAX), extend("x-max-bytes" = EXPRESSION_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// How long a batch that is not full waits for more tasks: up to 15 minutes, whole milliseconds.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::delay"))]
    #[serde(default = "linger")]
    pub linger: Span,
    /// A batch that is not full is formed once no task has come to its lane for this time: less than `linger`, whole
    /// milliseconds.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_wait"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Span>,
    /// Once the `linger` is over, a batch with fewer members than this waits on, for at most `min_batch_wait`. At most `max_batch`.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = BATCH_MEMBERS_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::whole::optional_u32")]
    pub min_batch: Option<u32>,
    /// How long a batch with fewer than `min_batch` members waits on after its `linger`: up to 15 minutes, whole milliseconds.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_wait"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_batch_wait: Option<Span>,
    /// How many batches of a lane are handled at once.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = IN_FLIGHT_MAX)))]
    #[serde(default = "one", deserialize_with = "crate::whole::u32")]
    pub max_in_flight: u32,
    /// How fast tasks of one lane go to the batch API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane_rate: Option<Rate>,
    /// How many calls of the batch API may run at once, over all lanes of the kind. Without it, as many as the stack gives to
    /// one kind.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = CALLS_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::whole::optional_u32")]
    pub max_calls: Option<u32>,
    /// How fast tasks of all lanes of the kind together go to the batch API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind_rate: Option<Rate>,
    /// How many calls are made for a batch before its members fail. Calls whose worker was lost do not count.
    #[cfg_attr(feature = "openapi", schemars(range(min = 1, max = ATTEMPTS_MAX)))]
    #[serde(default = "attempts", deserialize_with = "crate::whole::u32")]
    pub max_attempts: u32,
    /// Delays between attempts.
    #[serde(default)]
    pub backoff: BackoffPolicy,
    /// What to do when the batch API refuses every call, as with a wrong path or key, 429 or 503. `wait`: such calls use up no
    /// attempt, and after a few in a row the kind stands still. `fail`: they are failed calls like any other.
    #[serde(default)]
    pub refusals: Refusals,
    /// Whether another task may have the key of a task that failed.
    #[serde(default)]
    pub key_after_failure: KeyAfterFailure,
    /// Whether results are kept that the batch API returns for members that succeeded.
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub keep_results: bool,
    /// The batch API.
    pub batch_api: BatchApi,
    /// Where Fanfold reports failed tasks, and that the kind stands still or resumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Destination>,
}

/// What to do when the batch API refuses every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refusals {
    /// Such calls use up no attempt. After a few in a row the kind stands still until the batch API works again.
    #[default]
    Wait,
    /// Such calls use up attempts like other failed calls, or fail the members at once.
    Fail,
}

impl Policy {
    /// Identifies a version of the policy: what is known of a batch API holds for the version it was called by.
    #[must_use]
    pub fn version(&self) -> Uuid {
        derived::policy_version(&serde_json::to_string(self).unwrap_or_default())
    }

    /// The most members of a batch.
    #[must_use]
    pub fn max_batch(&self) -> u32 {
        self.max_batch.unwrap_or(BATCH_MEMBERS_DEFAULT)
    }

    /// How many calls of its batch API may run at once. `places_max`: how many one kind may have.
    #[must_use]
    pub fn calls_at_once(&self, places_max: u32) -> u32 {
        self.max_calls.map_or(places_max, |calls| calls.min(places_max))
    }
}

/// Whether another task may have the key of a task that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KeyAfterFailure {
    /// Another task may take it if the batch API answered that the task failed, but not after silence: the call may have worked.
    #[default]
    Release,
    /// The task keeps it.
    Keep,
}

/// Delays between attempts: they double from `base` to `max`, with jitter.
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
        Self { base: Span(BACKOFF_DEFAULT.base), max: Span(BACKOFF_DEFAULT.max) }
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

fn attempts() -> u32 {
    ATTEMPTS_DEFAULT
}

fn linger() -> Span {
    Span(LINGER_DEFAULT)
}
