//! Ends that are decided before every item was acked: what is in progress ends and is counted, what is not is missing.

use uuid::Uuid;

use super::ack::{Ending, contended};
use super::{Acks, Tracking, TrackingError};
use crate::aws::Write;
use crate::clock::Timestamp;
use crate::limits::{CONTENTION_TRIES_MAX, DRAINED_AFTER, GROUPS_PER_TRANSACTION_MAX};
use crate::store::fanouts::{Fanout, FanoutState};
use crate::store::groups::{GroupRecord, close};

impl Tracking {
    /// Cancels a fan-out: nothing is begun for it any more. Returns it as it stands then: ended, unless some of it is in progress.
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

    /// Ends a fan-out of which more items failed than it tolerates. Returns it as it stands then; somebody else may have decided another
    /// end before.
    pub(super) async fn fail(&self, fanout: Fanout) -> Result<Fanout, TrackingError> {
        self.cut_short(fanout, FanoutState::Failed, Fanout::to_fail).await
    }

    /// Decides that a fan-out ends so, for as long as that is due, and closes what can be closed at once. Returns it as it stands then.
    async fn cut_short(
        &self,
        mut fanout: Fanout,
        state: FanoutState,
        due: impl Fn(&Fanout) -> bool + Send + Sync,
    ) -> Result<Fanout, TrackingError> {
        let id = fanout.id;
        for tries in 1..=CONTENTION_TRIES_MAX {
            if !due(&fanout) {
                return self.close(fanout, CLOSED_AT_ONCE).await;
            }
            match self.fanouts.decide(&fanout, state).await? {
                Write::Done(decided) => {
                    self.hint_end(&decided).await?;
                    return self.close(decided, CLOSED_AT_ONCE).await;
                }
                Write::Refused(stands) => fanout = stands.ok_or(TrackingError::UnknownFanout(id))?,
            }
            if self.give_way(tries).await {
                fanout = self.fanouts.get(id).await?.ok_or(TrackingError::UnknownFanout(id))?;
            }
        }
        Err(contended(id))
    }

    /// Ends those groups of a fan-out that was cut short in which nothing is in progress: no tasks were ever registered for their
    /// items, or nothing happened to them for long. Looks at so many times as many groups as fit one transaction. Then ends
    /// the fan-out, if nothing is left. Doing it again does no harm.
    ///
    /// # Errors
    /// The tables cannot be read or written, or the hint not sent.
    pub async fn close(&self, fanout: Fanout, looks: usize) -> Result<Fanout, TrackingError> {
        let id = fanout.id;
        if !fanout.draining() {
            return Ok(fanout);
        }
        // Whatever ends a group is written down in the header, too.
        let idle = |since: Timestamp| self.world.now().since(since.max(fanout.updated_at)) >= DRAINED_AFTER;
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
        // Where only some are looked at, none is left out for ever.
        let first = usize::try_from(self.world.random.next()).unwrap_or(0) % groups.len().max(1);
        groups.rotate_left(first);
        for groups in groups.chunks(GROUPS_PER_TRANSACTION_MAX).take(looks) {
            let groups = self.groups.get_many(groups).await?.into_iter().filter(closable);
            let ending = groups.map(|group| Ending { cleared: close(&group), group });
            // One that changes meanwhile is looked at the next time.
            self.end_groups(id, ending.collect(), &Acks::new()).await?;
        }
        let now = self.fanouts.get(id).await?.ok_or(TrackingError::UnknownFanout(id))?;
        self.end_drained(now).await
    }
}

/// Looks at groups of whoever decides the end, and is waited for: some 1,000 groups. The sweep goes on.
const CLOSED_AT_ONCE: usize = 10;
