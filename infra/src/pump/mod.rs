//! The event-source pump: takes messages from a queue and invokes a step with them, as Lambda does.

mod batch;
mod invoke;
mod receiver;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fanfold::delivery::Step;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::template::EventSource;
use crate::usage::{InvocationMeter, Invocations};
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
    hasten: watch::Sender<bool>,
    function: String,
    work: Arc<Work>,
    task: JoinHandle<()>,
}

/// What a pump's invocations amount to.
#[derive(Debug)]
struct Work {
    running: AtomicUsize,
    invocations: InvocationMeter,
}

impl Pump {
    /// Starts to take messages from the queue of an event source and to invoke `step` with them.
    ///
    /// Messages the step does not name as failed are deleted; the others, and all of a batch whose step panicked or ran
    /// into the function's timeout, stay until their visibility timeout runs out.
    pub fn start(sqs: aws_sdk_sqs::Client, source: EventSource, step: Arc<dyn Step>) -> PumpHandle {
        let (stop, stopped) = watch::channel(false);
        let (hasten, hasty) = watch::channel(false);
        let receiver = Receiver::new(sqs.clone(), &source, hasty);
        let work = Work { running: AtomicUsize::new(0), invocations: InvocationMeter::new(source.memory) };
        let (function, work) = (source.function.clone(), Arc::new(work));
        let task =
            tokio::spawn(run(receiver, Invoker::new(sqs, source.clone(), step), source, stopped, Arc::clone(&work)));
        PumpHandle { stop, hasten, function, work, task }
    }
}

impl PumpHandle {
    /// How many invocations run now.
    pub fn running(&self) -> usize {
        self.work.running.load(Ordering::Relaxed)
    }

    /// The function that is invoked.
    pub fn function(&self) -> &str {
        &self.function
    }

    /// The invocations that have ended.
    pub fn invocations(&self) -> Invocations {
        self.work.invocations.counted()
    }

    /// From now on no batch waits for the window of its event source: for when nothing more is to come that could share it.
    pub fn hasten(&self) {
        self.hasten.send_replace(true);
    }

    /// Stops receiving and waits for running invocations. Messages received and not yet given to the step stay invisible
    /// until their visibility timeout runs out.
    pub async fn stop(self) {
        self.stop_or(std::future::pending()).await;
    }

    /// The same, but once `cut` is done, invocations that still run are ended where they are.
    /// Returns what was invoked.
    pub async fn stop_or(mut self, cut: impl Future<Output = ()>) -> Invocations {
        self.stop.send_replace(true);
        tokio::select! {
            ended = &mut self.task => if let Err(error) = ended {
                tracing::error!(%error, "a pump ended with an error");
            },
            () = cut => {
                self.task.abort();
                // The error says that it was ended.
                let _ = (&mut self.task).await;
            }
        }
        self.invocations()
    }
}

/// A task that ends when nothing waits for it any more.
#[derive(Debug)]
struct Ended<T>(JoinHandle<T>);

impl<T> Drop for Ended<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn run(
    mut receiver: Receiver,
    invoker: Invoker,
    source: EventSource,
    mut stopped: watch::Receiver<bool>,
    work: Arc<Work>,
) {
    if !source.enabled {
        return;
    }
    let slots = Arc::new(Semaphore::new(source.maximum_concurrency.unwrap_or(DEFAULT_CONCURRENCY)));
    let invoker = Arc::new(invoker);
    let mut invocations = JoinSet::new();
    loop {
        // A batch is gathered only when there is a slot for it, so that no message waits here while it is invisible.
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await.ok()?;
            Some((slot, receiver.next_batch().await))
        };
        let (slot, batch) = tokio::select! {
            // What is ready when it stops is not begun.
            biased;
            // Also when the handle was dropped.
            _ = stopped.wait_for(|stopped| *stopped) => break,
            next = next => match next {
                Some(next) => next,
                None => break,
            },
        };
        while invocations.try_join_next().is_some() {}
        let (invoker, work) = (Arc::clone(&invoker), Arc::clone(&work));
        invocations.spawn(async move {
            work.running.fetch_add(1, Ordering::Relaxed);
            let began = Instant::now();
            invoker.invoke(batch).await;
            work.invocations.add(began.elapsed());
            work.running.fetch_sub(1, Ordering::Relaxed);
            drop(slot);
        });
    }
    // It receives nothing more.
    drop(receiver);
    invocations.join_all().await;
}
