//! What the task that follows a fan-out's end receives about its items: what became of each, as the tables show it then.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::aws::StoreError;
use crate::clock::Timestamp;
use crate::ids::{ItemGroup, ItemId, TaskId};
use crate::limits::{
    GROUP_RETENTION, HINT_LOST_AFTER, REISSUE_PAGES_LOOKED_AT, REISSUES_FOLLOWED_MAX, THEN_RESULTS_BYTES_MAX,
    THEN_RESULTS_MAX,
};
use crate::producing::{Reissue, Source};
use crate::results::Kept;
use crate::store::batches::{Batch, Batches, MemberState};
use crate::store::fanouts::Fanout;
use crate::store::tasks::Tasks;
use crate::tracking::{ItemState, Tracking, TrackingError, page_groups};

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemResult {
    /// The item.
    pub id: ItemId,
    /// The kind of its task, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The item's state: `succeeded`, `failed`, `duplicate` or `missing`.
    pub outcome: ItemState,
    /// What the batch API returned for it, if it succeeded and results are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why there is no result: it was not kept, or is not known any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_left_out: Option<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same as a short name or number, if the batch API returned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// What became of all items, or why that is left out.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemResults {
    /// All of them, in their order.
    All(Vec<ItemResult>),
    /// It is left out.
    LeftOut(String),
}

/// Why a result is left out: there is no record of the item's batch. The item may never have had a task.
const FORGOTTEN: &str = "there is no record of its batch (any more)";

/// Why all results are left out: the fan-out went on for longer than a group is kept that has ended.
const GROUPS_FORGOTTEN: &str = "item groups that ended more than 12 weeks ago are not known any more";

/// The items whose results count.
enum Items {
    /// These, in the order of the fan-out that was opened first.
    Known(Vec<ItemId>),
    /// They are not known, or too many, for this reason.
    LeftOut(String),
}

/// The text that stands in place of results, with advice.
pub(crate) fn left_out(fanout: Uuid, why: &str) -> String {
    format!("the results are left out: {why}; read `GET /fanouts/{fanout}/results`")
}

/// Reads what became of the items of a fan-out that has ended.
#[derive(Clone, Copy, Debug)]
pub struct ItemResultsReader<'a> {
    /// Fan-outs and groups.
    pub tracking: &'a Tracking,
    /// Tasks.
    pub tasks: &'a Tasks,
    /// Batches, with their results.
    pub batches: &'a Batches,
    /// The time.
    pub now: Timestamp,
}

