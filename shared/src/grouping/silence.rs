//! Leaders and batches that are silent: their worker may have died, or their message was lost. Any worker can act for them.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::control::Hold;
use crate::limits::{LEADER_LEASE, WAKE_PAUSE_MAX};
use crate::messages::{GroupMessage, HandleMessage};
use crate::overdue::overdue;
use crate::store::batches::{Batch, BatchStatus};
use crate::store::gates::Gate;
use crate::store::locks::Lock;

/// How long a leader may be silent beyond its linger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// For its lease: it is in the way of an election.
    Lease,
    /// For less than this: `sweep` wakes leaders that are silent for as long.
    Under(Duration),
    /// Not at all, and it does not linger either: every worker is known to be dead.
    None,
}

/// The message for a silent leader, if there is one and patience with it is at an end. The sender renews the lock first, so that
/// only one of several senders sends it. `linger`: for how long the leader may wait for its batch to fill; `hold`: the effect of
/// switches on its lane.
#[must_use]
pub fn wake_leader(
    lock: &Lock,
    linger: Duration,
    hold: Hold,
    patience: Patience,
    now: Timestamp,
) -> Option<GroupMessage> {
    let message = GroupMessage::again(lock)?;
    let speaks_by = lock.elected_at.or(lock.acquired_at)?.plus(linger);
    let horizon = match patience {
        Patience::Lease => now.minus(LEADER_LEASE),
        Patience::Under(age) => now.minus(age),
        Patience::None => return Some(message),
    };
    // While its lane was paused, its messages were discarded.
    let woken_at = lock.elected_at.and(lock.acquired_at).filter(|woken_at| Some(*woken_at) >= hold.resumed_at);
    overdue(speaks_by, woken_at, horizon, now).then_some(message)
}

/// Whether a lane is to be woken for a task that was registered then, and is in no batch yet: no worker can be busy with it that
/// began at `horizon` or before.
#[must_use]
pub fn lane_overdue(hold: Hold, registered: Timestamp, horizon: Timestamp) -> bool {
    // No message was sent for what was registered while the lane was paused.
    let waited = hold.resumed_at.is_some_and(|resumed_at| registered <= resumed_at);
    !hold.paused && (registered <= horizon || waited)
}

/// What a batch's message may wait for, beside its own time.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// The gate of the batch's kind. If it is full, the kind's further records mostly are, too.
    pub gate: Option<&'a Gate>,
    /// The effect of switches on its lane.
    pub hold: Hold,
    /// How many places the gate has.
    pub room: u32,
}

