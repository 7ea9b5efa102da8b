//! Lanes: silent leaders, unclaimed tasks, and idle locks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::grouping::{BundleState, Linger, Patience, forms_at_rest, lane_overdue, wake_leader};
use fanfold::lane::Lane;
use fanfold::limits::{
    BUNDLED_RETENTION, KEYS_PER_READ_MAX, OLD_BUNDLES_PER_SEGMENT, OLD_BUNDLES_SWEEPS_MAX, SWEEP_MESSAGES_AT_ONCE_MAX,
    SWEEP_WRITES_AT_ONCE_MAX,
};
use fanfold::messages::ElectMessage;
use fanfold::store::locks::Lock;
use fanfold::store::tasks::Pending;
use futures::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use crate::seen::Seen;
use crate::switches::Oldest;
use crate::{Round, Sweep, SweepError, SweepReport, late_max};

impl Sweep {
    /// Goes through every lane that was busy, by its lock: leader, batches in flight, batches closing.
    pub(crate) async fn sweep_locks(
        &self,
        round: &Round,
        report: &mut SweepReport,
        seen: &mut Seen,
    ) -> Result<(), SweepError> {
        let request = round.request;
        let mut cleared = BTreeSet::new();
        for segment in self.segments(self.locks.busy_extent().await?) {
            let lanes = self.locks.busy(segment).await?;
            for lanes in lanes.chunks(KEYS_PER_READ_MAX) {
                let locks = self.locks.get_many(lanes, true).await?;
                let idle: Vec<&Lock> = locks.iter().filter(|lock| lock.idle()).collect();
                let mut retired = Vec::with_capacity(idle.len());
                for lock in &idle {
                    retired.push(self.locks.retire(&lock.lane));
                }
                stream::iter(retired).buffer_unordered(SWEEP_WRITES_AT_ONCE_MAX).try_collect::<Vec<()>>().await?;
                report.retired += idle.len() as u64;
                self.wake_leaders(&locks, round, report).await?;
                if request.workers_dead {
                    self.clear_gates(&locks, &mut cleared).await?;
                }
                self.sweep_batches(&locks, round, report, seen).await?;
            }
        }
        Ok(())
    }

    /// Sends the messages of leaders that were silent for too long again. In a lane that is paused, or whose kind has no policy,
    /// only that of a leader that has written its intent: it may have claimed tasks, which expire unless it forms a batch of them.
    async fn wake_leaders(&self, locks: &[Lock], round: &Round, report: &mut SweepReport) -> Result<(), SweepError> {
        let under = |age| if round.request.workers_dead { Patience::None } else { Patience::Under(age) };
        let (patience, long) = (under(round.request.min_age), under(late_max(round.request)));
        let (mut silent, mut resting) = (Vec::new(), BTreeSet::new());
        for lock in locks.iter().filter(|lock| lock.holder.is_some()) {
            let (linger, hold) = (self.linger(&lock.lane, round).await, round.switches.hold(&lock.lane));
            let wake = |patience| wake_leader(lock, linger, hold, patience, self.world.now());
            let Some(message) = wake(patience) else { continue };
            // What a pause discarded is not late.
            if hold.resumed_at.is_none() && wake(long).is_none() && round.late.leaders.holds_one().await {
                continue;
            }
            if round.rests(&lock.lane) {
                resting.insert(message.batch);
            }
            silent.push((lock, message));
        }
        let ids: Vec<Uuid> = resting.iter().copied().collect();
        for batch in self.batches.get_many(&ids).await?.iter().filter(|batch| forms_at_rest(Some(batch))) {
            resting.remove(&batch.id);
        }
        for (lock, message) in silent.into_iter().filter(|(_, message)| !resting.contains(&message.batch)) {
            if let Some(message) = self.locks.renewed(lock, message).await? {
                self.group.send(&message).await?;
                report.leaders += 1;
            }
        }
        Ok(())
    }

    /// Wakes every lane with tasks that have waited unclaimed for too long, and those that resumed just now, but none that is
    /// paused or whose kind has no policy. Returns the lanes in which tasks wait.
    pub(crate) async fn sweep_pending(&self, round: &Round, report: &mut SweepReport) -> Result<Oldest, SweepError> {
        let (request, known) = (round.request, &round.known);
        let (horizon, late_horizon) = (self.horizon(request), self.late_horizon(request));
        let half = self.world.now().minus(BUNDLED_RETENTION / 2);
        let (mut woken, mut oldest, mut notes) = (BTreeSet::new(), Oldest::new(), Vec::new());
        for segment in self.segments(self.tasks.pending_extent().await?) {
            // Those that are overdue, each with whether its message cannot be late any more.
            let (mut lanes, mut bundles) = (BTreeMap::<Lane, bool>::new(), Vec::new());
            let visit = |pending: Pending, lane: Lane| {
                let neglected = request.workers_dead || pending.created_at() <= half;
                bundles.extend(pending.record.bundle().filter(|_| neglected));
                let since = oldest.entry(lane.clone()).or_insert(pending.created_at());
                *since = pending.created_at().min(*since);
                let overdue = |horizon| lane_overdue(round.switches.hold(&lane), pending.created_at(), horizon);
                if overdue(horizon) {
                    let lost = overdue(late_horizon);
                    *lanes.entry(lane).or_default() |= lost;
                }
            };
            notes.extend(self.tasks.scan_pending(segment, visit).await?);
            let bundles = if request.workers_dead { bundles } else { in_turn(bundles, self.world.now()) };
            self.look_after(&bundles, half).await?;
            lanes.retain(|lane, _| woken.insert(lane.clone()));
            known.report(lanes.keys().map(|lane| lane.kind.as_str()));
            let mut lost = Vec::new();
            for (lane, is_lost) in lanes.into_iter().filter(|(lane, _)| known.has(&lane.kind)) {
                if is_lost || !round.late.holds_one_of_tasks().await {
                    lost.push(lane);
                }
            }
            self.wake(&lost).await?;
            report.lanes += lost.len() as u64;
        }
        self.finish_cancelling(&notes, round, report).await?;
        Ok(oldest)
    }

