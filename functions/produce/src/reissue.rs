//! The source of a reissue: the items of a fan-out that failed, with their tasks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fanfold::ids::{ItemId, TaskId};
use fanfold::limits::{KEYS_PER_READ_MAX, OBJECT_PAGE_BYTES, REISSUE_PAGE_ITEMS};
use fanfold::policy::no_policy;
use fanfold::producing::{Given, Reissue};
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::fanouts::Fanout;
use fanfold::store::producers::Partition;
use fanfold::store::tasks::Task;
use fanfold::tracking::ItemCursor;
use serde_json::Value;
use uuid::Uuid;

use crate::{Produce, ProduceError, SourceAnswer, SourceError};

impl Produce {
    /// A page of the items of another fan-out that failed. It is kept before it is used, as records expire, and contents may be
    /// corrected. Only tasks that ended without success are taken, whatever the item's bit says: others are named as bad rows.
    pub(crate) async fn ask_reissue(
        &self,
        reissue: &Reissue,
        at: &Partition,
        cursor: Value,
    ) -> Result<SourceAnswer, ProduceError> {
        let gone = || SourceError::for_good(format!("fan-out {} is not known any more", reissue.fanout));
        let old = self.tracking.fanouts.get(reissue.fanout).await?.ok_or_else(gone)?;
        let after: Option<ItemCursor> = serde_json::from_value(cursor).map_err(SourceError::for_good)?;
        if after.is_none() && !self.tracking.all_listed(&old).await? {
            return Err(SourceError::again(format!("not all groups of fan-out {} can be found yet", old.id)).into());
        }
        let page = self.tracking.items_in(&old, after, reissue.states(), REISSUE_PAGE_ITEMS).await?;
        let corrected = self.corrected(reissue, at.fanout).await?;
        let (mut rows, mut bytes, mut next) = (Vec::new(), 0, page.next);
        let mut taken = Vec::new();
        'chunks: for chunk in page.items.chunks(KEYS_PER_READ_MAX) {
            let ids: Vec<TaskId> = chunk.iter().map(|item| TaskId::Item(*item)).collect();
            let tasks = self.tasks.get_many(&ids).await?;
            let batches = self.batches_of(&tasks).await?;
            for item in chunk {
                let row = row(item, &tasks, &batches, &corrected, &old);
                bytes += row.as_ref().map_or(0, |row| row.to_string().len());
                if bytes > OBJECT_PAGE_BYTES && !rows.is_empty() {
                    break 'chunks;
                }
                if row.is_ok() {
                    taken.push(TaskId::Item(*item));
                }
                rows.push(Given { kind: None, row, at: None });
                next = Some(ItemCursor::after(item));
            }
        }
        if rows.len() == page.items.len() {
            next = page.next;
        }
        complete(reissue, &old, at.rows + rows.len() as u64, next.is_none())?;
        self.release(&taken, &rows).await?;
        Ok(SourceAnswer { rows, cursor: next.map(|next| serde_json::json!(next)) })
    }

    async fn corrected(&self, reissue: &Reissue, fanout: Uuid) -> Result<BTreeMap<ItemId, Value>, ProduceError> {
        if reissue.contents.is_none() {
            return Ok(BTreeMap::new());
        }
        let gone = || SourceError::for_good("the corrected contents are not known any more");
        Ok(self.producing.producers.corrected(fanout).await?.ok_or_else(gone)?.contents)
    }

    async fn batches_of(&self, tasks: &HashMap<TaskId, Task>) -> Result<HashMap<Uuid, Batch>, ProduceError> {
        let ids: BTreeSet<Uuid> = tasks.values().filter_map(|task| task.batch).collect();
        let batches = self.batches.get_many(&ids.into_iter().collect::<Vec<_>>()).await?;
        Ok(batches.into_iter().map(|batch| (batch.id, batch)).collect())
    }

    /// Releases the keys that failed tasks still have where fan-outs share keys: their policy keeps them, or a call without an
    /// answer may have worked. Whoever reissues them wants them called again; they would be duplicates of themselves.
    async fn release(&self, taken: &[TaskId], rows: &[Given]) -> Result<(), ProduceError> {
        let kinds: BTreeSet<&str> = rows.iter().filter_map(Given::kind).collect();
        let policies = self.registrar.policies(&kinds).await?;
        // Once it is stored again, its items go on. Without this they would be bad rows.
        if let Some(kind) = kinds.iter().find(|kind| policies.get(**kind).is_none_or(Option::is_none)) {
            return Err(SourceError::again(no_policy(kind)).into());
        }
        let scoped = policies.values().flatten().any(|policy| policy.policy.scope.is_some());
        if scoped && !taken.is_empty() {
            self.tasks.release_keys(taken).await?;
        }
        Ok(())
    }
}

/// The row of an item: its task, or why it has none that may be called again.
fn row(
    item: &ItemId,
    tasks: &HashMap<TaskId, Task>,
    batches: &HashMap<Uuid, Batch>,
    corrected: &BTreeMap<ItemId, Value>,
    old: &Fanout,
) -> Result<Value, String> {
    let not = |why: &str| format!("item {item} {why}");
    let Some(task) = tasks.get(&TaskId::Item(*item)) else {
        return Err(not("has no task of Fanfold's, or not any more"));
    };
    if let Some(why) = unfinished(task, batches, old) {
        return Err(not(why));
    }
    let content = match corrected.get(item) {
        Some(content) => content.clone(),
        None => {
            serde_json::from_str(task.content.as_deref().unwrap_or("null")).map_err(|error| not(&error.to_string()))?
        }
    };
    Ok(serde_json::json!({"kind": task.lane.kind, "content": content}))
}

/// Why a task may not be called again, if it may not: it succeeded, or may yet.
fn unfinished(task: &Task, batches: &HashMap<Uuid, Batch>, old: &Fanout) -> Option<&'static str> {
    if task.duplicate_of.is_some() {
        return Some("is a duplicate");
    }
    let Some(batch) = task.batch else {
        // Whatever waits for a fan-out that was cut short is never called.
        return (!task.cancelled && !old.state.cut_short()).then_some("was acked as failed, but its task waits");
    };
    // A batch goes before its tasks. What it says is in the item's bit, too.
    let (batch, slot) = batches.get(&batch).and_then(|batch| Some((batch, batch.members.slot(&task.id)?)))?;
    let ended = batch.failed.get(slot) || batch.dropped.get(slot);
    match batch.succeeded.get(slot) {
        true => Some("was acked as failed, but its task succeeded"),
        false if ended => None,
        // Its leader is gone, or it is called right now.
        false if batch.status == BatchStatus::Done => None,
        false => Some("is in a batch that has not ended"),
    }
}

/// Whether the last page leaves nothing out.
fn complete(reissue: &Reissue, old: &Fanout, rows: u64, last: bool) -> Result<(), SourceError> {
    let all = reissue.count(old);
    if last && rows != all {
        let problem = format!("{rows} of {all} items of fan-out {} can be found: its records expire", old.id);
        return Err(SourceError::again(problem));
    }
    Ok(())
}
