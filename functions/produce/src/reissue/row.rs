//! The row of an item that is reissued.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::TaskRequest;
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::fanouts::Fanout;
use fanfold::store::tasks::{Task, TaskStatus};
use serde_json::Value;
use uuid::Uuid;

use crate::SourceError;

/// What is known of items of a fan-out that has ended.
pub(super) struct Known<'a> {
    /// The fan-out.
    pub(super) old: &'a Fanout,
    /// The tasks of the items.
    pub(super) tasks: &'a HashMap<TaskId, Task>,
    /// The batches that claimed them, as far as their records are there.
    pub(super) batches: &'a BTreeMap<Uuid, Batch>,
    /// What was to be registered for items that may have no task.
    pub(super) unregistered: &'a BTreeMap<ItemId, TaskRequest>,
    /// The items whose tasks have expired.
    pub(super) expired: &'a BTreeSet<ItemId>,
}

/// What becomes of an item.
#[derive(Debug)]
pub(super) enum Row {
    /// Its task is registered again.
    Taken(Value),
    /// There is nothing to register, for good; why.
    Bad(String),
    /// That cannot be said yet, or not any more.
    Stops(SourceError),
}

/// Whether a task may be called as the item of another fan-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MayBeCalled {
    /// It ended without success, or is never called.
    Yes,
    /// It is not to be called again.
    Not(&'static str),
    /// It may yet be called.
    NotYet(&'static str),
    /// What became of it is not known.
    Forgotten,
}

impl Known<'_> {
    pub(super) fn row(&self, item: &ItemId, corrected: &BTreeMap<ItemId, Value>) -> Row {
        let Some(task) = self.tasks.get(&TaskId::Item(*item)) else { return self.without_task(item, corrected) };
        match self.may_be_called(task) {
            MayBeCalled::Yes => {}
            MayBeCalled::Not(why) => return Row::Bad(format!("item {item} {why}")),
            MayBeCalled::NotYet(why) => return Row::Stops(SourceError::again(format!("item {item} {why}"))),
            MayBeCalled::Forgotten => {
                let why = "is in a batch whose record expired: whether its task succeeded is not known any more";
                return Row::Stops(SourceError::for_good(format!("item {item} {why}")));
            }
        }
        if let Some(content) = corrected.get(item) {
            return taken(&task.lane.kind, content);
        }
        match serde_json::from_str(task.content.as_deref().unwrap_or("null")) {
            Ok(content) => taken(&task.lane.kind, &content),
            Err(error) => Row::Bad(format!("item {item}: {error}")),
        }
    }

    fn without_task(&self, item: &ItemId, corrected: &BTreeMap<ItemId, Value>) -> Row {
        if let Some(TaskRequest { kind, content, .. }) = self.unregistered.get(item) {
            return taken(kind, corrected.get(item).unwrap_or(content));
        }
        if self.expired.contains(item) {
            let why = "has no task any more: its record expired, and what is to be called is not known";
            return Row::Stops(SourceError::for_good(format!("item {item} {why}")));
        }
        Row::Bad(format!("item {item} has no task of Fanfold's, or not any more"))
    }

    fn may_be_called(&self, task: &Task) -> MayBeCalled {
        let batch = task.batch.and_then(|batch| self.batches.get(&batch));
        match task.status(batch) {
            TaskStatus::Failed | TaskStatus::Dropped | TaskStatus::Cancelled => MayBeCalled::Yes,
            // Whatever waits for a fan-out that was cut short is never called.
            TaskStatus::Created if self.old.state.cut_short() => MayBeCalled::Yes,
            TaskStatus::Created => MayBeCalled::NotYet("was acked as failed, but its task waits"),
            TaskStatus::Duplicate => MayBeCalled::Not("is a duplicate"),
            TaskStatus::Succeeded => MayBeCalled::Not("was acked as failed, but its task succeeded"),
            TaskStatus::Batched | TaskStatus::InProgress if batch.is_some_and(|batch| goes_on(batch, task)) => {
                MayBeCalled::NotYet("is in a batch that has not ended")
            }
            TaskStatus::Batched | TaskStatus::InProgress => MayBeCalled::Forgotten,
        }
    }
}

/// Whether a batch has not ended, and the task is its member.
fn goes_on(batch: &Batch, task: &Task) -> bool {
    batch.status != BatchStatus::Done && batch.members.slot(&task.id).is_some()
}

fn taken(kind: &str, content: &Value) -> Row {
    Row::Taken(serde_json::json!({"kind": kind, "content": content}))
}
