//! A batch API in this process, for which every task succeeds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use fanfold::policy::BatchApi;
use fanfold_batch_api::{Answer, Caller, Calling, Request};
use futures::FutureExt;
use futures::future::ready;

/// What it was called for.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    calls: usize,
    tasks: HashMap<String, usize>,
}

impl Calls {
    /// Counts a call.
    pub(super) fn call(&self, members: impl Iterator<Item = String>) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.calls += 1;
        members.for_each(|member| *counted.tasks.entry(member).or_default() += 1);
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
        self.call(request.call.members.iter().map(|member| member.id.to_string()));
        ready(Ok(Answer::AllSucceeded)).boxed()
    }
}