impl ItemResultsReader<'_> {
    /// What became of the items of a fan-out that has ended. For a reissue: of all items of the fan-out that was opened first, of
    /// which the reissued ones are replaced by those of their latest reissue.
    ///
    /// # Errors
    /// The tables cannot be read, a record is corrupt, or an index does not show all groups yet.
    pub async fn of(&self, fanout: &Fanout) -> Result<ItemResults, TrackingError> {
        let items = match self.items(fanout).await? {
            Items::Known(items) => items,
            Items::LeftOut(why) => return Ok(ItemResults::LeftOut(left_out(fanout.id, &why))),
        };
        let results = self.results(&items).await?;
        // The header still names the groups that the fan-out was opened with.
        if results.iter().any(|result| result.outcome == ItemState::Unknown) {
            return Ok(ItemResults::LeftOut(left_out(fanout.id, GROUPS_FORGOTTEN)));
        }
        let bytes = serde_json::to_string(&results).map_or(usize::MAX, |text| text.len());
        if bytes > THEN_RESULTS_BYTES_MAX {
            let why = format!("they have {bytes} bytes as JSON, at most {THEN_RESULTS_BYTES_MAX} are passed on");
            return Ok(ItemResults::LeftOut(left_out(fanout.id, &why)));
        }
        Ok(ItemResults::All(results))
    }

    /// The items whose results count.
    async fn items(&self, fanout: &Fanout) -> Result<Items, TrackingError> {
        let mut chain = vec![fanout.clone()];
        while let Some((id, reissue)) = chain.last().and_then(|last| Some((last.id, reissue_of(last)?.clone()))) {
            if chain.len() > REISSUES_FOLLOWED_MAX {
                return Ok(Items::LeftOut(format!("there are more than {REISSUES_FOLLOWED_MAX} reissues in a row")));
            }
            // What that one took on may have succeeded there, and it is not in this row of fan-outs.
            if reissue.taken_on.is_some() {
                let why = format!("fan-out {id} reissues only what an earlier reissue, which was cut short, had left");
                return Ok(Items::LeftOut(why));
            }
            let Some(before) = self.tracking.fanouts.get(reissue.fanout).await? else {
                let why = format!("fan-out {}, which it reissues, is not known any more", reissue.fanout);
                return Ok(Items::LeftOut(why));
            };
            chain.push(before);
        }
        let Some(first) = chain.pop() else { return Ok(Items::Known(Vec::new())) };
        if let Some(why) = too_many(&first) {
            return Ok(Items::LeftOut(why));
        }
        let (mut items, _) = self.tracking.items_after(&first, None, THEN_RESULTS_MAX).await?;
        if (items.len() as u64) < first.total {
            return self.without_some(&first);
        }
        let mut old = first;
        while let Some(new) = chain.pop() {
            let Some(reissue) = reissue_of(&new) else { break };
            let failed = self.tracking.items_in(&old, None, reissue.states(), THEN_RESULTS_MAX).await?.items;
            let again = self.reissued(&new).await?;
            if failed.len() != again.len() {
                // Items without a task are no rows of a reissue, and one that was cut short did not take on all.
                let (of, taken) = (failed.len(), again.len());
                let why = format!("fan-out {} reissued {taken} of {of} items, and does not say which", new.id);
                return Ok(Items::LeftOut(why));
            }
            let replaced: HashMap<ItemId, ItemId> = failed.into_iter().zip(again).collect();
            items = items.into_iter().map(|item| replaced.get(&item).copied().unwrap_or(item)).collect();
            old = new;
        }
        Ok(Items::Known(items))
    }

    /// What is said of a fan-out some of whose groups are not found.
    fn without_some(&self, fanout: &Fanout) -> Result<Items, TrackingError> {
        // No group goes sooner: until then, the index does not show all of them yet. Nor, perhaps, right after the end
        // of an old fan-out.
        let ended = self.now.since(fanout.ended_at.unwrap_or(self.now));
        if self.now.since(fanout.created_at) < GROUP_RETENTION || ended < HINT_LOST_AFTER {
            return Err(StoreError::Contended { what: format!("reading the items of {}", fanout.id) }.into());
        }
        Ok(Items::LeftOut(GROUPS_FORGOTTEN.to_owned()))
    }

    /// The items of a reissue in the order in which it took them on: page by page.
    async fn reissued(&self, new: &Fanout) -> Result<Vec<ItemId>, TrackingError> {
        let names: Vec<Uuid> = (0..REISSUE_PAGES_LOOKED_AT)
            .flat_map(|page| page_groups(new.id, 0, page, 1))
            .map(|group| group.id)
            .collect();
        let found = self.tracking.groups.get_many(&names).await?;
        let sizes: HashMap<Uuid, u32> = found.into_iter().map(|group| (group.id, group.size)).collect();
        let groups = names.iter().filter_map(|id| Some(ItemGroup { id: *id, upto: *sizes.get(id)? }));
        Ok(groups.flat_map(|group| group.expand(new.id)).collect())
    }

    /// What became of items.
    async fn results(&self, items: &[ItemId]) -> Result<Vec<ItemResult>, TrackingError> {
        let groups = self.tracking.groups_with(items).await?;
        let ids: Vec<TaskId> = items.iter().copied().map(TaskId::Item).collect();
        let tasks = self.tasks.get_many(&ids).await?;
        let batches = self.batches.of_tasks(tasks.values()).await?;
        let mut results = Vec::with_capacity(items.len());
        for item in items {
            let outcome = groups.state(item);
            let task = tasks.get(&TaskId::Item(*item));
            let kind = task.map(|task| task.lane.kind.clone());
            let mut result =
                ItemResult { id: *item, kind, outcome, result: None, result_left_out: None, error: None, code: None };
            let batch = task.and_then(|task| batches.get(&task.batch?));
            match batch.and_then(|batch| Some((batch, batch.members.slot(&TaskId::Item(*item))?))) {
                Some((batch, slot)) => self.fill(&mut result, batch, slot).await?,
                None if outcome == ItemState::Succeeded && groups.has_tasks(item) => {
                    result.result_left_out = Some(FORGOTTEN.to_owned());
                }
                None => {}
            }
            results.push(result);
        }
        Ok(results)
    }

    /// Adds what a batch says of its member. What it says otherwise than the item is of no account: the item was acked by others.
    async fn fill(&self, result: &mut ItemResult, batch: &Batch, slot: usize) -> Result<(), StoreError> {
        match result.outcome {
            ItemState::Succeeded => match self.batches.results(batch, [slot]).of(slot).await? {
                Some(Kept::Result(text)) => result.result = serde_json::from_str(&text).ok(),
                Some(Kept::LeftOut(note)) => result.result_left_out = Some(note),
                None => {}
            },
            ItemState::Failed if batch.outcome(slot) == MemberState::Failed => {
                result.error = batch.error(slot).map(str::to_owned);
                result.code = batch.code(slot).map(str::to_owned);
            }
            _ => {}
        }
        Ok(())
    }
}

fn reissue_of(fanout: &Fanout) -> Option<&Reissue> {
    match &fanout.producer.as_ref()?.source {
        Source::Reissue(reissue) => Some(reissue),
        _ => None,
    }
}

/// Why the results of so many items are left out.
fn too_many(fanout: &Fanout) -> Option<String> {
    let items = fanout.total;
    (items > THEN_RESULTS_MAX as u64)
        .then(|| format!("fan-out {} has {items} items, those of at most {THEN_RESULTS_MAX} are passed on", fanout.id))
}
