//! Outcomes that a batch API posts for members of a call that it answers later.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::TaskId;
#[cfg(feature = "openapi")]
use crate::limits::BATCH_MEMBERS_MAX;

/// Outcomes of members of a batch: the body of `POST /batches/{id}/outcomes`. Members that are not named stay as they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OutcomesRequest {
    /// The members whose outcome is known, each once.
    #[cfg_attr(feature = "openapi", schemars(length(max = BATCH_MEMBERS_MAX)))]
    pub members: Vec<PostedOutcome>,
}

/// The outcome of one member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PostedOutcome {
    /// The task.
    pub id: TaskId,
    /// Its outcome.
    pub outcome: Posted,
    /// Why, if it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same as a short name, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// With `retry`: how many seconds the next call is to wait, at least.
    #[cfg_attr(feature = "openapi", schemars(range(min = 0)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<f64>,
    /// With `succeeded`: the result, any JSON. It is kept if the policy has `keep_results`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// An outcome as it is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Posted {
    /// It is done.
    Succeeded,
    /// It failed for good.
    Failed,
    /// It is to be called again.
    Retry,
}
