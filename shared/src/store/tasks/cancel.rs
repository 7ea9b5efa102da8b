//! Cancelling: tasks that wait are claimed for no batch.
//!
//! What follows (the task's item is acked, its key released) touches other records. So the tasks are written down first, in a
//! note. Until everything is done, the index of what waits shows the note, under a name that no lane has.

use std::collections::{BTreeMap, HashSet};

use uuid::Uuid;

use super::Tasks;
use super::bundles::{SAME_SLOTS, decode, encode};
use super::record::{ID, PENDING, RANK, SAME_LANE, Standing, State, TTL};
use crate::aws::attributes::{Reader, binary, expiry, item, text, time};
use crate::aws::{Item, StoreError};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::grouping::{Bundle, BundleState};
use crate::ids::TaskId;
use crate::limits::{BUNDLED_RETENTION, CONTENTION_TRIES_MAX, RETENTION};
use crate::members::Members;

/// The prefix of the id of a note's record.
const PREFIX: &str = "cancel:";
/// The name under which the index of what waits shows notes. A lane's name has colons.
const CANCELLING: &str = "cancelling";
const MEMBERS: &str = "members";

/// A note of tasks that are being cancelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelNote {
    /// The tasks.
    pub tasks: Members,
    /// When it was written.
    pub created_at: Timestamp,
}

/// The id of the note, if an entry of the index is one.
pub(super) fn note_in(item: &Item) -> Result<Option<Uuid>, StoreError> {
    let reader = Reader::new("tasks", ID, item);
    let id = reader.text(ID)?.strip_prefix(PREFIX);
    id.map(|id| id.parse().map_err(|error| reader.corrupt(ID, error))).transpose()
}

/// The record of a note: open, or closed until it expires.
fn note(id: Uuid, tasks: &Members, created_at: Timestamp, expires: Option<Timestamp>) -> Item {
    item([
        (ID, Some(text(format_args!("{PREFIX}{id}")))),
        (MEMBERS, Some(binary(&tasks.pack()))),
        (RANK, Some(time(created_at))),
        (PENDING, expires.is_none().then(|| text(CANCELLING))),
        (TTL, expires.map(expiry)),
    ])
}

/// What a record says of a note.
fn read_note(item: &Item) -> Result<CancelNote, StoreError> {
    let reader = Reader::new("tasks", ID, item);
    let tasks = Members::unpack(reader.bytes(MEMBERS)?).map_err(|error| reader.corrupt(MEMBERS, error))?;
    Ok(CancelNote { tasks, created_at: Timestamp(reader.number(RANK)?) })
}

