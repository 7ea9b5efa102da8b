//! A batch API in this process, for which every task succeeds, and which notes how long tasks waited.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fanfold::clock::{Timestamp, World};
use fanfold::policy::BatchApi;
use fanfold_batch_api::{Answer, Caller, Calling, Request};
use futures::FutureExt;
use futures::future::ready;
use serde::Deserialize;
use serde_json::{Value, json};

/// What it was called for.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    calls: usize,
    tasks: HashMap<String, usize>,
    /// Milliseconds from the registration of a task to its call.
    waits: Vec<f64>,
}

/// What it reads of a task: when it was registered.
#[derive(Deserialize)]
struct Registered {
    registered: u64,
}

impl Calls {
    /// Counts a call.
    pub(super) fn call(&self, members: impl Iterator<Item = String>) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.calls += 1;
        members.for_each(|member| *counted.tasks.entry(member).or_default() += 1);
    }

    /// Counts how long a task waited, if it says when it was registered.
    fn wait(&self, content: &str, now: Timestamp) {
        if let Ok(task) = serde_json::from_str::<Registered>(content) {
            let waited = now.since(Timestamp(task.registered)).as_millis() as f64;
            self.0.lock().unwrap_or_else(PoisonError::into_inner).waits.push(waited);
        }
    }

    /// How long tasks waited, in milliseconds.
    pub(super) fn waits(&self) -> Value {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner).waits.clone();
        waits.sort_by(f64::total_cmp);
        let at = |percent: usize| waits.get((waits.len() * percent / 100).min(waits.len().saturating_sub(1)));
        json!({ "p50": at(50), "p90": at(90), "p99": at(99) })
    }

    /// Calls so far.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    /// Tasks of which it has heard.
    pub(super) fn tasks(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).tasks.len()
    }

    /// Tasks of which it has heard more than once.
    pub(super) fn twice(&self) -> usize {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.tasks.values().filter(|count| **count > 1).count()
    }
}

impl Caller for Calls {
    fn call<'a>(&'a self, _: &'a BatchApi, request: Request<'a>) -> Calling<'a> {
        let now = World::system().now();
        request.call.members.iter().for_each(|member| self.wait(member.content.get(), now));
        self.call(request.call.members.iter().map(|member| member.id.to_string()));
        ready(Ok(Answer::AllSucceeded)).boxed()
    }
}
