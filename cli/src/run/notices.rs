//! Waits for the notice that a fan-out has ended.

use std::collections::BTreeSet;

use fanfold::config::variables;
use fanfold::notice::Notice;
use fanfold::store::fanouts::Fanout;
use uuid::Uuid;

use crate::failure::Failure;
use crate::stack::EmbeddedStack;

/// Seconds of a long poll, the most SQS allows.
const LONG_POLL: i32 = 20;

/// The notices of one fan-out.
#[derive(Debug)]
pub(crate) struct Notices {
    sqs: aws_sdk_sqs::Client,
    url: String,
    fanout: Uuid,
    end: Option<Notice>,
    ids: BTreeSet<Uuid>,
}

impl Notices {
    pub(crate) fn of(stack: &EmbeddedStack, fanout: Uuid) -> Result<Self, Failure> {
        Ok(Self {
            sqs: stack.engine.sqs(),
            url: stack.surroundings("NotifyFunction").variable(variables::NOTICES_QUEUE_URL)?,
            fanout,
            end: None,
            ids: BTreeSet::new(),
        })
    }

    /// Takes the notice of a fan-out that has ended, however it did: an earlier process received it, and died before it
    /// wrote that down, or was `fanfold up`.
    pub(crate) fn found(&mut self, fanout: &Fanout) {
        if fanout.ended() && fanout.notice.delivered.is_some() {
            self.take(Notice::ended(fanout));
        }
    }

    /// The notice of the end, once it is there.
    pub(crate) async fn end(&mut self) -> Result<Notice, Failure> {
        loop {
            if let Some(notice) = &self.end {
                return Ok(notice.clone());
            }
            self.receive(LONG_POLL).await?;
        }
    }

    /// How many notices of the end were received, repeats of one not counted.
    pub(crate) async fn count(&mut self) -> Result<usize, Failure> {
        while self.receive(0).await? > 0 {}
        Ok(self.ids.len())
    }

    async fn receive(&mut self, seconds: i32) -> Result<usize, Failure> {
        let failed = |error: String| Failure::Local(format!("notices cannot be received: {error}"));
        let receive = self.sqs.receive_message().queue_url(&self.url).max_number_of_messages(10);
        let received = receive.wait_time_seconds(seconds).send().await.map_err(|error| failed(error.to_string()))?;
        let messages = received.messages.unwrap_or_default();
        for message in &messages {
            let notice = serde_json::from_str(message.body().unwrap_or_default());
            self.take(notice.map_err(|error| failed(error.to_string()))?);
            let delete = self.sqs.delete_message().queue_url(&self.url);
            let delete = delete.receipt_handle(message.receipt_handle().unwrap_or_default());
            delete.send().await.map_err(|error| failed(error.to_string()))?;
        }
        Ok(messages.len())
    }

    fn take(&mut self, notice: Notice) {
        if notice.event.end().is_some_and(|end| end.fanout == self.fanout) {
            self.ids.insert(notice.id);
            self.end.get_or_insert(notice);
        }
    }
}
