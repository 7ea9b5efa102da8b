//! One try to deliver a notice, and what follows from it.

use std::time::Duration;

use fanfold::limits::{CLOSING_MAX, ERROR_BYTES_MAX, NOTICE_GIVE_UP, NOTICE_PAUSES, NOTICE_TRY_MAX};
use fanfold::messages::{About, NotifyMessage, Undelivered};
use fanfold::metrics::{NOTICE_TRIES_FAILED, NOTICES_DELIVERED, NOTICES_GIVEN_UP};
use fanfold::notice::Notice;
use fanfold::store::notices::{NoticeTry, Notices};
use fanfold::text::shorten;

use crate::look::Due;
use crate::{DeliveryError, Notify, NotifyError, destinations};

impl Notify {
    /// Begins the try, delivers, and records the result. After a crash between delivery and record it is delivered again,
    /// under the same id.
    pub(crate) async fn try_once(&self, due: &Due) -> Result<(), NotifyError> {
        let records = self.records_of(due);
        let Some(running) = records.begin(&due.about.key(), &due.notice).await? else { return Ok(()) };
        let before = due.notice.parts;
        for (parts, notice) in (before..).zip(due.notices.iter().skip(before as usize)) {
            if self.world.now().since(running.began) >= NOTICE_TRY_MAX {
                return self.try_again(due, &running, parts, Duration::ZERO, None).await;
            }
            if let Err(error) = self.deliver_to(&due.destination, notice).await {
                return self.failed(due, &running, parts, &error).await;
            }
            metrics::counter!(NOTICES_DELIVERED).increment(1);
        }
        if !records.delivered(&running).await? {
            return self.overtaken(due, &running).await;
        }
        self.close(&due.about).await
    }

    /// The records that keep how far the notice has come.
    fn records_of(&self, due: &Due) -> Notices {
        let records = self.records(&due.about);
        if due.looked_at { records.unindexed() } else { records }
    }

    /// The next try comes later, unless there is to be none.
    async fn failed(
        &self,
        due: &Due,
        running: &NoticeTry,
        parts: u32,
        error: &DeliveryError,
    ) -> Result<(), NotifyError> {
        metrics::counter!(NOTICE_TRIES_FAILED).increment(1);
        let text = error.to_string();
        let text = shorten(&text, ERROR_BYTES_MAX);
        let over = error.is_final() || self.world.now().since(running.since) >= NOTICE_GIVE_UP;
        if over || self.crowded(&due.about).await? {
            return self.give_up(due, running, parts, &text).await;
        }
        let pause = NOTICE_PAUSES.after(running.tries, self.world.random.next()).max(error.retry_after());
        let (to, seconds) = (destinations::name(&due.destination), pause.as_secs());
        tracing::warn!(to, tries = running.tries, error = %text, seconds, "a notice was not delivered");
        self.try_again(due, running, parts, pause, Some(&text)).await
    }

    /// Records when the next try is due, then sends its message.
    async fn try_again(
        &self,
        due: &Due,
        running: &NoticeTry,
        parts: u32,
        pause: Duration,
        error: Option<&str>,
    ) -> Result<(), NotifyError> {
        let at = self.world.now().plus(pause);
        if !self.records_of(due).again(running, at, parts, error).await? {
            return self.overtaken(due, running).await;
        }
        self.later(&NotifyMessage::first(due.about.clone()), Some(at), pause).await
    }

    /// Another change of a fan-out is to be reported, and its notice waits for this try to end: its message is sent anew. If
    /// that is lost, the notice comes when the lease of this try is over.
    async fn overtaken(&self, due: &Due, running: &NoticeTry) -> Result<(), NotifyError> {
        if running.change.is_none() || !matches!(due.about, About::Fanout(_)) {
            return Ok(());
        }
        match self.records_of(due).leave(running).await? {
            Some(next) => {
                self.later(&NotifyMessage::first(due.about.clone()), next.due, next.wait(self.world.now())).await
            }
            None => Ok(()),
        }
    }

    /// Sends what was not delivered to the dead-letter queue, then records that. After a crash in between there is one more try.
    async fn give_up(&self, due: &Due, running: &NoticeTry, parts: u32, error: &str) -> Result<(), NotifyError> {
        let to = destinations::name(&due.destination);
        let dead = |notice: &Notice| {
            let (notice, to, error) = (notice.clone(), to.to_owned(), error.to_owned());
            NotifyMessage::dead(due.about.clone(), Undelivered { notice, to, tries: running.tries, error })
        };
        let letters: Vec<NotifyMessage> = due.notices.iter().skip(parts as usize).map(dead).collect();
        self.dead.send_all(letters.iter().map(|letter| (letter, Duration::ZERO))).await?;
        if !self.records_of(due).give_up(running, parts, error).await? {
            return self.overtaken(due, running).await;
        }
        metrics::counter!(NOTICES_GIVEN_UP).increment(letters.len() as u64);
        tracing::error!(to, tries = running.tries, %error, "a notice was given up");
        self.close(&due.about).await
    }

    /// Whether as many batches of a lane wait for the notices of their failures as may wait.
    pub(crate) async fn crowded(&self, about: &About) -> Result<bool, NotifyError> {
        let About::Batch(named) = about else { return Ok(false) };
        Ok(self.locks.get(&named.lane).await?.closing.len() > CLOSING_MAX)
    }

    /// Gives up a notice whose receiver has no place for it.
    pub(crate) async fn turn_away(&self, due: &Due) -> Result<(), NotifyError> {
        let Some(running) = self.records_of(due).begin(&due.about.key(), &due.notice).await? else { return Ok(()) };
        let error =
            format!("the receiver is busy, and notices of more than {CLOSING_MAX} batches of the lane wait for it");
        self.give_up(due, &running, due.notice.parts, &error).await
    }

    /// Closes the batch that the notice was about: nothing is left to do for it.
    async fn close(&self, about: &About) -> Result<(), NotifyError> {
        match about {
            About::Fanout(_) | About::Kind(_) => Ok(()),
            About::Batch(named) => Ok(self.locks.closed(&named.lane, &[named.batch]).await?),
        }
    }
}
