//! A worker that dies at its n-th request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold_local::{Engine, Fate, Interceptor, ServiceAnswer, ServiceRequest};
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
    /// The worker lives; the request is applied so much later.
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

/// Tests of a run: its worker dies before each of its requests, dies after it, or loses its answer, as the [`Moment`] of each
/// test says. The run makes more than `$least` requests.
#[macro_export]
macro_rules! deaths {
    ($run:expr, $least:literal, $($test:ident: $moment:ident),+ $(,)?) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            assert!($crate::at_every_request($crate::Moment::$moment, $run).await.len() > $least);
        }
    )+};
}

#[derive(Debug, Default)]
struct State {
    /// Requests that could have been struck.
    seen: u64,
    /// The last request changed nothing.
    after_a_read: bool,
    dead: bool,
    /// It counts no requests yet.
    waits: bool,
    struck: Option<Struck>,
}

#[derive(Debug)]
struct Struck {
    name: String,
    /// Where the request is while it is being answered: others may be under way beside it.
    address: usize,
    answered: bool,
}

/// Kills the worker at one request; until it is revived none of its requests is applied. Requests that only read count if they
/// follow one that does not: to die at a later one leaves the same behind.
#[derive(Debug)]
pub struct Crash {
    at: u64,
    moment: Moment,
    state: Mutex<State>,
    /// What requests meet that are not struck.
    next: Option<Arc<dyn Interceptor>>,
    sees: bool,
}

impl Crash {
    pub fn new(at: u64, moment: Moment) -> Self {
        Self { at, moment, state: Mutex::default(), next: None, sees: true }
    }

    /// A worker that never dies.
    pub fn never() -> Self {
        Self::new(u64::MAX, Moment::Before)
    }

    /// The worker lives; its requests meet this.
    pub fn meeting(next: Arc<dyn Interceptor>) -> Self {
        Self { next: Some(next), ..Self::never() }
    }

    /// A worker that never dies, and sends by the SDK only what it must. Fewer requests of others get between its own.
    pub fn unseen() -> Self {
        Self { sees: false, ..Self::never() }
    }

    /// The engine as the worker uses it.
    pub(crate) fn worker(self: &Arc<Self>, engine: &Engine) -> Engine {
        if self.sees { engine.with_interceptor(self.clone()) } else { engine.metered_apart() }
    }

    /// The same, which counts requests from [`begin`](Self::begin) on.
    pub fn waiting(self) -> Self {
        self.state.lock().unwrap().waits = true;
        self
    }

    /// Requests count from now on.
    pub fn begin(&self) {
        self.state.lock().unwrap().waits = false;
    }

    /// Another worker takes over.
    pub fn revive(&self) {
        self.state.lock().unwrap().dead = false;
    }

    /// Counts a request. Returns whether it is the one.
    fn count(&self, call: &ServiceRequest) -> bool {
        let mut state = self.state.lock().unwrap();
        if state.waits {
            return false;
        }
        let is_read = READS.contains(&call.operation.as_str());
        let counts = !(is_read && state.after_a_read) || matches!(self.moment, Moment::Late(_));
        state.after_a_read = is_read;
        state.seen += u64::from(counts);
        let here = counts && state.seen == self.at && state.struck.is_none();
        if here {
            let name = format!("{:?} {}", call.service, call.operation);
            state.struck = Some(Struck { name, address: address(call), answered: false });
            state.dead |= self.moment == Moment::Before;
        }
        here
    }

    /// The request that was struck, if it came to that.
    pub fn struck(&self) -> Option<String> {
        self.state.lock().unwrap().struck.as_ref().map(|struck| struck.name.clone())
    }
}

/// Operations that change nothing.
const READS: [&str; 4] = ["GetItem", "BatchGetItem", "Query", "Scan"];

fn address(call: &ServiceRequest) -> usize {
    std::ptr::from_ref(call).addr()
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
        let is_lost = matches!(self.moment, Moment::After | Moment::AnswerLost) && !state.dead;
        // The SDK's retry is another request, which is answered.
        let here = match &mut state.struck {
            Some(struck) if is_lost && !struck.answered && struck.address == address(call) => {
                struck.answered = true;
                true
            }
            _ => false,
        };
        state.dead |= here && self.moment == Moment::After;
        let fate = if here { Fate::Lost } else { Fate::Pass };
        async move { fate }.boxed()
    }
}
