//! Workers: each runs one invocation at a time, with a clock of its own, and may die at any of its requests.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, Either, select};

use crate::clock::SkewedClock;
use crate::faults::Fault;
use crate::lock;
use crate::sim::Sim;
use crate::small::{Sort, Touches};
use crate::steps::Steps;

/// What a receiver of notices is counted as.
pub(crate) const WEBHOOK: &str = "a webhook";

/// What a worker is doing.
#[derive(Debug)]
struct Current {
    who: String,
    step: &'static str,
    kill: Option<oneshot::Sender<()>>,
}

/// One Lambda environment: steps of one process with their clients.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) clock: Arc<SkewedClock>,
    current: Mutex<Option<Current>>,
}

impl Worker {
    pub(crate) fn new(name: String, clock: Arc<SkewedClock>) -> Self {
        Self { name, clock, current: Mutex::default() }
    }

    /// The invocation under way, and its step.
    pub(crate) fn who(&self) -> (String, &'static str) {
        let current = lock(&self.current);
        current.as_ref().map_or_else(|| (self.name.clone(), "-"), |current| (current.who.clone(), current.step))
    }

    /// Ends the invocation under way.
    pub(crate) fn kill(&self) {
        if let Some(kill) = lock(&self.current).as_mut().and_then(|current| current.kill.take()) {
            let _ = kill.send(());
        }
    }

    /// Ends the invocation that calls this, at a request of a kind: it never gets an answer.
    pub(crate) async fn die<T>(&self, sim: &Sim, kind: &str, fault: Fault) -> T {
        sim.reach(self.who().1, kind, fault);
        self.kill();
        futures::future::pending().await
    }

    /// Makes a call to somebody outside the stack, and dies before it or with its answer if it is to be so.
    pub(crate) async fn call<T>(
        &self,
        sim: &Sim,
        whom: &'static str,
        what: &str,
        call: impl Future<Output = T> + Send,
    ) -> T {
        let (who, step) = self.who();
        let reached = sim.reach(step, whom, Fault::None);
        let fault = match &sim.gate {
            Some(gate) => {
                let sort = if whom == WEBHOOK { Sort::Notice } else { Sort::Call };
                Some(gate.pass(&self.name, Touches::outside(sort, what)).await.fault)
            }
            None => sim.death(step, whom, reached),
        };
        sim.trace.line(&who, what);
        if fault == Some(Fault::CrashBefore) {
            sim.count("crash before a call");
            return self.die(sim, whom, Fault::CrashBefore).await;
        }
        let answer = call.await;
        if let Some(gate) = &sim.gate {
            gate.called(what);
            gate.heard(&self.name, what, None);
        }
        if fault == Some(Fault::CrashAfter) {
            sim.count("crash after a call");
            return self.die(sim, whom, Fault::CrashAfter).await;
        }
        answer
    }

    /// Runs an invocation until it ends, dies, or takes too long; none if it did not come to an end.
    pub(crate) async fn run<T: Send>(
        &self,
        sim: &Sim,
        step: &'static str,
        steps: Arc<Steps>,
        timeout: Duration,
        invocation: impl FnOnce(Arc<Steps>) -> BoxFuture<'static, T>,
    ) -> Option<T> {
        let who = format!("{} {step}#{}", self.name, sim.next_invocation());
        let (kill, killed) = oneshot::channel();
        *lock(&self.current) = Some(Current { who: who.clone(), step, kill: Some(kill) });
        let work = AssertUnwindSafe(invocation(steps)).catch_unwind();
        let limited = Box::pin(tokio::time::timeout(timeout, work));
        let result = match select(limited, killed).await {
            Either::Left((Ok(Ok(result)), _)) => Some(result),
            Either::Left((Ok(Err(panic)), _)) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                sim.violate(format!("{who} panicked: {}", text.unwrap_or_default()));
                None
            }
            Either::Left((Err(_), _)) => {
                sim.count("timeouts of invocations");
                sim.trace.line(&who, "TIMED OUT");
                None
            }
            Either::Right(_) => None,
        };
        *lock(&self.current) = None;
        result
    }
}
