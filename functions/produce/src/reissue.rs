//! The source of a reissue: the items of a fan-out that failed, with their tasks.

mod row;

use std::collections::{BTreeMap, BTreeSet};

use fanfold::ids::{ItemId, TaskId, expand};
use fanfold::limits::{GROUPS_COUNTED_MAX, KEYS_PER_READ_MAX, OBJECT_PAGE_BYTES, REISSUE_PAGE_ITEMS, SOURCE_TRIES_MAX};
use fanfold::messages::TaskRequest;
use fanfold::policy::no_policy;
use fanfold::producing::{Given, Reissue, ReissuePlace};
use fanfold::store::fanouts::Fanout;
use fanfold::store::producers::Partition;
use fanfold::tracking::{ItemCursor, Listed, page_groups};
use serde_json::Value;
use uuid::Uuid;

use self::row::{Known, Row};
use crate::read::items;
use crate::{Produce, ProduceError, SourceAnswer, SourceError};

impl Produce {
    /// A page of the items of another fan-out that failed. It is kept before it is used, as records expire, and contents may be
    /// corrected. Only tasks that ended without success are taken, whatever the item's bit says. Others are named as bad rows if
    /// that is for good; the page ends before one of which that cannot be said yet.
    pub(crate) async fn ask_reissue(
        &self,
        reissue: &Reissue,
        at: &Partition,
        cursor: Value,
    ) -> Result<SourceAnswer, ProduceError> {
        let gone = || SourceError::for_good(format!("fan-out {} is not known any more", reissue.fanout));
        let old = self.tracking.fanouts.get(reissue.fanout).await?.ok_or_else(gone)?;
        let place: Option<ReissuePlace> = serde_json::from_value(cursor).map_err(SourceError::for_good)?;
        let after = match place.unwrap_or_default() {
            ReissuePlace::Items(after) => Some(after),
            ReissuePlace::Counts { listed, short } => match self.count(&old, listed, short).await? {
                None => reissue.taken_on.map(|taken_on| taken_on.until),
                Some(goes_on) => return Ok(answer(Vec::new(), Some(goes_on))),
            },
        };
        let page = self.tracking.items_in(&old, after, reissue.states(), REISSUE_PAGE_ITEMS).await?;
        let corrected = self.corrected(reissue, at.fanout).await?;
        let unregistered = self.unregistered(&old).await?;
        let (mut rows, mut taken, mut bytes, mut next) = (Vec::new(), Vec::new(), 0, page.next);
        'chunks: for chunk in page.items.chunks(KEYS_PER_READ_MAX) {
            let ids: Vec<TaskId> = chunk.iter().map(|item| TaskId::Item(*item)).collect();
            let tasks = self.tasks.get_many(&ids).await?;
            let batches = self.batches.of_tasks(tasks.values()).await?;
            let known = Known { old: &old, tasks: &tasks, batches: &batches, unregistered: &unregistered };
            for item in chunk {
                let row = match known.row(item, &corrected) {
                    Row::Taken(row) => Ok(row),
                    Row::Bad(why) => Err(why),
                    Row::Stops(error) if rows.is_empty() => return Err(error.into()),
                    Row::Stops(_) => break 'chunks,
                };
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
        Ok(answer(rows, next.map(ReissuePlace::Items)))
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

    /// If the fan-out is itself a reissue that was cut short: the page that it was at. The items of that page may have been added
    /// without their tasks.
    async fn unregistered(&self, old: &Fanout) -> Result<BTreeMap<ItemId, TaskRequest>, ProduceError> {
        if old.reissue_of().is_none() || !old.state.cut_short() {
            return Ok(BTreeMap::new());
        }
        let Some(at) = self.producing.producers.get(old.id, 0).await? else { return Ok(BTreeMap::new()) };
        let Some(kept) = self.producing.producers.page(&at).await? else { return Ok(BTreeMap::new()) };
        let groups = page_groups(old.id, at.number, at.page, items(&kept.tasks));
        Ok(expand(old.id, &groups).zip(kept.tasks).collect())
    }

    /// Releases the keys that failed tasks still have where fan-outs share keys: their policy keeps them, or a call without an
    /// answer may have worked. Who reissues them asks for them to be called again; they would be duplicates of themselves.
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
