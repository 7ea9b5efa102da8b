//! Every way of calling that a process has.

use std::sync::Arc;

use fanfold::clock::World;
use fanfold::config::Surroundings;
use fanfold::policy::{BatchApi, Way};
use fanfold_http_client::Guard;
use fanfold_http_client::aws::Aws;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};

use crate::lambda::LambdaCaller;
use crate::sqs::SqsCaller;
use crate::url::UrlCaller;
use crate::{CallError, Caller, Calling, Cause, Request, Secrets};

/// Runs programs as batch APIs.
pub trait Programs: Send + Sync {
    /// Runs a program, with its arguments, for one call.
    ///
    /// # Errors
    /// It cannot be run, or says that the whole batch was not done.
    fn run<'a>(&'a self, command: &'a [String], request: Request<'a>) -> Calling<'a>;
}

/// Calls each batch API in the way that its policy says.
#[derive(Clone)]
#[allow(missing_debug_implementations)]
pub struct Callers {
    url: UrlCaller,
    lambda: LambdaCaller,
    sqs: SqsCaller,
    programs: Option<Arc<dyn Programs>>,
}

impl Callers {
    /// The ways that Lambda functions have: all but programs. Of private addresses, those of hosts that the environment names can be
    /// called.
    #[must_use]
    pub fn deployed(surroundings: &Surroundings) -> Self {
        let guard = Guard::deployed(surroundings);
        let aws = Aws::from_environment(surroundings);
        let (variables, world) = (surroundings.clone(), surroundings.world.clone());
        let secrets = Secrets::new(move |name| variables.named(name), aws.clone(), world.clone());
        Self::new(guard, secrets, aws, world)
    }

    /// The same on a machine where `variables` looks variables up: its own addresses can be called, too.
    pub fn local(variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let guard = Guard::local(&variables);
        let aws = Aws::new(|name| variables(name).filter(|value| !value.is_empty()));
        let world = World::system();
        Self::new(guard, Secrets::new(variables, aws.clone(), world.clone()), aws, world)
    }

    fn new(guard: Guard, secrets: Secrets, aws: Aws, world: World) -> Self {
        let lambda = LambdaCaller { aws: aws.clone(), world: world.clone() };
        let sqs = SqsCaller { aws: aws.clone(), world: world.clone() };
        Self { url: UrlCaller::new(guard, secrets, aws, world), lambda, sqs, programs: None }
    }

    /// These, and programs.
    #[must_use]
    pub fn with_programs(self, programs: Arc<dyn Programs>) -> Self {
        Self { programs: Some(programs), ..self }
    }
}

impl Caller for Callers {
    fn prepare<'a>(&'a self, batch_api: &'a BatchApi) -> BoxFuture<'a, Result<(), CallError>> {
        match &batch_api.way {
            Way::Url(_) => self.url.prepare(batch_api).boxed(),
            Way::Lambda(_) | Way::Sqs(_) | Way::Command(_) => ready(Ok(())).boxed(),
        }
    }

    fn call<'a>(&'a self, batch_api: &'a BatchApi, request: Request<'a>) -> Calling<'a> {
        match (&batch_api.way, &self.programs) {
            (Way::Url(url), _) => self.url.send(url, request).boxed(),
            (Way::Lambda(function), _) => self.lambda.send(function, request).boxed(),
            (Way::Sqs(queue), _) => self.sqs.send(queue, request).boxed(),
            (Way::Command(command), Some(programs)) => programs.run(command, request),
            (Way::Command(_), None) => {
                ready(Err(CallError::new(Cause::NotMade, "a `command` can be run by the local runner only"))).boxed()
            }
        }
    }

    fn poll<'a>(&'a self, batch_api: &'a BatchApi, url: &'a str, request: Request<'a>) -> Calling<'a> {
        match &batch_api.way {
            Way::Url(called) => self.url.poll(called, url, request).boxed(),
            Way::Lambda(_) | Way::Sqs(_) | Way::Command(_) => {
                ready(Err(CallError::new(Cause::NotMade, "only a `url` can be asked for an answer"))).boxed()
            }
        }
    }
}
