//! The source of a reissue: the items of a fan-out that failed, with their tasks.

mod row;

use std::collections::{BTreeMap, BTreeSet};

use fanfold::aws::StoreError;
use fanfold::ids::{ItemId, TaskId, expand};
use fanfold::limits::{
    GROUPS_COUNTED_MAX, KEYS_PER_READ_MAX, OBJECT_PAGE_BYTES, REISSUE_PAGE_ITEMS, RETENTION, SOURCE_TRIES_MAX,
};
use fanfold::messages::TaskRequest;
use fanfold::policy::no_policy;
use fanfold::producing::{Given, Reissue, ReissuePlace};
use fanfold::registering::PoliciesOfKinds;
use fanfold::store::fanouts::{Fanout, OpenedTasks};
use fanfold::store::producers::Partition;
use fanfold::tracking::{ItemCursor, ItemState, Listed, page_groups};
use serde_json::Value;
use uuid::Uuid;

use self::row::{Known, Row};
use crate::read::items;
use crate::{Produce, ProduceError, SourceAnswer, SourceError};

impl Produce {
    /// A page of the items of another fan-out that failed, and the tasks that its rows were before. It is kept before
    /// it is used, as records expire, and contents may be corrected. Only tasks that ended without success are taken,
    /// whatever the item's bit says. Others are named as bad rows if that is for good; the page ends before one of
    /// which that cannot be said yet.
    pub(crate) async fn ask_reissue(
        &self,
        reissue: &Reissue,
        at: &Partition,
        cursor: Value,
    ) -> Result<(SourceAnswer, Vec<TaskId>), ProduceError> {
        let gone = || SourceError::for_good(format!("fan-out {} is not known any more", reissue.fanout));
        let old = self.tracking.fanouts.get(reissue.fanout).await?.ok_or_else(gone)?;
        let place: Option<ReissuePlace> = serde_json::from_value(cursor).map_err(SourceError::for_good)?;
        let after = match place.unwrap_or_default() {
            ReissuePlace::Items(after) => Some(after),
            ReissuePlace::Counts { listed, short } => match self.count(&old, listed, short).await? {
                None => reissue.taken_on.map(|taken_on| taken_on.until),
                Some(goes_on) => return Ok((answer(Vec::new(), Some(goes_on)), Vec::new())),
            },
        };
        let page = self.tracking.items_in(&old, after, reissue.states(), REISSUE_PAGE_ITEMS).await?;
        let rows = self.rows(reissue, &old, at.fanout, &page.items).await?;
        let items = &page.items[..rows.len()];
        let next = if items.len() == page.items.len() { page.next } else { items.last().map(ItemCursor::after) };
        complete(reissue, &old, at.rows + rows.len() as u64, next.is_none())?;
        let tasks = items.iter().copied().map(TaskId::Item).collect();
        Ok((answer(rows, next.map(ReissuePlace::Items)), tasks))
    }

    /// The rows of the first of these items: as many as fit a page, and of which it can be said now what they are.
    async fn rows(
        &self,
        reissue: &Reissue,
        old: &Fanout,
        new: Uuid,
        items: &[ItemId],
    ) -> Result<Vec<Given>, ProduceError> {
        let corrected = self.corrected(reissue, new).await?;
        let unregistered = self.unregistered(old).await?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        for chunk in items.chunks(KEYS_PER_READ_MAX) {
            let ids: Vec<TaskId> = chunk.iter().map(|item| TaskId::Item(*item)).collect();
            let tasks = self.tasks.get_many(&ids).await?;
            let batches = self.batches.of_tasks(tasks.values()).await?;
            let without = chunk.iter().copied().filter(|item| !tasks.contains_key(&TaskId::Item(*item)));
            let expired = self.expired(old, without.collect()).await?;
            let known = Known { old, tasks: &tasks, batches: &batches, unregistered: &unregistered, expired: &expired };
            for item in chunk {
                let row = match known.row(item, &corrected) {
                    Row::Taken(row) => Ok(row),
                    Row::Bad(why) => Err(why),
                    Row::Stops(error) if rows.is_empty() => return Err(error.into()),
                    Row::Stops(_) => return Ok(rows),
                };
                bytes += row.as_ref().map_or(0, |row| row.to_string().len());
                if bytes > OBJECT_PAGE_BYTES && !rows.is_empty() {
                    return Ok(rows);
                }
                rows.push(Given { kind: None, row, at: None });
            }
        }
        Ok(rows)
    }

