//! Sealing and completing: whoever sees a fan-out sealed and drained makes the one transition.

use uuid::Uuid;

use super::{Tracking, TrackingError};
use crate::aws::Write;
use crate::messages::{About, NotifyMessage};
use crate::store::fanouts::Fanout;
use crate::store::notices::{NoticeProgress, Notices};

/// How far a fan-out's items have come, as well as that can be seen without reading everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Progress {
    /// Items that are done.
    pub done: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Those of them that were dropped as duplicates.
    pub duplicates: u64,
}

impl Progress {
    /// What the header of a fan-out shows: of one that has groups, those that ended.
    #[must_use]
    pub fn of_header(fanout: &Fanout, done: u64) -> Self {
        match &fanout.inline {
            Some(inline) => Self {
                done: fanout.total.saturating_sub(inline.pending.count()),
                failed: inline.failed.count(),
                duplicates: inline.duplicates.count(),
            },
            None => Self { done, failed: fanout.failed, duplicates: fanout.duplicates },
        }
    }
}

impl Tracking {
    /// No more items come. Returns the fan-out as it stands then: perhaps complete. Sealing again changes nothing.
    ///
    /// # Errors
    /// There is no such fan-out, or the tables cannot be written.
    pub async fn seal(&self, id: Uuid) -> Result<Fanout, TrackingError> {
        let sealed = self.fanouts.seal(id).await?.ok_or(TrackingError::UnknownFanout(id))?;
        self.finish(sealed).await
    }

    /// Completes a fan-out that is drained. Whoever completes it sends the message of its notice; later only `sweep` sends it
    /// again.
    ///
    /// # Errors
    /// The table cannot be written, or the hint not sent.
    pub async fn finish(&self, fanout: Fanout) -> Result<Fanout, TrackingError> {
        if !fanout.drained() {
            return Ok(fanout);
        }
        match self.fanouts.complete(&fanout).await? {
            Write::Done(completed) => {
                self.tell(&completed).await?;
                Ok(completed)
            }
            Write::Refused(stands) => stands.ok_or(TrackingError::UnknownFanout(fanout.id)),
        }
    }

    /// Reads the header and finishes the fan-out if it is drained.
    ///
    /// # Errors
    /// The table cannot be read or written, or the hint not sent.
    pub async fn check(&self, id: Uuid) -> Result<Option<Fanout>, TrackingError> {
        match self.fanouts.get(id).await? {
            None => Ok(None),
            Some(fanout) => self.finish(fanout).await.map(Some),
        }
    }

    /// Sends the message of the notice of a fan-out that was completed just now.
    pub(super) async fn tell(&self, fanout: &Fanout) -> Result<(), TrackingError> {
        if fanout.notify.is_none() {
            return Ok(());
        }
        Ok(self.notify.send(&NotifyMessage::first(About::Fanout(fanout.id))).await?)
    }

    /// Sends the message of a notice again, for the next try: it is taken for lost. Earlier messages of it no longer count.
    /// False: somebody went on with it meanwhile.
    ///
    /// # Errors
    /// The table cannot be written, or the message not sent.
    pub async fn remind(
        &self,
        notices: &Notices,
        about: About,
        notice: &NoticeProgress,
    ) -> Result<bool, TrackingError> {
        let Some(due) = notices.remind(&about.key(), notice).await? else { return Ok(false) };
        self.notify.send(&NotifyMessage::due(about, Some(due))).await?;
        Ok(true)
    }

    /// Sends the message again that is lost with its queue, for the moment it is due.
    ///
    /// # Errors
    /// The message cannot be sent.
    pub async fn resume(&self, about: About, notice: &NoticeProgress) -> Result<(), TrackingError> {
        let message = NotifyMessage::due(about, notice.due);
        Ok(self.notify.send_all([(&message, notice.wait(self.world.now()))]).await?)
    }

    /// How far the items have come. The index of unfinished groups may lag, so this may, too.
    ///
    /// # Errors
    /// The tables cannot be read.
    pub async fn progress(&self, fanout: &Fanout) -> Result<Progress, TrackingError> {
        let mut progress = Progress::of_header(fanout, fanout.total);
        if fanout.inline.is_none() && fanout.open_groups > 0 {
            for group in self.groups.open(fanout.id).await? {
                progress.done = progress.done.saturating_sub(group.pending.count());
                progress.failed += group.failed.count();
                progress.duplicates += group.duplicates.count();
            }
        }
        Ok(progress)
    }
}
