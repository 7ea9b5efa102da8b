//! Percentages of a fan-out's items at which its progress is reported.

use super::{Tracking, TrackingError};
use crate::aws::Write;
use crate::messages::{About, NotifyMessage};
use crate::store::fanouts::{Fanout, Report};

impl Tracking {
    /// Notes that a percentage of the items is done, if that is to be reported, and sends the message of its notice; if that is
    /// lost, `sweep` sends it again. Returns the fan-out after that.
    pub(super) async fn note_percentage(&self, mut fanout: Fanout) -> Result<Fanout, TrackingError> {
        // Each refusal is by another percentage, or by the end.
        while fanout.reaches(self.world.now()).is_some() {
            match self.fanouts.reach(&fanout).await? {
                Write::Done(after) => {
                    self.hint_percentage(&fanout, &after).await?;
                    return Ok(after);
                }
                Write::Refused(Some(stands)) => fanout = stands,
                Write::Refused(None) => return Err(TrackingError::UnknownFanout(fanout.id)),
            }
        }
        Ok(fanout)
    }

    /// Sends the message of the notice of a percentage that was reached just now, if one was.
    pub(super) async fn hint_percentage(&self, before: &Fanout, after: &Fanout) -> Result<(), TrackingError> {
        if after.notice.change == before.notice.change || !matches!(after.undelivered(), Some(Report::Progress(_))) {
            return Ok(());
        }
        Ok(self.notify.send(&NotifyMessage::due(About::Fanout(after.id), after.notice.due)).await?)
    }
}
