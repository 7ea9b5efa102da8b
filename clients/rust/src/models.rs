//! What the API returns.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::ids::{Item, ItemGroup, expand};

/// The state of a fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// Items may be added.
    Open,
    /// No more items can be added.
    Sealed,
    /// Sealed, and every item was acked.
    Completed,
    /// More items failed than it tolerates.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It had no activity for its idle limit.
    Expired,
    /// A state that this client does not know.
    #[serde(other)]
    Unknown,
}

impl State {
    /// Its name, as the API has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Sealed => "sealed",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What became of a task that succeeded or failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskResult {
    /// The task.
    pub id: String,
    /// Its outcome: `succeeded` or `failed`.
    pub outcome: String,
    /// What the batch API returned for it, if results are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why its result was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_left_out: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same as a short name or number, if the batch API returned one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// States by which items can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemsState {
    /// Acked as failed.
    Failed,
    /// Not acked.
    Pending,
    /// Acked as succeeded.
    Succeeded,
    /// A duplicate: another task has its key.
    Duplicate,
    /// Not done when the fan-out ended.
    Missing,
}

impl ItemsState {
    /// Its name, as the API has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Pending => "pending",
            Self::Succeeded => "succeeded",
            Self::Duplicate => "duplicate",
            Self::Missing => "missing",
        }
    }
}

/// A fan-out as the API returns it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self")]
pub struct Fanout {
    /// Its id.
    pub id: Uuid,
    /// Its state.
    pub state: State,
    /// Whether it is sealed and every item was acked.
    pub complete: bool,
    /// Whether it has ended and all counts are final; see [`Self::has_ended`].
    pub ended: Option<bool>,
    /// Items added.
    #[serde(default)]
    pub total: u64,
    /// Items acked.
    #[serde(default)]
    pub done: u64,
    /// Those of them that succeeded.
    #[serde(default)]
    pub succeeded: u64,
    /// Those of them that failed.
    #[serde(default)]
    pub failed: u64,
    /// Those of them that are duplicates: another task has their key.
    #[serde(default)]
    pub duplicates: u64,
    /// Items that were not done when it failed, expired or was cancelled.
    #[serde(default)]
    pub missing: u64,
    /// The producer's own name for it.
    #[serde(default)]
    pub user_key: Option<String>,
    /// From `open`: the groups of its items. Otherwise those in the response: a small fan-out's only group.
    #[serde(default)]
    pub groups: Vec<ItemGroup>,
    /// When it was opened, in milliseconds since 1970.
    #[serde(default)]
    pub created_at: u64,
    /// The whole response.
    #[serde(skip)]
    pub raw: Value,
}

impl<'de> Deserialize<'de> for Fanout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Value::deserialize(deserializer)?;
        let fanout = Self::deserialize(&raw).map_err(serde::de::Error::custom)?;
        Ok(Self { raw, ..fanout })
    }
}

impl Fanout {
    /// Whether it has ended and all counts are final.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.unwrap_or(self.complete)
    }

    /// The items of `groups`, in order.
    pub fn items(&self) -> impl Iterator<Item = Item> {
        expand(self.id, &self.groups)
    }
}

/// Items that were added to a fan-out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedItems {
    /// The fan-out.
    pub fanout: Uuid,
    /// Their groups.
    pub groups: Vec<ItemGroup>,
}

impl AddedItems {
    /// The items, in order.
    pub fn items(&self) -> impl Iterator<Item = Item> {
        expand(self.fanout, &self.groups)
    }
}

/// How a fan-out is tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// By its items, each of which counts once.
    Exact,
    /// By counters: what is counted twice counts twice.
    Estimated,
}

/// A count in one estimated fan-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// The fan-out.
    pub fanout: Uuid,
    /// How many more are to be done.
    pub add: u32,
    /// How many have succeeded.
    pub succeeded: u32,
    /// How many have failed.
    pub failed: u32,
}

/// An estimated fan-out after a count.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CountedFanout {
    /// Its id.
    pub id: Uuid,
    /// Its state.
    pub state: State,
    /// Whether it is sealed, and as many were counted as done as were added.
    pub complete: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// The producer's own name for it.
    pub user_key: Option<String>,
    /// How many were added.
    pub total: u64,
    /// How many were counted as done; more than `total` if some were counted twice, or before they were added.
    pub done: u64,
    /// Those of them that failed.
    pub failed: u64,
}

/// An estimated fan-out in which nothing was counted. With the code `unavailable` the count may have been applied.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RefusedCount {
    /// The fan-out.
    pub fanout: Uuid,
    /// The problem's name; codes never change.
    pub code: String,
    /// Why.
    pub problem: String,
}

/// The result of counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct CountAnswer {
    /// The fan-outs with their new counts.
    pub fanouts: Vec<CountedFanout>,
    /// Those in which nothing was counted.
    pub refused: Vec<RefusedCount>,
}

/// A fan-out after an ack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckedFanout {
    /// Its id.
    pub id: Uuid,
    /// Its state.
    pub state: State,
    /// Whether it is sealed and every item was acked.
    pub complete: bool,
    /// The producer's own name for it.
    pub user_key: Option<String>,
}

/// Items of a group whose acks were refused, because they do not exist (any more).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The fan-out.
    pub fanout: Uuid,
    /// The item group.
    pub group: Uuid,
    /// Their indexes (`5`) and ranges of them (`7-9`). Empty if the response does not name them.
    #[serde(default)]
    pub items: Vec<String>,
    /// Why.
    pub problem: String,
}

/// The result of acks.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct AckAnswer {
    /// The fan-outs with their new states.
    pub fanouts: Vec<AckedFanout>,
    /// Acks of items that do not exist. All others were applied.
    pub refused: Vec<Refused>,
}
