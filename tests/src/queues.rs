//! Messages delivered by hand.

use std::time::Duration;

use aws_sdk_sqs::types::Message;
use fanfold::delivery::{Delivery, Step};
use fanfold::messages::HandleMessage;
use serde::Serialize;
use tokio::time::Instant;

use crate::stack::TestStack;

const SECOND: Duration = Duration::from_secs(1);

/// A queue of the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueName {
    Produce,
    Register,
    Elect,
    Group,
    Handle,
    Ack,
    Notify,
    Notices,
}

impl QueueName {
    /// Those with a step behind them.
    pub const STEPS: [Self; 7] =
        [Self::Produce, Self::Register, Self::Elect, Self::Group, Self::Handle, Self::Ack, Self::Notify];

    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Produce => "PRODUCE_QUEUE_URL",
            Self::Register => "REGISTER_QUEUE_URL",
            Self::Elect => "ELECT_QUEUE_URL",
            Self::Group => "GROUP_QUEUE_URL",
            Self::Handle => "HANDLE_QUEUE_URL",
            Self::Ack => "ACK_QUEUE_URL",
            Self::Notify => "NOTIFY_QUEUE_URL",
            Self::Notices => "NOTICES_QUEUE_URL",
        }
    }

    /// The function behind it in the template.
    pub(crate) fn function(self) -> &'static str {
        match self {
            Self::Produce => "ProduceFunction",
            Self::Register => "RegisterFunction",
            Self::Elect => "ElectFunction",
            Self::Group => "GroupFunction",
            Self::Handle => "HandleFunction",
            Self::Ack => "AckFunction",
            Self::Notify | Self::Notices => "NotifyFunction",
        }
    }
}

impl TestStack {
    fn step(&self, queue: QueueName) -> &dyn Step {
        match queue {
            QueueName::Produce => &*self.produce,
            QueueName::Register => &*self.register,
            QueueName::Elect => &*self.elect,
            QueueName::Group => &*self.group,
            QueueName::Handle => &*self.handle,
            QueueName::Ack => &*self.ack,
            QueueName::Notify | QueueName::Notices => &*self.notify,
        }
    }

    pub fn url(&self, queue: QueueName) -> &str {
        &self.urls[&queue]
    }

    /// Puts a message in a queue.
    pub async fn send(&self, queue: QueueName, body: impl ToString) {
        self.sqs.send_message().queue_url(self.url(queue)).message_body(body.to_string()).send().await.unwrap();
    }

    /// Receives what is visible now. The messages stay in the queue until they are deleted.
    pub async fn receive(&self, queue: QueueName) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let receive = self.sqs.receive_message().queue_url(self.url(queue)).max_number_of_messages(10);
            let got = receive.wait_time_seconds(0).send().await.unwrap().messages.unwrap_or_default();
            if got.is_empty() {
                return messages;
            }
            messages.extend(got);
        }
    }

    /// Takes what is visible now out of the queue.
    pub async fn take(&self, queue: QueueName) -> Vec<Delivery> {
        let messages = self.receive(queue).await;
        for message in &messages {
            self.delete(queue, message).await;
        }
        messages.iter().map(received).collect()
    }

    async fn delete(&self, queue: QueueName, message: &Message) {
        let delete = self.sqs.delete_message().queue_url(self.url(queue));
        delete.receipt_handle(message.receipt_handle().unwrap()).send().await.unwrap();
    }

    /// Hands deliveries to the step behind a queue; if the worker dies over it, another one takes over.
    pub async fn hand(&self, queue: QueueName, deliveries: Vec<Delivery>) -> Vec<String> {
        let failed = self.step(queue).deliver(deliveries).await;
        self.crash.revive();
        failed
    }

    /// Delivers what is visible now, as an event source would. Returns how many messages there were.
    pub async fn deliver(&self, queue: QueueName) -> usize {
        // Most of the time nothing is there, which a request need not say.
        if self.engine.backlog(self.url(queue)).await.unwrap().visible == 0 {
            return 0;
        }
        let messages = self.receive(queue).await;
        if messages.is_empty() {
            return 0;
        }
        let failed = self.hand(queue, messages.iter().map(received).collect()).await;
        for message in &messages {
            if failed.iter().any(|id| Some(id.as_str()) == message.message_id()) {
                let visible = self.sqs.change_message_visibility().queue_url(self.url(queue)).visibility_timeout(1);
                visible.receipt_handle(message.receipt_handle().unwrap()).send().await.unwrap();
            } else {
                self.delete(queue, message).await;
            }
        }
        messages.len()
    }

    /// Delivers everything until no queue holds a message, however delayed. Panics if that takes two days.
    pub async fn drain(&self) {
        let began = Instant::now();
        for _ in 0..200_000 {
            let (mut visible, mut total) = (0, 0);
            for queue in QueueName::STEPS {
                let backlog = self.engine.backlog(self.url(queue)).await.unwrap();
                total += backlog.total();
                if backlog.visible > 0 {
                    visible += self.deliver(queue).await;
                }
            }
            if total == 0 {
                return;
            }
            if began.elapsed() > Duration::from_hours(48) {
                break;
            }
            if visible == 0 {
                tokio::time::sleep(self.quiet().await.unwrap_or(SECOND)).await;
            }
        }
        panic!("the queues do not drain");
    }

    /// For how long, in whole seconds, no message becomes visible by itself: one in flight may in a second. None ever does if
    /// nothing is returned.
    pub(crate) async fn quiet(&self) -> Option<Duration> {
        for queue in QueueName::STEPS {
            if self.engine.backlog(self.url(queue)).await.unwrap().in_flight > 0 {
                return Some(SECOND);
            }
        }
        let due = self.engine.next_due().await?;
        Some(whole_seconds(due.saturating_duration_since(Instant::now())))
    }

    /// Messages in the queues of the steps.
    pub async fn backlog(&self) -> u64 {
        let mut messages = 0;
        for queue in QueueName::STEPS {
            let backlog = self.engine.backlog(self.url(queue)).await.unwrap();
            messages += backlog.total();
        }
        messages
    }

    /// Delivers what is in these queues, one after the other, each when what is delayed in it is due.
    pub async fn pass(&self, queues: &[QueueName]) {
        for queue in queues {
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(self.deliver(*queue).await > 0, "nothing came to {queue:?}");
        }
    }

    /// Hands one message to `handle`.
    pub async fn handle_message(&self, message: HandleMessage) {
        assert!(self.hand(QueueName::Handle, vec![self::message("message", &message)]).await.is_empty());
    }
}

/// Rounded up, and at least one.
pub(crate) fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_millis().div_ceil(1_000).max(1) as u64)
}

fn received(message: &Message) -> Delivery {
    Delivery {
        message_id: message.message_id().unwrap().to_owned(),
        body: message.body().unwrap().to_owned(),
        receive_count: 1,
    }
}

/// A delivery with this body.
pub fn delivery(id: impl ToString, body: impl ToString) -> Delivery {
    Delivery { message_id: id.to_string(), body: body.to_string(), receive_count: 1 }
}

/// A delivery of this message.
pub fn message(id: impl ToString, message: &impl Serialize) -> Delivery {
    delivery(id, serde_json::to_string(message).unwrap())
}
