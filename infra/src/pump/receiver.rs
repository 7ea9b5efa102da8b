//! Receives messages and gathers them into batches.

use std::collections::VecDeque;
use std::time::Duration;

use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::Ended;
use super::batch::Batch;
use crate::template::EventSource;

/// Seconds of a long poll, the most SQS allows. The embedded SQS wakes it as soon as a message can be received.
const LONG_POLL: i32 = 20;
/// Messages of one receive, the most SQS allows.
const RECEIVED_MAX: usize = 10;
/// Pause after a receive that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// One receiver serves a whole event source: a call brings ten messages, and invocations run beside it.
pub(super) struct Receiver {
    sqs: aws_sdk_sqs::Client,
    queue_url: String,
    batch_size: usize,
    window: Duration,
    /// Whether no batch waits for its window any more.
    hasty: watch::Receiver<bool>,
    /// Received and not yet part of a batch.
    waiting: VecDeque<Message>,
    /// A receive that was under way when its batch was closed. It is never dropped, for the messages it may already have
    /// been given would be invisible until their visibility timeout. It runs in a task of its own: the engine must not wait
    /// for it while nobody here does.
    pending: Option<Ended<Vec<Message>>>,
}

impl Receiver {
    pub(super) fn new(sqs: aws_sdk_sqs::Client, source: &EventSource, hasty: watch::Receiver<bool>) -> Self {
        Self {
            sqs,
            queue_url: source.queue_url.clone(),
            batch_size: source.batch_size,
            window: source.window,
            hasty,
            waiting: VecDeque::new(),
            pending: None,
        }
    }

    /// Waits for messages and gathers a batch: until it is full, or until the window, which opens with its first message,
    /// has passed. Without a window a batch is what one receive gave.
    pub(super) async fn next_batch(&mut self) -> Vec<Message> {
        while self.waiting.is_empty() {
            self.receive().await;
        }
        let closes = Instant::now() + self.window;
        let mut batch = Batch::default();
        let mut hasty = self.hasty.clone();
        while !batch.fill(&mut self.waiting, self.batch_size) && !self.window.is_zero() {
            tokio::select! {
                biased;
                () = self.receive() => {}
                () = sleep_until(closes) => break,
                Ok(_) = hasty.wait_for(|hasty| *hasty) => break,
            }
        }
        batch.messages
    }

    /// Goes on with the receive under way, or starts one. When this is dropped, the receive stays.
    async fn receive(&mut self) {
        let pending = self.pending.get_or_insert_with(|| {
            let most = self.batch_size.min(RECEIVED_MAX);
            Ended(tokio::spawn(receive(self.sqs.clone(), self.queue_url.clone(), most as i32)))
        });
        let received = (&mut pending.0).await;
        self.pending = None;
        match received {
            Ok(messages) => self.waiting.extend(messages),
            Err(error) => {
                tracing::error!(queue_url = self.queue_url, %error, "a receive did not end");
                sleep(PAUSE).await;
            }
        }
    }
}

async fn receive(sqs: aws_sdk_sqs::Client, queue_url: String, most: i32) -> Vec<Message> {
    let received = sqs
        .receive_message()
        .queue_url(&queue_url)
        .max_number_of_messages(most)
        .wait_time_seconds(LONG_POLL)
        .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
        .send()
        .await;
    match received {
        Ok(output) => output.messages.unwrap_or_default(),
        Err(error) => {
            let error = fanfold::text::causes(&error);
            tracing::warn!(queue_url, %error, "cannot receive messages");
            sleep(PAUSE).await;
            Vec::new()
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use fanfold::delivery::{Delivery, Failures, Step};
    use futures::FutureExt;
    use futures::future::{BoxFuture, ready};

    use super::super::invoke::Invoker;
    use super::super::{Work, run};
    use super::*;
    use crate::engine::Engine;
    use crate::usage::InvocationMeter;

    /// Counts its invocations.
    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Step for Counted {
        fn deliver<'a>(&'a self, _: Vec<Delivery>) -> BoxFuture<'a, Failures> {
            self.0.fetch_add(1, Ordering::SeqCst);
            ready(Failures::new()).boxed()
        }
    }

    fn source() -> EventSource {
        EventSource {
            function: "Work".to_owned(),
            queue: "Queue".to_owned(),
            queue_url: "http://sqs/queue".to_owned(),
            batch_size: 1,
            window: Duration::ZERO,
            maximum_concurrency: None,
            reports_failures: true,
            enabled: true,
            timeout: Duration::from_secs(1),
            memory: 128,
        }
    }

    /// Many pumps: where nothing orders them, one of two things that are ready is taken at random.
    #[tokio::test]
    async fn a_message_that_waits_when_the_pump_is_stopped_is_not_given_to_the_step() {
        let (sqs, step) = (Engine::memory().unwrap().sqs(), Arc::new(Counted::default()));
        for _ in 0..50 {
            let (_stop, stopped) = watch::channel(true);
            let (_hasten, hasty) = watch::channel(false);
            let mut receiver = Receiver::new(sqs.clone(), &source(), hasty);
            receiver.waiting.push_back(Message::builder().message_id("1").body("a").build());
            let work = Work { running: AtomicUsize::new(0), invocations: InvocationMeter::new(128) };
            let invoker = Invoker::new(sqs.clone(), source(), step.clone());
            run(receiver, invoker, source(), stopped, Arc::new(work)).await;
        }
        assert_eq!(step.0.load(Ordering::SeqCst), 0);
    }
}
