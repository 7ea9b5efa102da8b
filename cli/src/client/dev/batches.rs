//! The batches of a session: received, called, posted.

use std::sync::Arc;
use std::time::Duration;

use fanfold::clock::World;
use fanfold::messages::Posted;
use fanfold_batch_api::Call;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::closing::Closing;
use super::local::Local;
use super::message::{Received, Sent};
use super::outcomes::{Outcomes, Recorded};
use super::queue::{DevQueue, EXTEND};
use super::said::{Line, Said};
use super::verdict::{Verdict, all};
use crate::say::say;

/// How long a request for messages waits for one. At the end of a session it runs to its end, as SQS might deliver to it.
const POLL: Duration = Duration::from_secs(5);

/// The same while the session ends.
const LAST_POLLS: Duration = Duration::from_secs(1);

/// Messages that SQS delivers at once, at most.
const MESSAGES_MAX: usize = 10;

/// The pause after SQS could not be asked.
const PAUSE: Duration = Duration::from_secs(2);

/// Why members are to be called again that were not called here.
const HANDED_BACK: &str = "the dev session ended before it called the batch";

/// What a session works with.
#[derive(Debug)]
pub(super) struct Batches {
    pub(super) queue: DevQueue,
    pub(super) local: Local,
    pub(super) outcomes: Outcomes,
    pub(super) closing: Closing,
    pub(super) said: Said,
    /// How long after a call was sent its outcomes may come.
    pub(super) within: Duration,
}

impl Batches {
    /// Works until the session has ended and no more messages can come. False: some that had come may be left.
    pub(super) async fn work(self: Arc<Self>, at_once: u32) -> bool {
        let free = Arc::new(Semaphore::new(at_once as usize));
        let mut tasks = JoinSet::new();
        while !self.closing.has_begun() {
            let permits = tokio::select! {
                permits = some(&free) => permits,
                () = self.closing.begun() => break,
            };
            let received = self.receive(permits.len(), POLL).await.unwrap_or_default();
            for (message, permit) in received.into_iter().zip(permits) {
                let batches = Arc::clone(&self);
                tasks.spawn(async move {
                    let done = batches.take(message).await;
                    drop(permit);
                    done
                });
            }
            // What was not done comes again.
            while tasks.try_join_next().is_some() {}
        }
        let mut all = true;
        loop {
            // Asked before: what had come by then is seen.
            let quiet = self.closing.is_quiet();
            let received = self.receive(MESSAGES_MAX, LAST_POLLS).await;
            if quiet && received.as_ref().is_none_or(Vec::is_empty) {
                all &= received.is_some();
                break;
            }
            for message in received.unwrap_or_default() {
                all &= self.take(message).await;
            }
        }
        while let Some(done) = tasks.join_next().await {
            all &= done.unwrap_or_default();
        }
        all
    }

    /// None: SQS could not be asked.
    async fn receive(&self, most: usize, wait: Duration) -> Option<Vec<Received>> {
        match self.queue.receive(most.min(MESSAGES_MAX), wait).await {
            Ok(received) => Some(received),
            Err(problem) => {
                say(format_args!("fanfold: {problem}"));
                tokio::time::sleep(PAUSE).await;
                None
            }
        }
    }

    /// Does what a message asks for, and deletes it, unless its outcomes could not be posted: then it comes again.
    /// Returns whether it is done.
    async fn take(&self, message: Received) -> bool {
        let Received { handle, sent } = message;
        let done = match sent {
            Ok(sent) => {
                tokio::select! {
                    done = self.handle(sent) => done,
                    () = self.keep_invisible(&handle) => false,
                }
            }
            Err(problem) => {
                say(format_args!("fanfold: {problem}; it is deleted"));
                true
            }
        };
        if done {
            self.queue.done(&handle).await;
        }
        done
    }

    async fn keep_invisible(&self, handle: &str) {
        loop {
            tokio::time::sleep(EXTEND).await;
            self.queue.extend(handle).await;
        }
    }

    /// Calls a batch and posts its outcomes, or hands it back. False: they could not be posted.
    async fn handle(&self, sent: Sent) -> bool {
        let began = Instant::now();
        let Sent { call, token, at } = sent;
        let mut line =
            Line { batch: call.batch_id, attempt: call.attempt, members: call.members.len(), ..Line::default() };
        let mut parts = vec![call.clone()];
        while let Some(part) = parts.pop() {
            if World::system().now().since(at) >= self.within {
                say(format_args!("batch {} came too late: the stack calls it again", call.batch_id));
                return true;
            }
            let Some(verdict) = self.call(&part).await else {
                return self.hand_back(&call, &token).await;
            };
            let posted = match verdict {
                Verdict::Halves => {
                    parts.extend(halves(part).into_iter().rev());
                    continue;
                }
                Verdict::NotNow(problem, pause) => {
                    say(format_args!("batch {} waits: {problem}", call.batch_id));
                    parts.push(part);
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.closing.begun() => {}
                    }
                    continue;
                }
                Verdict::Outcomes(posted) => posted,
            };
            line.add(&posted);
            if let Err(done) = self.record(&call, self.outcomes.post(call.batch_id, &token, posted).await) {
                return done;
            }
        }
        line.took = began.elapsed();
        self.said.handled(&line);
        true
    }

    /// Makes a call, if the session has not ended.
    async fn call(&self, call: &Call) -> Option<Verdict> {
        if self.closing.has_begun() { None } else { Some(self.local.call(call).await) }
    }

    /// Hands the members back that were not called: only after the lease, so that this uses up no attempt.
    async fn hand_back(&self, call: &Call, token: &str) -> bool {
        self.closing.until_given_back().await;
        let posted = all(call, Posted::Retry, Some(HANDED_BACK));
        if let Err(done) = self.record(call, self.outcomes.post(call.batch_id, token, posted).await) {
            return done;
        }
        self.said.handed_back(call.batch_id, call.members.len());
        true
    }

    /// What to do with a message whose outcomes are not recorded: `Err` says whether it is deleted.
    fn record(&self, call: &Call, recorded: Recorded) -> Result<(), bool> {
        let (problem, done, then) = match recorded {
            Recorded::Yes => return Ok(()),
            Recorded::Refused(problem) => (problem, true, "nothing more is done about it"),
            Recorded::NotNow(problem) => (problem, false, "it is tried again"),
        };
        say(format_args!("fanfold: the outcomes of batch {} are not recorded: {problem}; {then}", call.batch_id));
        Err(done)
    }
}

/// At least one permit, and as many as are free.
async fn some(free: &Arc<Semaphore>) -> Vec<OwnedSemaphorePermit> {
    let mut permits: Vec<_> = Arc::clone(free).acquire_owned().await.into_iter().collect();
    while permits.len() < MESSAGES_MAX
        && let Ok(permit) = Arc::clone(free).try_acquire_owned()
    {
        permits.push(permit);
    }
    permits
}

/// A call for each half of the members.
fn halves(call: Call) -> [Call; 2] {
    let Call { batch_id, kind, attempt, target, mut members } = call;
    let rest = members.split_off(members.len().div_ceil(2));
    let of = |members| Call { batch_id, kind: kind.clone(), attempt, target: target.clone(), members };
    [of(members), of(rest)]
}
