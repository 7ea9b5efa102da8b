//! Acks: clearing bits, ending groups, and noticing the last one.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use uuid::Uuid;

use super::acks::{AckRefusal, Acks, Refusal, Refused, parts};
use super::gathering::Gathering;
use super::{Tracking, TrackingError};
use crate::aws::{StoreError, Write};
use crate::limits::{
    ACKS_AT_ONCE_MAX, CONTENTION_TRIES_MAX, GROUPS_PER_TRANSACTION_MAX, KEYS_PER_READ_MAX, OVERTAKEN_PAUSES,
};
use crate::metrics::ITEMS_ACKED;
use crate::store::fanouts::{EndedGroups, Fanout, GroupsEnd};
use crate::store::groups::{Cleared, GroupRecord, Mask, clear};

/// A group whose last bits are about to be cleared, or others that the header counts, too.
pub(super) struct Ending {
    pub(super) group: GroupRecord,
    pub(super) cleared: Cleared,
}

impl Ending {
    /// What it adds to the header's counts.
    fn counts(&self) -> EndedGroups {
        let Self { group, cleared } = self;
        let failed = cleared.failed.count();
        let failures = if group.counted { failed - group.failed.count() } else { 0 };
        if !cleared.pending.is_zero() {
            return EndedGroups { failures, ..EndedGroups::default() };
        }
        let (duplicates, missing) = (cleared.duplicates.count(), cleared.missing.count());
        EndedGroups { groups: 1, items: group.size.into(), failed, duplicates, missing, failures }
    }
}

impl Tracking {
    /// Applies acks: one write per group, and one transaction for the groups of a fan-out that end. Then ends the fan-outs that
    /// are done. Applying the same acks again changes nothing, but repeats what a crash left undone.
    ///
    /// # Errors
    /// The tables cannot be read or written, or a hint not sent. Some acks may have been applied.
    pub fn ack<'a>(&'a self, acks: &'a Acks) -> BoxFuture<'a, Result<Refused, TrackingError>> {
        async move {
            let mut refused = Refused::new();
            for part in parts(acks) {
                refused.extend(self.apply(&part, &self.acked_groups(&part).await?).await?);
            }
            Ok(refused)
        }
        .boxed()
    }

