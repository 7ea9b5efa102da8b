//! A step that does what a test says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::delivery::{Delivery, Failures, Step};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

/// What a step does with a batch.
pub(crate) enum Deed {
    Done,
    Fail(Vec<String>),
    Panic,
    /// Takes so long, then it is done.
    Take(Duration),
}

type Script = Box<dyn Fn(&[Delivery]) -> Deed + Send + Sync>;

/// An invocation: when it began, and the bodies it was given.
pub(crate) type Invocation = (Duration, Vec<String>);

/// A step that does what a test says, and keeps what it was given.
pub(crate) struct Worker {
    script: Script,
    start: Instant,
    invocations: Mutex<Vec<Invocation>>,
    running: AtomicUsize,
    peak: AtomicUsize,
    finished: AtomicUsize,
}

impl Worker {
    pub(crate) fn new(script: impl Fn(&[Delivery]) -> Deed + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            start: Instant::now(),
            invocations: Mutex::default(),
            running: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
        })
    }

    pub(crate) fn invocations(&self) -> Vec<Invocation> {
        self.invocations.lock().unwrap().clone()
    }

    pub(crate) fn sizes(&self) -> Vec<usize> {
        self.invocations().iter().map(|(_, bodies)| bodies.len()).collect()
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        let mut bodies: Vec<String> = self.invocations().into_iter().flat_map(|(_, bodies)| bodies).collect();
        bodies.sort();
        bodies
    }

    /// The second at which each invocation began.
    pub(crate) fn seconds(&self) -> Vec<u64> {
        self.invocations().iter().map(|(at, _)| at.as_secs()).collect()
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// The most that ever ran at once.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }

    pub(crate) fn finished(&self) -> usize {
        self.finished.load(Ordering::SeqCst)
    }
}

/// Counts an invocation as running until it ends or is dropped.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Step for Worker {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let _running = Running(&self.running);
            self.peak.fetch_max(self.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let bodies = deliveries.iter().map(|delivery| delivery.body.clone()).collect();
            self.invocations.lock().unwrap().push((self.start.elapsed(), bodies));
            let failures = match (self.script)(&deliveries) {
                Deed::Done => Failures::new(),
                Deed::Fail(failures) => failures,
                Deed::Panic => panic!("a test's step panics"),
                Deed::Take(span) => {
                    sleep(span).await;
                    Failures::new()
                }
            };
            self.finished.fetch_add(1, Ordering::SeqCst);
            failures
        }
        .boxed()
    }
}
