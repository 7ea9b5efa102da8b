//! The event-source pump: takes messages from a queue and invokes a step with them, as Lambda does.

mod batch;
mod invoke;
mod receiver;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanfold::delivery::Step;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::template::EventSource;
use invoke::Invoker;
use receiver::Receiver;

/// Invocations at once where the template does not limit them.
const DEFAULT_CONCURRENCY: usize = 10;

/// Starts pumps.
#[derive(Debug)]
pub struct Pump;

/// A running pump. It stops when this is dropped, and then leaves running invocations to themselves.
#[derive(Debug)]
pub struct PumpHandle {
    stop: watch::Sender<bool>,
    running: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Pump {
    /// Starts to take messages from the queue of an event source and to invoke `step` with them.
    ///
    /// Messages the step does not name as failed are deleted; the others, and all of a batch whose step panicked or ran
    /// into the function's timeout, stay until their visibility timeout runs out.
    pub fn start(sqs: aws_sdk_sqs::Client, source: EventSource, step: Arc<dyn Step>) -> PumpHandle {
        let (stop, stopped) = watch::channel(false);
        let running = Arc::new(AtomicUsize::new(0));
        let task = tokio::spawn(run(sqs, source, step, stopped, Arc::clone(&running)));
        PumpHandle { stop, running, task }
    }
}

impl PumpHandle {
    /// How many invocations run now.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Stops receiving and waits for running invocations. Messages received and not yet given to the step stay invisible
    /// until their visibility timeout runs out.
    pub async fn stop(self) {
        self.stop_or(std::future::pending()).await;
    }

    /// The same, but once `cut` is done, invocations that still run are ended where they are.
    pub async fn stop_or(mut self, cut: impl Future<Output = ()>) {
        self.stop.send_replace(true);
        tokio::select! {
            ended = &mut self.task => if let Err(error) = ended {
                tracing::error!(%error, "a pump ended with an error");
            },
            () = cut => {
                self.task.abort();
                // The error says that it was ended.
                let _ = self.task.await;
            }
        }
    }
}

async fn run(
    sqs: aws_sdk_sqs::Client,
    source: EventSource,
    step: Arc<dyn Step>,
    mut stopped: watch::Receiver<bool>,
    running: Arc<AtomicUsize>,
) {
    if !source.enabled {
        return;
    }
    let slots = Arc::new(Semaphore::new(source.maximum_concurrency.unwrap_or(DEFAULT_CONCURRENCY)));
    let mut receiver = Receiver::new(sqs.clone(), &source);
    let invoker = Arc::new(Invoker::new(sqs, source, step));
    let mut invocations = JoinSet::new();
    loop {
        // A batch is gathered only when there is a slot for it, so that no message waits here while it is invisible.
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await.ok()?;
            Some((slot, receiver.next_batch().await))
        };
        let (slot, batch) = tokio::select! {
            next = next => match next {
                Some(next) => next,
                None => break,
            },
            // Also when the handle was dropped.
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        while invocations.try_join_next().is_some() {}
        let (invoker, running) = (Arc::clone(&invoker), Arc::clone(&running));
        invocations.spawn(async move {
            running.fetch_add(1, Ordering::Relaxed);
            invoker.invoke(batch).await;
            running.fetch_sub(1, Ordering::Relaxed);
            drop(slot);
        });
    }
    invocations.join_all().await;
}
