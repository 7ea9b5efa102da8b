//! Every way of calling that a process has.

use std::sync::Arc;

use fanfold::policy::{BatchApi, Way};
use futures::FutureExt;
use futures::future::ready;

use crate::url::UrlCaller;
use crate::{CallError, Caller, Calling, Cause, Request};

/// Runs programs as batch APIs.
pub trait Programs: Send + Sync {
    /// Runs a program, with its arguments, for one call.
    ///
    /// # Errors
    /// It cannot be run, or says that the whole batch was not done.
    fn run<'a>(&'a self, command: &'a [String], request: Request<'a>) -> Calling<'a>;
}

/// Calls each batch API in the way that its policy says.
#[derive(Clone, Default)]
#[allow(missing_debug_implementations)]
pub struct Callers {
    url: UrlCaller,
    programs: Option<Arc<dyn Programs>>,
}

impl Callers {
    /// The ways that Lambda functions have: all but programs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// These, and programs.
    #[must_use]
    pub fn with_programs(self, programs: Arc<dyn Programs>) -> Self {
        Self { programs: Some(programs), ..self }
    }
}

impl Caller for Callers {
    fn call<'a>(&'a self, batch_api: &'a BatchApi, request: Request<'a>) -> Calling<'a> {
        match (&batch_api.way, &self.programs) {
            (Way::Url(url), _) => self.url.post(url, request).boxed(),
            (Way::Command(command), Some(programs)) => programs.run(command, request),
            (Way::Command(_), None) => {
                ready(Err(CallError::new(Cause::NotMade, "a `command` can be run by the local runner only"))).boxed()
            }
        }
    }
}
