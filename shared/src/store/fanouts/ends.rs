//! How a fan-out ends: what its header says about it, and what each change makes of it. No I/O.

use super::{Fanout, FanoutState, Inline};
use crate::clock::Timestamp;
use crate::store::groups::{Cleared, close};

impl Fanout {
    /// Whether no item is left and no more come, so that it is to be ended.
    #[must_use]
    pub fn nothing_left(&self) -> bool {
        let closed = self.state == FanoutState::Sealed || self.state.cut_short();
        let left = self.open_groups > 0 || (self.estimated() && self.outstanding() > 0);
        closed && !self.ended() && !left && self.inline.is_none()
    }

    /// Whether it is complete.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.state == FanoutState::Completed
    }

    /// Whether it ended, one way or another, and all its counts are final.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended_at.is_some()
    }

    /// Whether it was cut short, and some of its items are in progress or still to be counted.
    #[must_use]
    pub fn ending_early(&self) -> bool {
        self.state.cut_short() && !self.ended()
    }

    /// Whether a sweep looks at it, since a message about it may be lost: it is sealed and is to be completed, its failures are
    /// to be judged, it ends early, or its end has work left (an ack, a task, a notice). A small one is completed, or fails, by the
    /// write that clears its bits; only its progress may have to be reported, or tasks that it was opened with be registered.
    #[must_use]
    pub fn ending(&self) -> bool {
        let judged = self.state == FanoutState::Open && self.failures > 0;
        let small = self.inline.is_some() && !self.reports_progress() && self.tasks.is_none();
        (self.state == FanoutState::Sealed && !small)
            || judged
            || self.ending_early()
            || self.to_follow()
            || self.to_notify()
    }

    /// The fan-out once it is cut short. A small one without tasks has nothing in progress, and ends at once.
    #[must_use]
    pub(super) fn decided(&self, state: FanoutState, now: Timestamp) -> Self {
        let decided = Self { state, look_at: None, updated_at: now, ..self.clone() };
        match self.inline_group() {
            Some(group) if group.tasks && !group.pending.is_zero() => decided,
            Some(group) => decided.with_bits(&close(&group), now),
            None if self.open_groups == 0 => Self { ended_at: Some(now), ..decided },
            None => decided,
        }
    }

    /// The small fan-out with these bits. If more items failed than are tolerated, it fails, even if every item is done.
    /// Otherwise it ends if no bit is left: it is complete, unless it was cut short before.
    pub(super) fn after(&self, cleared: &Cleared, now: Timestamp) -> Self {
        let failures = cleared.failed.count();
        let failing = Self { failures, ..self.clone() }.to_fail();
        let after = self.with_bits(cleared, now);
        if failing {
            Self { ended_at: None, state: self.state, ..after }.decided(FanoutState::Failed, now)
        } else {
            after
        }
    }

    fn with_bits(&self, cleared: &Cleared, now: Timestamp) -> Self {
        let Cleared { pending, failed, duplicates, missing, .. } = cleared.clone();
        let last = pending.is_zero();
        let (tasks, children) = self.inline.as_ref().map_or((false, false), |inline| (inline.tasks, inline.children));
        Self {
            state: if last && !self.state.cut_short() { FanoutState::Completed } else { self.state },
            failed: failed.count(),
            duplicates: duplicates.count(),
            missing: missing.count(),
            inline: Some(Inline { pending, failed, duplicates, missing, tasks, children }),
            look_at: self.look_at.filter(|_| !last),
            ended_at: last.then_some(now),
            updated_at: now,
            ..self.clone()
        }
    }
}