impl Tasks {
    /// Writes down tasks that are going to be cancelled.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn note_cancelling(&self, id: Uuid, tasks: &Members) -> Result<CancelNote, StoreError> {
        let created_at = self.table.world.now();
        // A record that is there already was written by this request: no other one knows the id.
        self.table.insert_each("noting what is cancelled", vec![note(id, tasks, created_at, None)], |_| {}).await?;
        Ok(CancelNote { tasks: tasks.clone(), created_at })
    }

    /// A note that is open, if there is one under this id.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn cancelling(&self, id: Uuid) -> Result<Option<CancelNote>, StoreError> {
        let items = self.table.get_many(ID, &[format!("{PREFIX}{id}")], &[], true).await?;
        let Some(item) = items.first().filter(|item| item.contains_key(PENDING)) else { return Ok(None) };
        read_note(item).map(Some)
    }

    /// Closes a note: everything is done.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn close_cancelling(&self, id: Uuid, done: &CancelNote) -> Result<(), StoreError> {
        let record = |expires| note(id, &done.tasks, done.created_at, expires);
        let close = vec![(record(None), record(Some(self.table.expires(RETENTION))))];
        self.table.change_each("closing a cancellation", &[ID], close).await.map(|_| ())
    }

    /// Cancels those of these tasks that no batch has claimed, by conditional writes. Returns the tasks that are cancelled, now or
    /// before. A task whose bundle still fills is not cancelled. A task of a dead bundle is freed first.
    ///
    /// # Errors
    /// The table cannot be read or written, or a record is corrupt.
    pub async fn cancel(&self, ids: &[TaskId]) -> Result<Vec<TaskId>, StoreError> {
        let standings = self.standings(ids, true).await?;
        let named: Vec<Uuid> = standings.iter().filter_map(|task| task.state.bundle()).collect();
        let bundles = self.bundles(&named, true).await?;
        let (mut cancelled, mut alone, mut dead) = (Vec::new(), Vec::new(), Vec::new());
        let mut wanted: BTreeMap<Uuid, Bits> = BTreeMap::new();
        for task in standings {
            match task.state {
                State::Created => alone.push(task),
                State::Cancelled => cancelled.push(task.id),
                State::Batched(_) | State::Duplicate(_) => {}
                State::Bundled(id) => match bundles.get(&id) {
                    Some(bundle) if bundle.state == BundleState::Dead => dead.push(task),
                    Some(bundle) => {
                        let slots = wanted.entry(id).or_default();
                        bundle.members.slot(&task.id).into_iter().for_each(|slot| slots.set(slot));
                    }
                    None => {}
                },
            }
        }
        self.free(dead.clone()).await?;
        alone.extend(dead.into_iter().map(|task| Standing { state: State::Created, ttl: None, ..task }));
        cancelled.extend(self.cancel_alone(&alone).await?);
        cancelled.extend(self.cancel_slots(wanted, bundles).await?);
        Ok(cancelled)
    }

    /// Cancels tasks that wait on their own.
    async fn cancel_alone(&self, tasks: &[Standing]) -> Result<Vec<TaskId>, StoreError> {
        let until = self.table.expires(RETENTION).seconds();
        let cancel = |task: &Standing| {
            let after = Standing { state: State::Cancelled, ttl: Some(until), ..task.clone() };
            (Standing { ttl: None, ..task.clone() }.encode(), after.encode())
        };
        let mut lost = HashSet::new();
        for (at, item) in
            self.table.change_each("cancelling tasks", &SAME_LANE, tasks.iter().map(cancel).collect()).await?
        {
            // It may have been this write, whose answer was lost.
            let stands = item.as_ref().map(Standing::decode).transpose()?;
            if stands.is_none_or(|task| task.state != State::Cancelled) {
                lost.insert(at);
            }
        }
        Ok(tasks.iter().enumerate().filter(|(at, _)| !lost.contains(at)).map(|(_, task)| task.id).collect())
    }

    /// Cancels slots of bundles, on condition that each bundle is as it was read.
    async fn cancel_slots(
        &self,
        wanted: BTreeMap<Uuid, Bits>,
        mut read: BTreeMap<Uuid, Bundle>,
    ) -> Result<Vec<TaskId>, StoreError> {
        let mut cancelled = Vec::new();
        let mut open: Vec<Bundle> = wanted.keys().filter_map(|id| read.remove(id)).collect();
        for _ in 0..CONTENTION_TRIES_MAX {
            let expires = self.table.expires(BUNDLED_RETENTION);
            let (mut changes, mut through) = (Vec::new(), Vec::new());
            for bundle in open {
                match bundle.cancel(&wanted[&bundle.id]) {
                    Some(after) => changes.push((bundle, after)),
                    None => through.push(bundle),
                }
            }
            let writes =
                changes.iter().map(|(bundle, after)| (encode(bundle, expires), encode(after, expires))).collect();
            let refused = self.table.change_each("cancelling tasks", &SAME_SLOTS, writes).await?;
            let others: HashSet<usize> = refused.iter().map(|(at, _)| *at).collect();
            let won = changes.into_iter().enumerate().filter(|(at, _)| !others.contains(at));
            through.extend(won.map(|(_, (_, after))| after));
            for bundle in through {
                let slots = bundle.cancelled().and(&wanted[&bundle.id]);
                cancelled.extend(bundle.tasks(&slots));
            }
            open = refused.iter().filter_map(|(_, item)| item.as_ref()).map(decode).collect::<Result<_, _>>()?;
            if open.is_empty() {
                return Ok(cancelled);
            }
        }
        Err(StoreError::Contended { what: "cancelling tasks".to_owned() })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{any_id, any_task, any_time};

    proptest! {
        #[test]
        fn what_is_written_is_read(
            id in any_id(),
            tasks in prop::collection::vec(any_task(), 0..9),
            (created_at, closed) in (any_time(), prop::option::of(any_time())),
        ) {
            let noted = CancelNote { tasks: Members::new(tasks), created_at };
            let item = note(id, &noted.tasks, created_at, closed);
            prop_assert_eq!(note_in(&item).unwrap(), Some(id));
            prop_assert_eq!(read_note(&item).unwrap(), noted);
            prop_assert_eq!(item.contains_key(PENDING), closed.is_none());
        }
    }
}
