//! Sealing and ending: of all workers that see that nothing of a fan-out is left, one makes the transition.

use futures::FutureExt;
use futures::future::BoxFuture;
use uuid::Uuid;

use super::{Tracking, TrackingError};
use crate::aws::Write;
use crate::messages::{About, NotifyMessage};
use crate::metrics::{FANOUTS_CANCELLED, FANOUTS_COMPLETED, FANOUTS_EXPIRED, FANOUTS_FAILED};
use crate::store::fanouts::{Fanout, FanoutState};
use crate::store::notices::{NoticeProgress, Notices};

impl Tracking {
    /// No more items come. Returns the fan-out after that: perhaps complete. Sealing again, or after another end was
    /// decided, changes nothing.
    ///
    /// # Errors
    /// There is no such fan-out, its producer is not through, or the tables cannot be written.
    pub async fn seal(&self, id: Uuid) -> Result<Fanout, TrackingError> {
        let sealed = self.fanouts.seal(id, false).await?.ok_or(TrackingError::UnknownFanout(id))?;
        if sealed.state == FanoutState::Open {
            return Err(TrackingError::Produced(id));
        }
        self.finish(sealed).await
    }

    /// The same for a fan-out with a producer, whose rows are all registered.
    ///
    /// # Errors
    /// There is no such fan-out, or the tables cannot be written.
    pub(crate) async fn seal_produced(&self, id: Uuid) -> Result<Fanout, TrackingError> {
        let sealed = self.fanouts.seal(id, true).await?.ok_or(TrackingError::UnknownFanout(id))?;
        self.finish(sealed).await
    }

    /// Judges a fan-out's failures: it fails if there are more than it tolerates, even if every item is done. Otherwise ends it
    /// if nothing of it is left. If it is not, a percentage of its items may be done that is to be reported.
    ///
    /// # Errors
    /// The tables cannot be read or written, or the hint not sent.
    pub fn finish(&self, fanout: Fanout) -> BoxFuture<'_, Result<Fanout, TrackingError>> {
        async move {
            match () {
                () if fanout.to_fail() => self.fail(fanout).await,
                () if fanout.nothing_left() => self.end_with_nothing_left(fanout).await,
                () => self.note_percentage(fanout).await,
            }
        }
        .boxed()
    }

    /// Ends a fan-out if nothing of it is left. The worker that ends it sends the message of its notice; later only `sweep` sends it
    /// again.
    ///
    /// # Errors
    /// The table cannot be written, or the hint not sent.
    pub(super) async fn end_with_nothing_left(&self, fanout: Fanout) -> Result<Fanout, TrackingError> {
        if !fanout.nothing_left() {
            return Ok(fanout);
        }
        match self.fanouts.end(&fanout).await? {
            Write::Done(ended) => {
                self.hint_end(&ended).await?;
                Ok(ended)
            }
            Write::Refused(stands) => stands.ok_or(TrackingError::UnknownFanout(fanout.id)),
        }
    }

    /// Reads the header, and finishes the fan-out if it is to fail or nothing of it is left.
    ///
    /// # Errors
    /// The tables cannot be read or written, or the hint not sent.
    pub async fn check(&self, id: Uuid) -> Result<Option<Fanout>, TrackingError> {
        match self.fanouts.get(id).await? {
            None => Ok(None),
            Some(fanout) => self.finish(fanout).await.map(Some),
        }
    }

    /// Sends the message of what follows from the end of a fan-out, its notice included, if it ended just now, which is counted.
    /// It is for the worker whose write was applied.
    pub(super) async fn hint_end(&self, fanout: &Fanout) -> Result<(), TrackingError> {
        count_end(fanout);
        if !fanout.ended() || !(fanout.to_follow() || fanout.to_notify()) {
            return Ok(());
        }
        self.follow_again(fanout).await
    }

    /// Sends the message of what follows from the end of a fan-out.
    ///
    /// # Errors
    /// The message cannot be sent.
    pub async fn follow_again(&self, fanout: &Fanout) -> Result<(), TrackingError> {
        Ok(self.notify.send(&NotifyMessage::first(About::Fanout(fanout.id))).await?)
    }

    /// Sends the message of a notice again, for the next try, since it is taken for lost. Earlier messages of it no longer
    /// count. False: another worker continued meanwhile.
    ///
    /// # Errors
    /// The table cannot be written, or the message not sent.
    pub async fn wake_notice(
        &self,
        notices: &Notices,
        about: About,
        notice: &NoticeProgress,
    ) -> Result<bool, TrackingError> {
        let Some(due) = notices.note_woken(&about.key(), notice).await? else { return Ok(false) };
        self.notify.send(&NotifyMessage::due(about, Some(due))).await?;
        Ok(true)
    }

    /// Sends a message again that was lost with its queue, for the moment it is due.
    ///
    /// # Errors
    /// The message cannot be sent.
    pub async fn send_when_due(&self, about: About, notice: &NoticeProgress) -> Result<(), TrackingError> {
        let message = NotifyMessage::due(about, notice.due);
        Ok(self.notify.send_all([(&message, notice.wait(self.world.now()))]).await?)
    }
}

/// Counts the end of a fan-out, if it ended.
fn count_end(fanout: &Fanout) {
    let ended = match fanout.state {
        _ if !fanout.ended() => return,
        FanoutState::Completed => FANOUTS_COMPLETED,
        FanoutState::Failed => FANOUTS_FAILED,
        FanoutState::Cancelled => FANOUTS_CANCELLED,
        FanoutState::Expired => FANOUTS_EXPIRED,
        FanoutState::Open | FanoutState::Sealed => return,
    };
    metrics::counter!(ended).increment(1);
}
