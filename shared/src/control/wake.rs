//! Wakes what waits in a scope that is resumed or drained, as far as it is found soon. `sweep` does the rest.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::{Control, ControlError, Scope};
use crate::aws::StoreError;
use crate::lane::Lane;
use crate::limits::{
    ITEMS_PER_PAGE_MAX, KEYS_PER_READ_MAX, STATEMENT_CALLS_AT_ONCE_MAX, WAKE_LANES_MAX, WAKE_RECORDS_MAX,
};
use crate::messages::{ElectMessage, GroupMessage, HandleMessage};
use crate::store::batches::Batch;
use crate::store::locks::Lock;
use crate::store::tasks::PendingCursor;

impl Control {
    /// Wakes the lanes of a scope in which tasks wait, and sends messages of batches in flight again, which a pause may
    /// have discarded. `hurries`: leaders that linger form their batches at once.
    pub(super) async fn wake(&self, scope: &Scope, hurries: bool) -> Result<(), ControlError> {
        let (waiting, busy) = self.lanes_of(scope).await?;
        let all: Vec<Lane> = waiting.union(&busy).cloned().collect();
        let running = self.policies.not_paused(all, |lane| lane).await?;
        let running: Vec<Lane> = running.into_iter().map(|(lane, _)| lane).collect();
        for lanes in running.chunks(KEYS_PER_READ_MAX) {
            let locks = self.locks.get_many(lanes, true).await?;
            if hurries {
                self.hurry(&locks).await?;
            }
            let led: BTreeSet<&Lane> =
                locks.iter().filter(|lock| lock.holder.is_some()).map(|lock| &lock.lane).collect();
            // If the message of a leader was discarded, this election or the sweep finds it silent.
            let wake = |lane: &&Lane| waiting.contains(lane) && (!hurries || !led.contains(lane));
            let wakes = lanes.iter().filter(wake).map(|lane| ElectMessage::wake(lane.clone(), self.world.uuid()));
            let wakes: Vec<ElectMessage> = wakes.collect();
            self.elect.send_all(wakes.iter().map(|message| (message, Duration::ZERO))).await?;
            self.wake_batches(&locks).await?;
        }
        Ok(())
    }

    /// Leaders form their batches now. The message that comes after the linger finds the batch formed.
    async fn hurry(&self, locks: &[Lock]) -> Result<(), ControlError> {
        let renews = locks.iter().map(|lock| async move {
            match GroupMessage::again(lock) {
                Some(message) => self.locks.renewed(lock, message).await,
                None => Ok(None),
            }
        });
        let renews = stream::iter(renews.collect::<Vec<_>>()).buffer_unordered(STATEMENT_CALLS_AT_ONCE_MAX);
        let messages: Vec<Option<GroupMessage>> = renews.try_collect().await?;
        Ok(self.group.send_all(messages.iter().flatten().map(|message| (message, Duration::ZERO))).await?)
    }

    /// Wakes the batches in flight of some lanes.
    async fn wake_batches(&self, locks: &[Lock]) -> Result<(), ControlError> {
        let ids: Vec<Uuid> = locks.iter().flat_map(|lock| lock.in_flight.iter().copied()).collect();
        self.wake_due(self.batches.get_many(&ids).await?.iter()).await
    }

    /// Sends the messages of those batches again that are due. This is not noted: if they are lost, the next sweep sends them.
    pub(super) async fn wake_due(&self, batches: impl Iterator<Item = &Batch>) -> Result<(), ControlError> {
        let now = self.world.now();
        let due = |batch: &Batch| HandleMessage::due(batch, now).map(|message| (message, batch.lane.clone()));
        let messages: Vec<(HandleMessage, Lane)> = batches.filter_map(due).collect();
        Ok(self.handle.send_for(messages.iter().map(|(message, lane)| (message, Duration::ZERO, lane))).await?)
    }

    /// The lanes of a scope in which tasks wait, and those that are busy, as far as they are found soon.
    async fn lanes_of(&self, scope: &Scope) -> Result<(BTreeSet<Lane>, BTreeSet<Lane>), ControlError> {
        if let Some(lanes) = self.named(scope).await? {
            return Ok((lanes.clone(), lanes));
        }
        let (mut waiting, mut busy) = (BTreeSet::new(), BTreeSet::new());
        let (mut looked, mut after): (usize, Option<PendingCursor>) = (0, None);
        while looked < WAKE_RECORDS_MAX {
            let page = self.tasks.pending(after.as_ref(), ITEMS_PER_PAGE_MAX).await?;
            looked += page.records.len();
            after = page.records.last().map(|(pending, lane)| PendingCursor::after(pending, lane));
            waiting.extend(page.records.into_iter().map(|(_, lane)| lane).filter(|lane| scope.covers(lane)));
            if !page.more || after.is_none() {
                break;
            }
        }
        let (mut looked, mut after): (usize, Option<Lane>) = (0, None);
        while looked < WAKE_RECORDS_MAX {
            let (lanes, more) = self.locks.active(after.as_ref(), ITEMS_PER_PAGE_MAX).await?;
            looked += lanes.len();
            after = lanes.last().cloned();
            busy.extend(lanes.into_iter().filter(|lane| scope.covers(lane)));
            if !more || after.is_none() {
                break;
            }
        }
        Ok((waiting, busy))
    }

    /// The lanes of a scope, if their names follow from it and they are few.
    async fn named(&self, scope: &Scope) -> Result<Option<BTreeSet<Lane>>, StoreError> {
        let lanes = match scope {
            Scope::All | Scope::Kind(_) => None,
            Scope::Lane(lane) => Some(BTreeSet::from([lane.clone()])),
            Scope::Target { .. } => Some(self.partitions(scope).await?.into_iter().collect()),
        };
        Ok(lanes.filter(|lanes| lanes.len() <= WAKE_LANES_MAX as usize))
    }

    /// The lanes of a target, by the policy as it is now.
    pub(super) async fn partitions(&self, scope: &Scope) -> Result<Vec<Lane>, StoreError> {
        partitions(&self.policies, scope).await
    }
}

/// The lanes of a target or a lane, by the policy as it is now. Other scopes: none.
pub(super) async fn partitions(
    policies: &crate::store::policies::Policies,
    scope: &Scope,
) -> Result<Vec<Lane>, StoreError> {
    match scope {
        Scope::All | Scope::Kind(_) => Ok(Vec::new()),
        Scope::Lane(lane) => Ok(vec![lane.clone()]),
        Scope::Target { kind, target } => {
            let partitions = policies.read(kind).await?.map_or(1, |policy| policy.partitions);
            let lane = |partition| Lane { kind: kind.clone(), partition, target: target.clone() };
            Ok((0..partitions).map(lane).collect())
        }
    }
}