    /// The same, but of groups of which too few items are done for a write to be worth it, nothing is applied: it returns, to be
    /// sent on, what is open of these acks.
    ///
    /// # Errors
    /// As for [`ack`](Self::ack).
    pub fn ack_or_gather<'a>(
        &'a self,
        acks: &'a Acks,
        gathering: &'a Gathering,
    ) -> BoxFuture<'a, Result<(Refused, Acks), TrackingError>> {
        async move {
            let (mut refused, mut sent_on) = (Refused::new(), Acks::new());
            for part in parts(acks) {
                let groups = self.acked_groups(&part).await?;
                let (now, later) = gathering.split(&part, &groups);
                refused.extend(self.apply(&now, &groups).await?);
                sent_on.extend(later);
            }
            Ok((refused, sent_on))
        }
        .boxed()
    }

    async fn acked_groups(&self, acks: &Acks) -> Result<BTreeMap<Uuid, GroupRecord>, TrackingError> {
        let ids: Vec<Uuid> = acks.keys().filter(|(fanout, group)| fanout != group).map(|(_, group)| *group).collect();
        Ok(self.groups.get_many(&ids).await?.into_iter().map(|group| (group.id, group)).collect())
    }

    /// A group that cannot be written does not hold up the others: the first error is returned once they are done.
    async fn apply(&self, acks: &Acks, groups: &BTreeMap<Uuid, GroupRecord>) -> Result<Refused, TrackingError> {
        let (mut refused, mut failed) = match self.ack_small(acks).await {
            Ok(refused) => (refused, None),
            Err(error) => (Refused::new(), Some(error)),
        };
        let mut cleared = Vec::with_capacity(acks.len());
        for (name, mask) in acks.iter().filter(|((fanout, group), _)| fanout != group) {
            cleared.push(self.ack_group(*name, groups.get(&name.1), mask));
        }
        let mut ending: BTreeMap<Uuid, Vec<Ending>> = BTreeMap::new();
        let mut cleared = stream::iter(cleared).buffer_unordered(ACKS_AT_ONCE_MAX);
        while let Some(result) = cleared.next().await {
            let (fanout, group, refusal, step) = match result {
                Ok(done) => done,
                Err(error) => {
                    failed = failed.or(Some(error));
                    continue;
                }
            };
            refuse(&mut refused, acks, (fanout, group), refusal);
            match step {
                Clearing::Cleared => {}
                Clearing::Ended => {
                    ending.entry(fanout).or_default();
                }
                Clearing::Ending(end) => ending.entry(fanout).or_default().push(*end),
            }
        }
        drop(cleared);
        let mut ends = Vec::with_capacity(ending.len());
        for (fanout, groups) in ending {
            ends.push(self.end(fanout, groups, acks));
        }
        let ended: Vec<_> = stream::iter(ends).buffer_unordered(ACKS_AT_ONCE_MAX).collect().await;
        let failed = failed.or(ended.into_iter().find_map(Result::err));
        failed.map_or(Ok(refused), Err)
    }

    /// Clears bits of small fan-outs. They are read together, so that those an earlier delivery acked cost nothing else. One that
    /// cannot be written does not hold up the others.
    async fn ack_small(&self, acks: &Acks) -> Result<Refused, TrackingError> {
        let (mut refused, mut failed) = (Refused::new(), None);
        let small: Vec<Uuid> = acks.keys().filter(|(id, group)| id == group).map(|(id, _)| *id).collect();
        for ids in small.chunks(KEYS_PER_READ_MAX) {
            let mut read: BTreeMap<Uuid, Fanout> =
                self.fanouts.get_many(ids).await?.into_iter().map(|fanout| (fanout.id, fanout)).collect();
            let mut cleared = Vec::with_capacity(ids.len());
            for id in ids {
                let Some(mask) = acks.get(&(*id, *id)) else { continue };
                let fanout = read.remove(id);
                cleared.push(async move { (*id, self.ack_inline(*id, fanout, mask).await) });
            }
            let mut cleared = stream::iter(cleared).buffer_unordered(ACKS_AT_ONCE_MAX);
            while let Some((id, refusal)) = cleared.next().await {
                match refusal {
                    Ok(refusal) => refuse(&mut refused, acks, (id, id), refusal),
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
        }
        failed.map_or(Ok(refused), Err)
    }

    /// Clears bits of one group.
    async fn ack_group(
        &self,
        (fanout, id): (Uuid, Uuid),
        group: Option<&GroupRecord>,
        mask: &Mask,
    ) -> Result<(Uuid, Uuid, Option<AckRefusal>, Clearing), TrackingError> {
        let Some(group) = group.filter(|group| group.fanout == fanout) else {
            return Ok((fanout, id, Some(AckRefusal::UnknownGroup { fanout, group: id }), Clearing::Cleared));
        };
        Ok((fanout, id, out_of_range(group, mask), self.clear_some(group.clone(), mask).await?))
    }

    /// Ends groups of a fan-out, and then the fan-out if it is done.
    async fn end(&self, fanout: Uuid, groups: Vec<Ending>, acks: &Acks) -> Result<(), TrackingError> {
        self.end_groups(fanout, groups, Some(acks)).await?;
        self.check(fanout).await.map(|_| ())
    }

    /// Clears bits of one group, unless they are its last, or failures that the header counts.
    async fn clear_some(&self, mut group: GroupRecord, mask: &Mask) -> Result<Clearing, TrackingError> {
        for tries in 1..=CONTENTION_TRIES_MAX {
            if group.pending.is_zero() {
                return Ok(Clearing::Ended);
            }
            let cleared = clear(&group, mask);
            if cleared.newly == 0 {
                // The worker that counted these failures may have died before it judged them.
                let judged = !group.counted || mask.failed.is_zero();
                return Ok(if judged { Clearing::Cleared } else { Clearing::Ended });
            }
            if cleared.pending.is_zero() || (group.counted && cleared.failed != group.failed) {
                return Ok(Clearing::Ending(Box::new(Ending { group, cleared })));
            }
            match self.groups.write(&group, &cleared).await? {
                Write::Done(()) => {
                    metrics::counter!(ITEMS_ACKED).increment(cleared.newly);
                    return Ok(Clearing::Cleared);
                }
                Write::Refused(Some(stands)) => group = stands,
                Write::Refused(None) => return Ok(Clearing::Ended),
            }
            if self.give_way(tries).await {
                let Some(now) = self.groups.get_many(&[group.id]).await?.pop() else { return Ok(Clearing::Ended) };
                group = now;
            }
        }
        Err(contended(group.id))
    }

    /// Lets other workers write a record that `refusals` writes of this one found changed. Returns whether it took time: then
    /// the record has to be read again, for what the refusal showed is old.
    pub(super) async fn give_way(&self, refusals: u32) -> bool {
        if refusals < 2 {
            return false;
        }
        tokio::time::sleep(OVERTAKEN_PAUSES.after(refusals - 1, self.world.random.next())).await;
        true
    }

    /// Ends groups, or clears bits with failures, in one transaction with the header's counts. If another worker ends or
    /// changes some meanwhile, `acks` are applied to these groups as they stand. Without `acks` the groups are closed; those that
    /// changed meanwhile are left as they are.
    pub(super) async fn end_groups(
        &self,
        fanout: Uuid,
        mut groups: Vec<Ending>,
        acks: Option<&Acks>,
    ) -> Result<(), TrackingError> {
        let why = if acks.is_some() { GroupsEnd::Acked } else { GroupsEnd::Closed };
        let mut tries = 0;
        while !groups.is_empty() {
            tries += 1;
            if tries > CONTENTION_TRIES_MAX {
                return Err(contended(fanout));
            }
            let now = groups.len().min(GROUPS_PER_TRANSACTION_MAX);
            let ended = groups[..now].iter().map(Ending::counts).fold(EndedGroups::default(), EndedGroups::plus);
            let mut actions = Vec::with_capacity(now + 1);
            for end in &groups[..now] {
                actions.push(self.groups.end_action(&end.group, &end.cleared)?);
            }
            actions.push(self.fanouts.end_groups_action(fanout, ended, why)?);
            let Write::Refused(refused) = self.fanouts.transact(&actions).await? else {
                let newly = groups.drain(..now).map(|end| end.cleared.newly).sum();
                metrics::counter!(ITEMS_ACKED).increment(newly);
                tries = 0;
                continue;
            };
            // From the back, so that positions stay right.
            for (at, item) in refused.into_iter().rev().filter(|(at, _)| *at < now) {
                let end = groups.swap_remove(at);
                let mask = acks.and_then(|acks| acks.get(&(fanout, end.group.id)));
                let (Some(item), Some(mask)) = (item, mask) else { continue };
                if let Clearing::Ending(end) = self.clear_some(GroupRecord::decode(&item)?, mask).await? {
                    groups.push(*end);
                }
            }
        }
        Ok(())
    }

    /// Clears bits of a small fan-out as it was read; with the last one it ends in the same write.
    async fn ack_inline(
        &self,
        id: Uuid,
        read: Option<Fanout>,
        mask: &Mask,
    ) -> Result<Option<AckRefusal>, TrackingError> {
        let unknown = AckRefusal::UnknownGroup { fanout: id, group: id };
        let Some(mut fanout) = read else { return Ok(Some(unknown)) };
        for tries in 1..=CONTENTION_TRIES_MAX {
            let Some(group) = fanout.inline_group() else { return Ok(Some(unknown)) };
            let refusal = out_of_range(&group, mask);
            let cleared = clear(&group, mask);
            if cleared.newly == 0 {
                return Ok(refusal);
            }
            match self.fanouts.clear_inline(&fanout, &group, &cleared).await? {
                Write::Done(after) => {
                    metrics::counter!(ITEMS_ACKED).increment(cleared.newly);
                    self.hint_end(&after).await?;
                    self.hint_percentage(&fanout, &after).await?;
                    return Ok(refusal);
                }
                Write::Refused(Some(stands)) => fanout = stands,
                Write::Refused(None) => return Ok(Some(unknown)),
            }
            if self.give_way(tries).await {
                let Some(now) = self.fanouts.get(id).await? else { return Ok(Some(unknown)) };
                fanout = now;
            }
        }
        Err(contended(id))
    }
}

/// The result of clearing bits of a group.
enum Clearing {
    /// Other bits are still set, or none was to be cleared.
    Cleared,
    /// These are its last bits, or failures that the header counts: both are written in one transaction.
    Ending(Box<Ending>),
    /// It had ended before, or its failures are counted: the header is to be checked.
    Ended,
}

/// Notes a refusal, if it is one.
fn refuse(refused: &mut Refused, acks: &Acks, name: (Uuid, Uuid), refusal: Option<AckRefusal>) {
    if let Some((problem, mask)) = refusal.zip(acks.get(&name)) {
        let refusal = Refusal::of(problem, mask);
        refusal.report();
        refused.insert(name, refusal);
    }
}

pub(super) fn out_of_range(group: &GroupRecord, mask: &Mask) -> Option<AckRefusal> {
    let index = mask.done.last().filter(|index| *index >= group.size as usize)?;
    Some(AckRefusal::OutOfRange { fanout: group.fanout, group: group.id, index, size: group.size })
}

pub(super) fn contended(id: Uuid) -> TrackingError {
    StoreError::Contended { what: format!("acking {id}") }.into()
}
