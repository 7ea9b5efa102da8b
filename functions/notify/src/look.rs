//! What a message asks for, by the record that its notice is about.

use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::grouping::{FailureNotice, Follows};
use fanfold::messages::{About, LaneBatch, NotifyMessage};
use fanfold::notice::Notice;
use fanfold::policy::Destination;
use fanfold::store::batches::BatchStatus;
use fanfold::store::fanouts::Report;
use fanfold::store::notices::{Next, NoticeProgress, Notices};
use uuid::Uuid;

use crate::{Notify, NotifyError};

/// What a message asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Nothing, or nothing any more.
    Nothing,
    /// To be sent again after this time.
    Later(Duration),
    /// A try to deliver.
    Try(Box<Due>),
}

/// A notice whose next try is due.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) about: About,
    pub(crate) notice: NoticeProgress,
    pub(crate) destination: Destination,
    /// All parts of it.
    pub(crate) notices: Vec<Notice>,
    /// Whether the record stays in the index of the sweep after the delivery: other work is left for it.
    pub(crate) looked_at: bool,
}

impl Notify {
    /// The records in which the progress of the notice is kept.
    pub(crate) fn records(&self, about: &About) -> Notices {
        match about {
            About::Fanout(_) => self.tracking.fanouts.notices(),
            About::Batch(_) => self.batches.notices(),
            About::Kind(_) => self.gates.notices(),
        }
    }

    /// What a message asks for, as the tables stand.
    pub(crate) async fn look(&self, message: &NotifyMessage) -> Result<Asked, NotifyError> {
        match &message.about {
            About::Fanout(id) => self.look_at_fanout(message, *id).await,
            About::Batch(named) => self.look_at_failures(message, named).await,
            About::Kind(kind) => self.look_at_kind(message, kind).await,
        }
    }

    /// A fan-out's end is reported once it has ended; before that, the percentage of its items that it reached last.
    async fn look_at_fanout(&self, message: &NotifyMessage, id: Uuid) -> Result<Asked, NotifyError> {
        let fanout =
            self.tracking.fanouts.get(id).await?.ok_or_else(|| NotifyError::Unknown(format!("fan-out {id}")))?;
        // A notice does not wait for what follows.
        let followed = self.follow(&fanout).await;
        let Some(destination) = fanout.notify.clone() else { return followed.map(|_| Asked::Nothing) };
        let notice = match fanout.report() {
            Some(Report::Progress(reached)) => Some(Notice::progress(&fanout, reached)),
            Some(Report::End(_)) => None,
            None => return followed.map(|_| Asked::Nothing),
        };
        let progress = notice.is_some();
        let asked = self.next(message, fanout.notice.clone(), destination, || notice.into_iter().collect()).await?;
        if let Asked::Nothing = asked {
            return followed.map(|_| asked);
        }
        let followed = followed.unwrap_or_else(|error| {
            tracing::error!(fanout = %id, %error, "what follows from its end is left to a sweep");
            false
        });
        let Asked::Try(due) = asked else { return Ok(asked) };
        if progress {
            return Ok(Asked::Try(Box::new(Due { looked_at: true, ..*due })));
        }
        let notices = vec![Notice::ended(&self.tracking.with_missing(fanout).await?)];
        Ok(Asked::Try(Box::new(Due { notices, looked_at: !followed, ..*due })))
    }

    async fn look_at_failures(&self, message: &NotifyMessage, named: &LaneBatch) -> Result<Asked, NotifyError> {
        let batch = self.batches.get(named.batch).await?;
        let batch = batch.ok_or_else(|| NotifyError::Unknown(format!("batch {}", named.batch)))?;
        // Sent too early, the notice would have the same id as the final one, and other failures.
        if batch.status != BatchStatus::Done {
            return Err(NotifyError::NotDone(batch.id));
        }
        // The step that acks its items asks for the notice afterwards. The notice closes the batch, and its acks would be lost.
        if !batch.notice.begun() && self.tracking.any_pending(&batch.items().collect::<Vec<_>>()).await? {
            return Ok(Asked::Nothing);
        }
        let policy = self.policies.get(&batch.lane.kind).await?;
        let destination = policy.as_ref().and_then(|policy| policy.notify.clone());
        let revives = message.undelivered.is_some() && batch.notice.given_up.is_some();
        let none = Follows::of(&batch, policy.as_deref()).failures == FailureNotice::None;
        let Some(destination) = destination.filter(|_| revives || !none) else {
            self.locks.closed(&batch.lane, &[batch.id]).await?;
            return Ok(Asked::Nothing);
        };
        if revives {
            // From now on `sweep` looks after it again.
            self.locks.close_again(&batch.lane, batch.id).await?;
        }
        self.next(message, batch.notice.clone(), destination, || Notice::failed(&batch)).await
    }

    /// A kind's notice reports its present state. A change is not reported if another one followed before its notice was delivered.
    async fn look_at_kind(&self, message: &NotifyMessage, kind: &str) -> Result<Asked, NotifyError> {
        let gate = self
            .gates
            .get(kind)
            .await?
            .ok_or_else(|| NotifyError::Unknown(format!("record of the places of kind `{kind}`")))?;
        let policy = self.policies.get(kind).await?;
        let destination = policy.as_ref().and_then(|policy| policy.notify.clone());
        let Some(destination) = destination.filter(|_| gate.notice_at.is_some()) else { return Ok(Asked::Nothing) };
        self.next(message, gate.notice.clone(), destination, || vec![Notice::of_kind(&gate)]).await
    }

    /// What follows from a message and the state of the notice.
    async fn next(
        &self,
        message: &NotifyMessage,
        mut notice: NoticeProgress,
        destination: Destination,
        notices: impl FnOnce() -> Vec<Notice>,
    ) -> Result<Asked, NotifyError> {
        let about = message.about.clone();
        let mut due = message.due;
        if message.undelivered.is_some()
            && notice.given_up.is_some()
            && let Some(now) = self.records(&about).revive(&about.key(), notice.change).await?
        {
            notice = NoticeProgress { given_up: None, due: Some(now), since: Some(now), ..notice };
            due = Some(now);
        }
        Ok(match notice.next(due, self.world.now()) {
            Next::Over | Next::Superseded => Asked::Nothing,
            Next::Wait(wait) => Asked::Later(wait),
            Next::Try => {
                let (notices, looked_at) = (notices(), false);
                Asked::Try(Box::new(Due { about, notice, destination, notices, looked_at }))
            }
        })
    }

    /// Sends a message again, to arrive after `wait`, or as late as a message can.
    pub(crate) async fn later(
        &self,
        message: &NotifyMessage,
        due: Option<Timestamp>,
        wait: Duration,
    ) -> Result<(), NotifyError> {
        Ok(self.notify.send_all([(&message.again(due), wait)]).await?)
    }
}