    /// Looks after bundles whose workers are dead, and after those begun before `half`, which have waited for half of their
    /// time to live.
    async fn look_after(&self, bundles: &[Uuid], half: Timestamp) -> Result<(), SweepError> {
        let soon = self.world.now().plus(BUNDLED_RETENTION / 2);
        for ids in bundles.chunks(KEYS_PER_READ_MAX) {
            for bundle in self.tasks.bundles(ids, true).await?.values() {
                let ends = bundle.created_at <= half && bundle.kept_until.is_none_or(|until| until < soon);
                match bundle.state {
                    // Its worker was lost. A leader would bury it, but perhaps none is elected for long.
                    BundleState::Filling | BundleState::Dead => self.tasks.bury(bundle).await?,
                    BundleState::Waiting if ends => self.tasks.keep(bundle).await?,
                    BundleState::Waiting | BundleState::Taken => {}
                }
            }
        }
        Ok(())
    }

    /// Makes lanes elect a leader. Their tasks are old enough for the index to show them to the leader.
    async fn wake(&self, lanes: &[Lane]) -> Result<(), SweepError> {
        for lanes in lanes.chunks(SWEEP_MESSAGES_AT_ONCE_MAX) {
            let wake = |lane: &Lane| ElectMessage::wake(lane.clone(), self.world.uuid());
            let messages: Vec<ElectMessage> = lanes.iter().map(wake).collect();
            self.elect.send_all(messages.iter().map(|message| (message, Duration::ZERO))).await?;
        }
        Ok(())
    }

    /// How long a leader of this lane may be silent because it waits for its batch to fill.
    pub(crate) async fn linger(&self, lane: &Lane, round: &Round) -> Duration {
        if !round.known.has(&lane.kind) {
            return Duration::ZERO;
        }
        match self.policies.get(&lane.kind).await {
            Ok(policy) => {
                policy.map_or(Duration::ZERO, |policy| Linger::under(&policy, round.switches.hold(lane)).longest())
            }
            Err(error) => {
                tracing::error!(%error, kind = lane.kind, "the policy cannot be read");
                Duration::ZERO
            }
        }
    }
}

/// Of very many old bundles, those that are looked after by a sweep at this time. With a power of two, whose turn it is hardly changes
/// while there are more and more of them.
fn in_turn(mut bundles: Vec<Uuid>, now: Timestamp) -> Vec<Uuid> {
    let sweeps =
        bundles.len().div_ceil(OLD_BUNDLES_PER_SEGMENT).next_power_of_two().min(OLD_BUNDLES_SWEEPS_MAX) as u128;
    let minute = u128::from(now.seconds() / 60);
    bundles.retain(|id| id.as_u128() % sweeps == minute % sweeps);
    bundles
}

/// The lane of every batch that a lock names.
pub(crate) fn batches_of(locks: &[Lock]) -> BTreeMap<Uuid, &Lane> {
    let of = |lock: &'_ Lock| lock.in_flight.iter().chain(&lock.closing).copied().collect::<Vec<_>>();
    locks.iter().flat_map(|lock| of(lock).into_iter().map(move |batch| (batch, &lock.lane))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A week of sweeps, while more and more bundles are old.
    #[test]
    fn each_old_bundle_has_its_turn_while_they_become_more() {
        const MINUTES: u64 = 7 * 24 * 60;
        let id = |n: u128| Uuid::from_u128(n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let bundles: Vec<Uuid> = (0..40_000).map(id).collect();
        let mut turns: BTreeMap<Uuid, u32> = BTreeMap::new();
        for minute in 0..MINUTES {
            let old = 10_000 + 3 * usize::try_from(minute).unwrap_or_default();
            let turn = in_turn(bundles[..old.min(bundles.len())].to_vec(), Timestamp(minute * 60_000));
            assert!(turn.len() <= 2 * OLD_BUNDLES_PER_SEGMENT, "{}", turn.len());
            turn.into_iter().for_each(|id| *turns.entry(id).or_default() += 1);
        }
        assert!(bundles[..10_000].iter().all(|id| turns.get(id).is_some_and(|turns| *turns > 10)));
    }

    #[test]
    fn few_bundles_are_looked_after_by_each_sweep() {
        let bundles: Vec<Uuid> = (0..OLD_BUNDLES_PER_SEGMENT as u128).map(Uuid::from_u128).collect();
        assert_eq!(in_turn(bundles.clone(), Timestamp(12_345_678)), bundles);
    }
}