/// Whether the message that a batch waits for is to be sent again: it was due at `horizon` or before.
#[must_use]
pub fn batch_overdue(batch: &Batch, around: Circumstances<'_>, horizon: Timestamp, now: Timestamp) -> bool {
    let Circumstances { gate, hold, room } = around;
    let Some((_, due)) = HandleMessage::awaited(batch) else { return false };
    let resumed_at = gate.and_then(|gate| gate.resumed_at).max(hold.resumed_at).unwrap_or_default();
    // While its kind stood still, or its lane was paused, its messages that were due were discarded.
    if due <= resumed_at && batch.status != BatchStatus::Done && batch.woken_at < Some(resumed_at) {
        return true;
    }
    // Many batches may wait for a place of a kind whose places are all taken; their messages come.
    let full = gate.is_some_and(|gate| gate.held(now) >= room as usize);
    let horizon = if full { horizon.min(now.minus(WAKE_PAUSE_MAX)) } else { horizon };
    overdue(due, batch.woken_at, horizon, now)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const LINGER: Duration = Duration::from_secs(3);
    const ACQUIRED: Timestamp = Timestamp(1_000_000);

    fn led() -> Lock {
        let lane = "parcel:0:NY".parse().unwrap();
        Lock { holder: Some(Uuid::from_u128(1)), acquired_at: Some(ACQUIRED), epoch: 4, ..Lock::free(lane) }
    }

    fn wakes(lock: &Lock, patience: Patience, now: Timestamp) -> Option<GroupMessage> {
        wake_leader(lock, LINGER, Hold::default(), patience, now)
    }

    /// Whether the leader is woken so long after it was elected.
    fn woken(patience: Patience, after: Duration) -> bool {
        wakes(&led(), patience, ACQUIRED.plus(after)).is_some()
    }

    #[test]
    fn a_leader_may_linger_and_then_has_its_lease() {
        let moment = Duration::from_millis(1);
        assert!(!woken(Patience::Lease, Duration::ZERO));
        assert!(!woken(Patience::Lease, LINGER + LEADER_LEASE - moment));
        assert!(woken(Patience::Lease, LINGER + LEADER_LEASE));
    }

    /// Its queue may be far behind: then each message more makes it later still.
    #[test]
    fn a_leader_that_was_woken_is_woken_again_after_pauses_that_grow() {
        let speaks_by = ACQUIRED.plus(LINGER);
        let after = |seconds| speaks_by.plus(Duration::from_secs(seconds));
        let again = Lock { acquired_at: Some(after(100)), elected_at: Some(ACQUIRED), ..led() };
        for patience in [Patience::Lease, Patience::Under(LEADER_LEASE)] {
            assert_eq!(wakes(&again, patience, after(199)), None);
            assert!(wakes(&again, patience, after(200)).is_some());
            // A pause discarded the message.
            let hold = |seconds| Hold { resumed_at: Some(after(seconds)), ..Hold::default() };
            assert!(wake_leader(&again, LINGER, hold(101), patience, after(102)).is_some());
            assert_eq!(wake_leader(&again, LINGER, hold(100), patience, after(102)), None, "it came after the pause");
        }
        assert!(wakes(&again, Patience::None, after(101)).is_some());
    }

    #[test]
    fn sweep_wakes_leaders_that_were_silent_for_as_long_as_given() {
        let age = Duration::from_secs(60);
        let moment = Duration::from_millis(1);
        assert!(!woken(Patience::Under(age), LINGER + age - moment));
        assert!(woken(Patience::Under(age), LINGER + age));
        assert!(!woken(Patience::Under(Duration::ZERO), LINGER - moment));
        assert!(woken(Patience::Under(Duration::ZERO), LINGER));
    }

    #[test]
    fn a_leader_whose_worker_is_dead_does_not_linger() {
        assert!(woken(Patience::None, Duration::ZERO));
    }

    #[test]
    fn a_clock_that_is_behind_wakes_nobody() {
        for patience in [Patience::Lease, Patience::Under(Duration::ZERO)] {
            assert_eq!(wakes(&led(), patience, ACQUIRED.minus(LEADER_LEASE)), None);
        }
    }

    #[test]
    fn it_gets_its_own_message_and_nobody_gets_one_without_a_leader() {
        let lock = led();
        let message = wakes(&lock, Patience::None, ACQUIRED);
        assert_eq!(message, GroupMessage::again(&lock));
        assert_eq!(message.map(|message| message.epoch), Some(4));
        let free = Lock { holder: None, acquired_at: None, ..lock };
        assert_eq!(wakes(&free, Patience::None, ACQUIRED), None);
    }

    #[test]
    fn a_lane_is_woken_for_old_tasks_and_for_those_of_its_pause() {
        let at = Timestamp;
        let goes_on = Hold { resumed_at: None, ..Hold::default() };
        let resumed = Hold { resumed_at: Some(at(50)), ..Hold::default() };
        for (hold, registered, woken) in
            [(goes_on, 10, true), (goes_on, 11, false), (resumed, 11, true), (resumed, 50, true), (resumed, 51, false)]
        {
            assert_eq!(lane_overdue(hold, at(registered), at(10)), woken, "{hold:?} {registered}");
            assert!(!lane_overdue(Hold { paused: true, ..hold }, at(registered), at(10)), "it is paused");
        }
    }
}
