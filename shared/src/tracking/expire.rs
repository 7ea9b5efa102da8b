//! Fan-outs to which nothing happens for long expire.

use super::{Tracking, TrackingError};
use crate::aws::Write;
use crate::clock::Timestamp;
use crate::limits::{KEYS_PER_READ_MAX, SWEEP_CLOSES_MAX};
use crate::store::fanouts::{Fanout, FanoutState};

impl Tracking {
    /// Ends a fan-out to which nothing happened for longer than its limit; one that is active is looked at again later, and one
    /// of which nothing is left completes. Returns whether its end was decided here. An ack that comes between the look and the decision is counted, unless its group is closed first.
    ///
    /// # Errors
    /// The tables cannot be read or written, or the hint not sent.
    pub async fn expire(&self, fanout: Fanout) -> Result<bool, TrackingError> {
        if fanout.state.decided() {
            return Ok(false);
        }
        if fanout.to_fail() || fanout.nothing_left() {
            // Its end was due, but the worker that saw this died.
            return Ok(self.finish(fanout).await?.state.decided());
        }
        let now = self.world.now();
        if let Some(until) = self.active_until(&fanout, now).await? {
            let then = until.min(now.plus(fanout.idle_limit.least()));
            self.fanouts.look_again(&fanout, then).await?;
            return Ok(false);
        }
        let Write::Done(decided) = self.fanouts.decide(&fanout, FanoutState::Expired).await? else { return Ok(false) };
        self.hint_end(&decided).await?;
        self.close(decided, SWEEP_CLOSES_MAX).await?;
        Ok(true)
    }

    /// Until when a fan-out counts as active, by the first of its records that shows it; none: it is idle. Groups are read
    /// consistently. A group that the index does not show yet was added just now, which the header shows, too.
    async fn active_until(&self, fanout: &Fanout, now: Timestamp) -> Result<Option<Timestamp>, TrackingError> {
        let active = |until: Timestamp| (until >= now).then_some(until);
        if let Some(until) = active(fanout.active_until()) {
            return Ok(Some(until));
        }
        if let Some(group) = fanout.inline_group() {
            return Ok(active(fanout.active_in(&group)));
        }
        for groups in self.groups.open_ids(fanout.id, usize::MAX).await?.chunks(KEYS_PER_READ_MAX) {
            let groups = self.groups.get_many(groups).await?;
            let left = groups.iter().filter(|group| !group.pending.is_zero());
            if let Some(until) = left.filter_map(|group| active(fanout.active_in(group))).max() {
                return Ok(Some(until));
            }
        }
        Ok(None)
    }
}
