//! Which items of a fan-out that ended are missing, for the notice of its end.

use uuid::Uuid;

use super::{ItemState, Tracking, TrackingError};
use crate::limits::{GROUPS_COUNTED_MAX, KEYS_PER_READ_MAX};
use crate::store::fanouts::{Fanout, Missing};

impl Tracking {
    /// Finds out which items of a fan-out that ended are missing, if some are, and writes that down in its header, once: whatever
    /// becomes of the groups' records, each delivery of its notice reports the same. Returns the fan-out after that.
    ///
    /// # Errors
    /// There is no such fan-out any more, or the tables cannot be read or written.
    pub async fn with_missing(&self, fanout: Fanout) -> Result<Fanout, TrackingError> {
        if fanout.missing == 0 || fanout.notice_facts.missing.is_some() {
            return Ok(fanout);
        }
        let (id, missing) = (fanout.id, self.find_missing(&fanout).await?);
        self.fanouts.name_missing(fanout, missing).await?.ok_or(TrackingError::UnknownFanout(id))
    }

    /// Reads groups until all missing items are found, or as many ranges as a notice names, or as many groups as there is time
    /// for.
    async fn find_missing(&self, fanout: &Fanout) -> Result<Missing, TrackingError> {
        let mut missing = Missing::default();
        let mut after: Option<Uuid> = None;
        for _ in 0..GROUPS_COUNTED_MAX / KEYS_PER_READ_MAX {
            let page = self.groups_of(fanout, after, KEYS_PER_READ_MAX).await?;
            for (group, ranges) in self.in_state(fanout, &page.groups, ItemState::Missing).await? {
                missing.add(group, ranges);
            }
            after = page.groups.last().map(|group| group.id).filter(|_| page.more);
            if after.is_none() || missing.is_full() || missing.count() >= fanout.missing {
                break;
            }
        }
        Ok(missing)
    }
}
