//! The tasks that a fan-out was opened with. They stand in its header, which is written before the first of them is stored, until all
//! are registered. So a sweep finds those of a worker that died in between.

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::{Fanout, FanoutState, Fanouts};
use crate::aws::StoreError;
use crate::aws::attributes::{Reader, binary, text, time};
use crate::clock::Timestamp;
use crate::ids::{ItemId, TaskId, derived, expand};
use crate::limits::OPENED_TASKS_BYTES_MAX;
use crate::messages::TaskRequest;
use crate::overdue::overdue;
use crate::store::producers::{compress, decompress};

/// The attributes: what the tasks are, while they are not registered; when their message was sent again; a hash of them, for good.
const UNREGISTERED: &str = "unregistered";
const WOKEN: &str = "tasks_woken_at";
const DIGEST: &str = "opened_tasks";

/// The tasks that a fan-out was opened with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedTasks {
    /// A hash of them, by which a repeated request is known.
    pub digest: Uuid,
    /// The tasks, compressed, until they are registered.
    pub unregistered: Option<Vec<u8>>,
    /// When the message to register them was sent again the last time.
    pub woken_at: Option<Timestamp>,
}

impl OpenedTasks {
    /// The tasks of a new fan-out, as the items of its only group.
    #[must_use]
    pub fn new(fanout: Uuid, tasks: &[TaskRequest]) -> Self {
        let texts: Vec<String> = tasks.iter().map(|task| task.content.to_string()).collect();
        let each = tasks.iter().zip(&texts).zip(0_u16..);
        let digest = derived::request_digest(each.map(|((task, text), index)| {
            (TaskId::Item(ItemId { fanout, group: fanout, index }), task.kind.as_str(), text.as_str())
        }));
        Self { digest, unregistered: Some(compress(tasks)), woken_at: None }
    }

    /// How many bytes the tasks take in the header, if that is too many.
    #[must_use]
    pub fn too_large(tasks: &[TaskRequest]) -> Option<usize> {
        Some(compress(tasks).len()).filter(|bytes| *bytes > OPENED_TASKS_BYTES_MAX)
    }

    pub(super) fn encode(&self) -> [(&'static str, Option<AttributeValue>); 3] {
        [
            (DIGEST, Some(text(self.digest))),
            (UNREGISTERED, self.unregistered.as_deref().map(binary)),
            (WOKEN, self.woken_at.map(time)),
        ]
    }

    pub(super) fn decode(reader: &Reader<'_>) -> Result<Option<Self>, StoreError> {
        let Some(digest) = reader.optional_parsed(DIGEST)? else { return Ok(None) };
        let unregistered = if reader.has(UNREGISTERED) { Some(reader.bytes(UNREGISTERED)?.to_vec()) } else { None };
        Ok(Some(Self { digest, unregistered, woken_at: reader.time(WOKEN)? }))
    }
}

impl Fanout {
    /// Whether tasks that it was opened with may not be registered yet. Those of one that has ended are not needed any more.
    #[must_use]
    pub fn to_register(&self) -> bool {
        self.state == FanoutState::Sealed && self.tasks.as_ref().is_some_and(|tasks| tasks.unregistered.is_some())
    }

    /// The tasks that it was opened with, as its items; none once they are registered.
    ///
    /// # Errors
    /// The record is corrupt.
    pub fn unregistered(&self) -> Result<Vec<TaskRequest>, StoreError> {
        let Some(compressed) = self.tasks.as_ref().and_then(|tasks| tasks.unregistered.as_deref()) else {
            return Ok(Vec::new());
        };
        let corrupt = |problem: String| StoreError::Corrupt {
            table: "fanouts",
            id: self.id.to_string(),
            attribute: UNREGISTERED,
            problem,
        };
        let tasks = decompress(compressed).map_err(corrupt)?;
        let groups = self.inline_groups();
        let items = expand(self.id, &groups).map(TaskId::Item);
        Ok(tasks.into_iter().zip(items).map(|(task, item)| TaskRequest { id: Some(item), ..task }).collect())
    }

    /// Whether the message to register its tasks is to be sent again.
    #[must_use]
    pub fn registers_late(&self, horizon: Timestamp, now: Timestamp) -> bool {
        let woken_at = self.tasks.as_ref().and_then(|tasks| tasks.woken_at);
        self.to_register() && overdue(self.created_at, woken_at, horizon, now)
    }
}

impl Fanouts {
    /// Notes that the tasks are registered that a fan-out was opened with.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn registered(&self, fanout: Uuid) -> Result<(), StoreError> {
        let change = self.table.change("id", fanout).remove([UNREGISTERED, WOKEN]).when_present(UNREGISTERED);
        change.send().await.map(drop)
    }

    /// Notes that the message to register its tasks is sent again. False: another sweep did so, or they are registered.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn note_tasks_woken(&self, fanout: &Fanout) -> Result<bool, StoreError> {
        let before = fanout.tasks.as_ref().and_then(|tasks| tasks.woken_at);
        let change = self.table.change("id", fanout.id).set(WOKEN, time(self.table.world.now()));
        Ok(change.when_present(UNREGISTERED).when_same(WOKEN, before.map(time)).send().await?.is_done())
    }
}

/// Some tasks, registered or not.
#[cfg(test)]
pub(super) fn any_opened_tasks(at: Timestamp, seed: u64) -> OpenedTasks {
    let tasks = OpenedTasks::new(Uuid::from_u128(seed.into()), &[]);
    let unregistered = tasks.unregistered.filter(|_| seed.is_multiple_of(2));
    OpenedTasks { woken_at: unregistered.is_some().then_some(at), unregistered, ..tasks }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(content: serde_json::Value) -> TaskRequest {
        TaskRequest { id: None, kind: "orders".to_owned(), content }
    }

    #[test]
    fn a_hash_tells_tasks_apart_by_kind_content_and_order() {
        let fanout = Uuid::from_u128(7);
        let (one, two) = (task(json!({"a": 1})), task(json!({"a": 2})));
        let digest = |tasks: &[TaskRequest]| OpenedTasks::new(fanout, tasks).digest;
        let first = digest(&[one.clone(), two.clone()]);
        assert_eq!(first, digest(&[one.clone(), two.clone()]));
        let other = TaskRequest { kind: "invoices".to_owned(), ..two.clone() };
        assert!(
            [digest(&[two, one.clone()]), digest(std::slice::from_ref(&one)), digest(&[one, other])]
                .iter()
                .all(|d| *d != first)
        );
    }

    #[test]
    fn what_a_header_cannot_hold_is_too_large() {
        let mut random = fastrand::Rng::with_seed(7);
        assert_eq!(OpenedTasks::too_large(&[task(json!("x".repeat(1_000_000)))]), None, "it is compressed");
        let large: Vec<TaskRequest> = (0..3)
            .map(|_| {
                let noise: String = (0..OPENED_TASKS_BYTES_MAX / 2).map(|_| random.alphanumeric()).collect();
                task(json!(noise))
            })
            .collect();
        assert!(OpenedTasks::too_large(&large).is_some_and(|bytes| bytes > OPENED_TASKS_BYTES_MAX));
    }
}