    /// Waits until the index shows all groups of a fan-out, to which nothing is added any more: it would pass by one that appears
    /// behind it. Returns where to continue; none: all are there.
    async fn count(&self, old: &Fanout, from: Listed, short: u32) -> Result<Option<ReissuePlace>, ProduceError> {
        let (listed, all) = self.tracking.count_listed(old, from, GROUPS_COUNTED_MAX).await?;
        if !all {
            return Ok(Some(ReissuePlace::Counts { listed, short }));
        }
        if listed.items >= old.total {
            return Ok(None);
        }
        let missing = format!("{} of {} items of fan-out {} can be found", listed.items, old.total, old.id);
        match from == Listed::default() {
            // Asked again, it begins at the same place.
            true => Err(SourceError::again(format!("{missing} so far")).into()),
            // That took a while, and it begins once more.
            false if short < SOURCE_TRIES_MAX => {
                Ok(Some(ReissuePlace::Counts { listed: Listed::default(), short: short + 1 }))
            }
            false => Err(SourceError::for_good(format!("{missing}: its records expire")).into()),
        }
    }

    async fn corrected(&self, reissue: &Reissue, fanout: Uuid) -> Result<BTreeMap<ItemId, Value>, ProduceError> {
        if reissue.contents.is_none() {
            return Ok(BTreeMap::new());
        }
        let gone = || SourceError::for_good("the corrected contents are not known any more");
        Ok(self.producing.producers.corrected(fanout).await?.ok_or_else(gone)?.contents)
    }

    /// What was to be registered for items of a fan-out that was cut short, which may have been left without tasks:
    /// what it was opened with, if its header still has that, or the page that it was at, if it is itself a reissue.
    async fn unregistered(&self, old: &Fanout) -> Result<BTreeMap<ItemId, TaskRequest>, ProduceError> {
        // Of another fan-out such a task may yet be stored by a slow worker, and is called then.
        if !old.state.cut_short() {
            return Ok(BTreeMap::new());
        }
        if old.reissue_of().is_none() {
            let tasks = old.unregistered()?.into_iter();
            return Ok(tasks.filter_map(|task| Some((task.id?.item()?, task))).collect());
        }
        let Some(at) = self.producing.producers.get(old.id, 0).await? else { return Ok(BTreeMap::new()) };
        let Some(kept) = self.producing.producers.page(&at).await? else { return Ok(BTreeMap::new()) };
        let groups = page_groups(old.id, at.number, at.page, items(&kept.tasks));
        Ok(expand(old.id, &groups).zip(kept.tasks).collect())
    }

    /// Of these items, for which no task is found, those whose tasks were there and have expired: they failed, and each
    /// item of their fan-out is a task. (One that is missing may never have got its task.)
    async fn expired(&self, old: &Fanout, without: Vec<ItemId>) -> Result<BTreeSet<ItemId>, StoreError> {
        let registered = |tasks: &OpenedTasks| tasks.unregistered.is_none();
        let of_tasks = old.producer.is_some() || old.tasks.as_ref().is_some_and(registered);
        // No record expires sooner: until then, the item was acked before it got a task.
        let may_expire = self.world.now().since(old.created_at) >= RETENTION;
        if without.is_empty() || !of_tasks || !may_expire {
            return Ok(BTreeSet::new());
        }
        let groups = self.tracking.groups_with(&without).await?;
        // Users may add items of their own, in groups of their own.
        let failed = |item: &ItemId| groups.has_tasks(item) && groups.state(item) == ItemState::Failed;
        Ok(without.into_iter().filter(failed).collect())
    }

    /// Releases the keys that failed tasks still have where fan-outs share keys: their policy keeps them, or a call without an
    /// answer may have worked. Who reissues them asks for them to be called again; they would be duplicates of themselves.
    pub(crate) async fn release(&self, taken: &[TaskId], policies: &PoliciesOfKinds) -> Result<(), StoreError> {
        let scoped = policies.values().flatten().any(|policy| policy.policy.scope.is_some());
        if scoped && !taken.is_empty() {
            self.tasks.release_keys(taken).await?;
        }
        Ok(())
    }
}

/// Whether each kind has a policy. Rows of one that has none are no bad rows: once it has one again, they go on.
pub(crate) fn have_policies(policies: &PoliciesOfKinds) -> Result<(), SourceError> {
    let without = policies.iter().filter(|(_, policy)| policy.is_none()).map(|(kind, _)| kind);
    match without.min() {
        Some(kind) => Err(SourceError::again(no_policy(kind))),
        None => Ok(()),
    }
}

fn answer(rows: Vec<Given>, next: Option<ReissuePlace>) -> SourceAnswer {
    SourceAnswer { rows, cursor: next.map(|next| serde_json::json!(next)) }
}

/// Whether the last page leaves nothing out.
fn complete(reissue: &Reissue, old: &Fanout, rows: u64, last: bool) -> Result<(), SourceError> {
    let (all, before) = (reissue.count(old), reissue.taken_on.map_or(0, |taken_on| taken_on.items));
    if last && before + rows != all {
        let problem =
            format!("{} of {all} items of fan-out {} can be found: its records expire", before + rows, old.id);
        return Err(SourceError::again(problem));
    }
    Ok(())
}
