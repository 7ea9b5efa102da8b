//! The row of an item that is reissued.

use std::collections::{BTreeMap, HashMap};

use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::TaskRequest;
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::fanouts::Fanout;
use fanfold::store::tasks::Task;
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
    pub(super) batches: &'a HashMap<Uuid, Batch>,
    /// What was to be registered for items that may have no task.
    pub(super) unregistered: &'a BTreeMap<ItemId, TaskRequest>,
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

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It ended without success, or is never called.
    MayBeCalled,
    /// It is not to be called again.
    Not(&'static str),
    /// It may yet be called.
    NotYet(&'static str),
    /// What became of it is not known.
    Forgotten,
}

impl Known<'_> {
    pub(super) fn row(&self, item: &ItemId, corrected: &BTreeMap<ItemId, Value>) -> Row {
        let Some(task) = self.tasks.get(&TaskId::Item(*item)) else {
            return match self.unregistered.get(item) {
                Some(TaskRequest { kind, content, .. }) => taken(kind, corrected.get(item).unwrap_or(content)),
                None => Row::Bad(format!("item {item} has no task of Fanfold's, or not any more")),
            };
        };
        match self.standing(task) {
            Standing::MayBeCalled => {}
            Standing::Not(why) => return Row::Bad(format!("item {item} {why}")),
            Standing::NotYet(why) => return Row::Stops(SourceError::again(format!("item {item} {why}"))),
            Standing::Forgotten => {
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

    fn standing(&self, task: &Task) -> Standing {
        if task.duplicate_of.is_some() {
            return Standing::Not("is a duplicate");
        }
        let Some(batch) = task.batch else {
            // Whatever waits for a fan-out that was cut short is never called.
            return match task.cancelled || self.old.state.cut_short() {
                true => Standing::MayBeCalled,
                false => Standing::NotYet("was acked as failed, but its task waits"),
            };
        };
        let place = self.batches.get(&batch).and_then(|batch| Some((batch, batch.members.slot(&task.id)?)));
        let Some((batch, slot)) = place else { return Standing::Forgotten };
        match batch.status {
            _ if batch.succeeded.get(slot) => Standing::Not("was acked as failed, but its task succeeded"),
            _ if batch.failed.get(slot) || batch.dropped.get(slot) => Standing::MayBeCalled,
            BatchStatus::Done => Standing::Forgotten,
            _ => Standing::NotYet("is in a batch that has not ended"),
        }
    }
}

fn taken(kind: &str, content: &Value) -> Row {
    Row::Taken(serde_json::json!({"kind": kind, "content": content}))
}
