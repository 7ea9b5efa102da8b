//! A worker that dies at its n-th request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold_local::{Fate, Interceptor, ServiceAnswer, ServiceRequest};
use futures::FutureExt;
use futures::future::BoxFuture;

/// When the worker dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The request is never applied.
    Before,
    /// It is applied, but the worker dies before it sees the answer.
    After,
    /// It is applied and the worker lives on, but the answer is lost: the SDK sends the request again.
    AnswerLost,
    /// Nobody dies: it is applied so much later.
    Late(Duration),
}

/// Runs a scenario with a worker that dies at its first request, then with one that dies at its second, until no request is
/// left to die at. Returns what `run` says of each; `None` is said by a run whose worker did not die.
pub async fn at_every_request<T>(moment: Moment, run: impl AsyncFn(Crash) -> Option<T>) -> Vec<T> {
    let mut struck = Vec::new();
    while let Some(said) = run(Crash::new(struck.len() as u64 + 1, moment)).await {
        struck.push(said);
    }
    struck
}

#[derive(Debug, Default)]
struct State {
    seen: u64,
    dead: bool,
    struck: Option<String>,
}

/// Kills the worker at one request; until it is revived none of its requests is applied.
#[derive(Debug)]
pub struct Crash {
    at: u64,
    moment: Moment,
    state: Mutex<State>,
    /// What requests meet that are not struck.
    next: Option<Arc<dyn Interceptor>>,
}

impl Crash {
    pub fn new(at: u64, moment: Moment) -> Self {
        Self { at, moment, state: Mutex::default(), next: None }
    }

    /// A worker that never dies.
    pub fn never() -> Self {
        Self::new(u64::MAX, Moment::Before)
    }

    /// Nobody dies; requests meet this.
    pub fn meeting(next: Arc<dyn Interceptor>) -> Self {
        Self { next: Some(next), ..Self::never() }
    }

    /// Another worker takes over.
    pub fn revive(&self) {
        self.state.lock().unwrap().dead = false;
    }

    /// Counts a request. Returns whether it is the one.
    fn count(&self, call: &ServiceRequest) -> bool {
        let mut state = self.state.lock().unwrap();
        state.seen += 1;
        let here = state.seen == self.at;
        if here {
            state.struck = Some(format!("{:?} {}", call.service, call.operation));
            state.dead |= self.moment == Moment::Before;
        }
        here
    }

    /// The request that was struck, if it came to that.
    pub fn struck(&self) -> Option<String> {
        self.state.lock().unwrap().struck.clone()
    }
}

impl Interceptor for Crash {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        async move {
            // The engine answers at once: without this, of several workers one would be through before the next begins.
            tokio::task::yield_now().await;
            let here = self.count(call);
            if let (true, Moment::Late(delay)) = (here, self.moment) {
                tokio::time::sleep(delay).await;
            }
            match &self.next {
                _ if self.state.lock().unwrap().dead => Fate::Lost,
                Some(next) => next.before(call).await,
                None => Fate::Pass,
            }
        }
        .boxed()
    }

    fn after<'a>(&'a self, call: &'a ServiceRequest, answer: &'a ServiceAnswer) -> BoxFuture<'a, Fate> {
        if let Some(next) = &self.next {
            return next.after(call, answer);
        }
        let mut state = self.state.lock().unwrap();
        let here = state.seen == self.at && !state.dead && state.struck.is_some();
        let fate = match self.moment {
            Moment::After if here => {
                state.dead = true;
                Fate::Lost
            }
            Moment::AnswerLost if here => {
                // Only once: the SDK's retry is another request.
                state.seen += 1;
                Fate::Lost
            }
            _ => Fate::Pass,
        };
        async move { fate }.boxed()
    }
}
