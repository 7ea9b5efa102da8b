//! Fan-outs that are cut short: items in progress are awaited and counted, the others become missing.

use uuid::Uuid;

use super::ack::{Ending, contended};
use super::{Tracking, TrackingError};
use crate::aws::Write;
use crate::clock::Timestamp;
use crate::limits::{CONTENTION_TRIES_MAX, GROUPS_PER_TRANSACTION_MAX, MISSING_AFTER, REQUEST_CLOSES_MAX};
use crate::store::fanouts::{Fanout, FanoutState};
use crate::store::groups::{GroupRecord, close};

impl Tracking {
    /// Cancels a fan-out: nothing is begun for it any more. Returns it after that: ended, unless some of it is in progress.
    /// Cancelling it again changes nothing.
    ///
    /// # Errors
    /// There is no such fan-out, it ended otherwise, or the tables cannot be read or written.
    pub async fn cancel(&self, id: Uuid) -> Result<Fanout, TrackingError> {
        let fanout = self.fanouts.get(id).await?.ok_or(TrackingError::UnknownFanout(id))?;
        let undecided = |fanout: &Fanout| !fanout.state.decided();
        let fanout = self.cut_short(fanout, FanoutState::Cancelled, undecided).await?;
        match fanout.state {
            FanoutState::Cancelled => Ok(fanout),
            state => Err(TrackingError::Ended { id, state }),
        }
    }

    /// Ends a fan-out with more failed items than it tolerates. Returns it after that: another end may have been decided
    /// before.
    pub(super) async fn fail(&self, fanout: Fanout) -> Result<Fanout, TrackingError> {
        self.cut_short(fanout, FanoutState::Failed, Fanout::to_fail).await
    }

    /// Cuts a fan-out short as long as that is due, and closes the groups that can be closed at once. Returns it as it stands
    /// then.
    async fn cut_short(
        &self,
        mut fanout: Fanout,
        state: FanoutState,
        due: impl Fn(&Fanout) -> bool + Send + Sync,
    ) -> Result<Fanout, TrackingError> {
        let id = fanout.id;
        for tries in 1..=CONTENTION_TRIES_MAX {
            if !due(&fanout) {
                return self.close(fanout, REQUEST_CLOSES_MAX).await;
            }
            match self.fanouts.decide(&fanout, state).await? {
                Write::Done(decided) => {
                    self.hint_end(&decided).await?;
                    return self.close(decided, REQUEST_CLOSES_MAX).await;
                }
                Write::Refused(stands) => fanout = stands.ok_or(TrackingError::UnknownFanout(id))?,
            }
            if self.give_way(tries).await {
                fanout = self.fanouts.get(id).await?.ok_or(TrackingError::UnknownFanout(id))?;
            }
        }
        Err(contended(id))
    }

    /// Ends the groups of a fan-out that was cut short in which nothing is in progress: none of their items had tasks, or
    /// nothing happened to them for long. Looks at no more than `looks` times as many groups as fit one transaction. Then ends
    /// the fan-out, if no group is left. Doing it again does no harm.
    ///
    /// # Errors
    /// The tables cannot be read or written, or the hint not sent.
    pub async fn close(&self, fanout: Fanout, looks: usize) -> Result<Fanout, TrackingError> {
        let id = fanout.id;
        if !fanout.ending_early() {
            return Ok(fanout);
        }
        // The header changes when acks end other groups: they still come.
        let idle = |since: Timestamp| self.world.now().since(since.max(fanout.updated_at)) >= MISSING_AFTER;
        let closable = |group: &GroupRecord| !group.pending.is_zero() && (!group.tasks || idle(group.updated_at));
        if let Some(group) = fanout.inline_group() {
            if !closable(&group) {
                return Ok(fanout);
            }
            let Write::Done(ended) = self.fanouts.clear_inline(&fanout, &group, &close(&group)).await? else {
                return Ok(fanout);
            };
            self.hint_end(&ended).await?;
            return Ok(ended);
        }
        let mut groups = self.groups.open_ids(id, usize::MAX).await?;
        // It begins anywhere, so that no group is left out for ever if only some are looked at.
        let first = usize::try_from(self.world.random.next()).unwrap_or(0) % groups.len().max(1);
        groups.rotate_left(first);
        for groups in groups.chunks(GROUPS_PER_TRANSACTION_MAX).take(looks) {
            let groups = self.groups.get_many(groups).await?.into_iter().filter(closable);
            let ending = groups.map(|group| Ending { cleared: close(&group), group });
            // A group that changes meanwhile is looked at the next time.
            self.end_groups(id, ending.collect(), None).await?;
        }
        let now = self.fanouts.get(id).await?.ok_or(TrackingError::UnknownFanout(id))?;
        self.end_with_nothing_left(now).await
    }
}
