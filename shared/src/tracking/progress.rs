//! How far a fan-out's items have come: by its header alone, or counted.

use super::{Tracking, TrackingError};
use crate::limits::{GROUPS_COUNTED_MAX, PROGRESS_TRIES_MAX};
use crate::store::fanouts::Fanout;

/// How far a fan-out's items have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Items that are done.
    pub done: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Those of them that are duplicates.
    pub duplicates: u64,
    /// Items that were not done when the fan-out was cut short. They are none of those that are done.
    pub missing: u64,
    /// Whether that is all. Otherwise there are at least so many.
    pub exact: bool,
}

impl Progress {
    /// What the header shows: all of a small fan-out, of an estimated one what was counted, of others the groups that ended.
    #[must_use]
    pub fn of_header(fanout: &Fanout) -> Self {
        match &fanout.inline {
            Some(inline) => Self {
                done: fanout.total.saturating_sub(inline.pending.count() + inline.missing.count()),
                failed: inline.failed.count(),
                duplicates: inline.duplicates.count(),
                missing: inline.missing.count(),
                exact: true,
            },
            None if fanout.estimated() => Self {
                done: fanout.done,
                failed: fanout.failed,
                missing: if fanout.state.cut_short() { fanout.outstanding() } else { 0 },
                ..Self::default()
            },
            None => Self {
                done: (if fanout.open_groups == 0 { fanout.total } else { fanout.done }).saturating_sub(fanout.missing),
                failed: fanout.failed,
                duplicates: fanout.duplicates,
                missing: fanout.missing,
                exact: fanout.open_groups == 0,
            },
        }
    }
}

impl Tracking {
    /// A fan-out, and what is done in the groups that ended and in those that are open: exact, as each group stood when it was
    /// read, if no group ended or came meanwhile and an index shows all of them. If that is not so after some tries, or there
    /// are very many groups, it is what is done at least.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub async fn progress(&self, fanout: Fanout) -> Result<(Fanout, Progress), TrackingError> {
        let mut fanout = fanout;
        let mut progress = Progress::of_header(&fanout);
        for _ in 0..PROGRESS_TRIES_MAX {
            if progress.exact || fanout.estimated() || fanout.open_groups > GROUPS_COUNTED_MAX as u64 {
                break;
            }
            let mut counted = progress;
            let mut open = 0;
            for group in self.groups.open(fanout.id, GROUPS_COUNTED_MAX).await? {
                open += u64::from(group.size);
                counted.done += u64::from(group.size).saturating_sub(group.pending.count() + group.missing.count());
                counted.failed += group.failed.count();
                counted.duplicates += group.duplicates.count();
                counted.missing += group.missing.count();
            }
            let now = self.fanouts.get(fanout.id).await?.ok_or(TrackingError::UnknownFanout(fanout.id))?;
            let same = (now.total, now.open_groups) == (fanout.total, fanout.open_groups);
            counted.exact = same && open + fanout.done == fanout.total;
            progress = if counted.exact { counted } else { Progress::of_header(&now) };
            fanout = now;
        }
        Ok((fanout, progress))
    }
}
