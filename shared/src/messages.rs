//! The messages steps send each other, and what users send. All are hints or requests: the tables hold the truth.

mod ack;
mod count;
mod notify;
mod outcomes;
mod produce;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::ids::TaskId;
use crate::lane::Lane;
#[cfg(feature = "openapi")]
use crate::limits::{CONTENT_BYTES_MAX, CONTENT_DEPTH_MAX, TASKS_PER_REQUEST_MAX};
use crate::waiting::Waiting;

pub use ack::{AckEntry, AckRequest, GroupMask, mask};
pub use count::{AckMessage, CountEntry, CountRequest};
pub use notify::{About, NotifyMessage, Undelivered};
pub use outcomes::{OutcomesRequest, Posted, PostedOutcome};
pub use produce::ProduceMessage;

/// A task to register.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TaskRequest {
    /// Its id: for an item of a fan-out, the item's id; otherwise a UUID of your own. By default Fanfold makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<TaskId>,
    /// Its kind. It must have a policy.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::kind_field"))]
    pub kind: String,
    /// What the batch API receives for it: any JSON, within the limits of size and nesting.
    #[cfg_attr(feature = "openapi", schemars(extend("x-max-bytes" = CONTENT_BYTES_MAX, "x-max-depth" = CONTENT_DEPTH_MAX)))]
    pub content: Value,
}

/// Tasks to register: the body of `POST /tasks`, and of messages to the queue `register`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// The tasks. Two of them may not have the same id.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = TASKS_PER_REQUEST_MAX)))]
    pub tasks: Vec<TaskRequest>,
}

/// What a message of the register queue may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "RegisterFields")]
pub enum RegisterMessage {
    /// A request, as over HTTP.
    Request(RegisterRequest),
    /// One task.
    Task(TaskRequest),
}

impl RegisterMessage {
    /// The tasks it brings.
    #[must_use]
    pub fn tasks(self) -> Vec<TaskRequest> {
        match self {
            Self::Request(request) => request.tasks,
            Self::Task(task) => vec![task],
        }
    }
}

/// The fields of both forms: only all of them show which form was meant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegisterFields {
    tasks: Option<Vec<TaskRequest>>,
    id: Option<TaskId>,
    kind: Option<String>,
    #[serde(default, deserialize_with = "present")]
    content: Option<Value>,
}

/// A field that is there, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl TryFrom<RegisterFields> for RegisterMessage {
    type Error = &'static str;

    fn try_from(fields: RegisterFields) -> Result<Self, Self::Error> {
        let RegisterFields { tasks, id, kind, content } = fields;
        match (tasks, kind, content) {
            (Some(tasks), None, None) if id.is_none() => Ok(Self::Request(RegisterRequest { tasks })),
            (Some(_), ..) => Err("`tasks` stands beside fields of a single task, one of the two is allowed"),
            (None, Some(kind), Some(content)) => Ok(Self::Task(TaskRequest { id, kind, content })),
            (None, Some(_), None) => Err("missing field `content`"),
            (None, None, Some(_)) => Err("missing field `kind`"),
            (None, None, None) => Err("neither `tasks` nor `kind` and `content` of a single task are there"),
        }
    }
}

/// A batch with outcomes, and its lane. The lane's lock names the batch until all its acks and notices are done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneBatch {
    /// The batch.
    pub batch: Uuid,
    /// Its lane.
    pub lane: Lane,
}

/// Tasks that need a leader: the hint that runs an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElectMessage {
    /// The lane.
    pub lane: Lane,
    /// The tasks that need a leader. The workflow ends when none of them waits any more. Empty: it only wakes the lane.
    #[serde(default)]
    pub waiting: Waiting,
    /// The workflow.
    pub workflow: Uuid,
    /// How often the workflow lost. Each election that it wins forms a batch of its own.
    #[serde(default)]
    pub tries: u32,
    /// One of its tasks ends the linger of the lane: a leader that lingers looks at the lane again.
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub flushes: bool,
}

/// A leader is to form its batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupMessage {
    /// The lane.
    pub lane: Lane,
    /// The batch to be formed, which holds the lane's lock.
    pub batch: Uuid,
    /// The election that made it the leader.
    pub epoch: u64,
    /// Tasks that the index may not show to the leader yet.
    #[serde(default)]
    pub waiting: Waiting,
    /// The leader looks whether its tasks are to wait for more: if so, the message is sent again after some time.
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub lingers: bool,
    /// For how many milliseconds the leader has lingered by then, if it still does.
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub lingered_ms: u64,
    /// For how many milliseconds its worker waits before it looks, less than a second: SQS delays by whole seconds.
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub worker_waits: u64,
    /// It comes beside the leader's own message, which is on its way: only if the batch is to be formed now, it has an effect.
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub hurries: bool,
}

/// A batch is to be handed to the batch API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandleMessage {
    /// The batch.
    pub batch: Uuid,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Its leader left tasks waiting: most likely the batch leads on when it ends.
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub more: bool,
}
