//! A whole stack in this process: tables, queues, every step behind its queue, the sweep on its schedule, the HTTP routes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use fanfold::clock::World;
use fanfold::config::Surroundings;
use fanfold::delivery::Step;
use fanfold_ack::Ack;
use fanfold_api::Api;
use fanfold_elect::Elect;
use fanfold_group::Group;
use fanfold_handle::Handle;
use fanfold_handle::api::BatchApi;
use fanfold_http::with_fallbacks;
use fanfold_local::{Engine, Pump, PumpHandle, Template};
use fanfold_notify::{Http, Notify};
use fanfold_register::Register;
use fanfold_sweep::{Sweep, SweepRequest};
use futures::FutureExt;
use tokio::task::JoinHandle;

use crate::fail_fast::{FailFast, Limited};
use crate::failure::Failure;
use crate::say::say;
use crate::stop::Stop;
use crate::sweeping::Sweeping;

/// The stack as it is deployed, from the same file.
const TEMPLATE: &str = include_str!("../../template.yaml");

/// How long invocations may take to end before a line says what is waited for.
const QUIET: Duration = Duration::from_secs(1);

/// How long they may take then: as long as most batch APIs may take for a call.
const FAREWELL: Duration = Duration::from_secs(15);

/// Between two looks at the queues.
const LOOK: Duration = Duration::from_millis(20);

/// A stack.
#[derive(Debug)]
pub(crate) struct Stack {
    /// Its tables and queues.
    pub(crate) engine: Engine,
    /// Its step `register`, for tasks that this process brings itself.
    pub(crate) register: Arc<Register>,
    template: Template,
    world: World,
    ack: Arc<Ack>,
}

/// The steps of a stack at work.
#[derive(Debug)]
pub(crate) struct Running {
    pumps: Vec<PumpHandle>,
    sweep: JoinHandle<()>,
}

impl Stack {
    /// Makes or opens the tables and makes the queues; nothing runs yet.
    pub(crate) async fn open(data: Option<&Path>) -> Result<Self, Failure> {
        let template = Template::parse(TEMPLATE)?;
        let engine = match data {
            Some(folder) => Engine::open(folder)?,
            None => Engine::memory()?,
        };
        engine.provision(&template).await?;
        let world = World::system();
        let surroundings = |function: &str| surroundings(&engine, &template, &world, function);
        let register = Arc::new(Register::from_environment(&surroundings("RegisterFunction"))?);
        let ack = Arc::new(Ack::from_environment(&surroundings("AckFunction"))?);
        Ok(Self { engine, register, template, world, ack })
    }

    /// What a function of the template is made of.
    pub(crate) fn surroundings(&self, function: &str) -> Surroundings {
        self.surroundings_in(&self.engine, function)
    }

    /// The same, by way of an engine over the same tables and queues.
    pub(crate) fn surroundings_in(&self, engine: &Engine, function: &str) -> Surroundings {
        surroundings(engine, &self.template, &self.world, function)
    }

    /// Its clock and randomness.
    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    /// Waits until no step has a message to work on now. Messages that are due later do not count.
    pub(crate) async fn quiet(&self) {
        loop {
            let mut messages = 0;
            for source in self.template.event_sources() {
                let backlog = self.engine.backlog(&source.queue_url).await.unwrap_or_default();
                messages += backlog.visible + backlog.in_flight;
            }
            if messages == 0 {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Sets every step to work. Before that, every message that died with an earlier process is made again. Once `limit` is
    /// reached no batch is handled any more.
    pub(crate) async fn start(&self, api: Arc<dyn BatchApi>, limit: Option<Arc<FailFast>>) -> Result<Running, Failure> {
        let sweep = Sweep::from_environment(&self.surroundings("SweepFunction"))?;
        sweep.sweep(SweepRequest { min_age: Duration::ZERO, workers_dead: true }).await?;
        let mut pumps = Vec::new();
        for source in self.template.event_sources() {
            let step = self.step(&source.function, &api, limit.as_ref())?;
            pumps.push(Pump::start(self.engine.sqs(), source.clone(), step));
        }
        let sweeping = Sweeping::new(sweep, &self.surroundings("SweepFunction"), self.engine.clone())?;
        Ok(Running { pumps, sweep: tokio::spawn(sweeping.keep_on()) })
    }

    fn step(
        &self,
        function: &str,
        api: &Arc<dyn BatchApi>,
        limit: Option<&Arc<FailFast>>,
    ) -> Result<Arc<dyn Step>, Failure> {
        let surroundings = self.surroundings(function);
        Ok(match function {
            "RegisterFunction" => Arc::<Register>::clone(&self.register),
            "ElectFunction" => Arc::new(Elect::from_environment(&surroundings)?),
            "GroupFunction" => Arc::new(Group::from_environment(&surroundings)?),
            "HandleFunction" => {
                let handle = Handle::from_environment(&surroundings, Arc::clone(api))?;
                match limit {
                    None => Arc::new(handle),
                    Some(limit) => Arc::new(Limited::new(handle, Arc::clone(limit))),
                }
            }
            "AckFunction" => Arc::<Ack>::clone(&self.ack),
            "NotifyFunction" => {
                let http = Http::new().map_err(|error| Failure::Tls(error.to_string()))?;
                Arc::new(Notify::from_environment(&surroundings, Arc::new(http))?)
            }
            other => return Err(Failure::Internal(format!("no step goes by the name {other}"))),
        })
    }

    /// The HTTP API. `commands`: whether it takes policies whose batch API is a program of this machine.
    pub(crate) fn router(&self, commands: bool) -> Result<Router, Failure> {
        let api = Api::from_environment(&self.surroundings("ApiFunction"))?.allow_commands(commands);
        let router = fanfold_api::router(Arc::new(api));
        let router = router.merge(fanfold_register::router(Arc::clone(&self.register)));
        Ok(with_fallbacks(router.merge(fanfold_ack::router(Arc::clone(&self.ack)))))
    }
}

impl Running {
    /// Takes no more messages, and waits for the invocations that run, so that nothing they need is gone before they are.
    /// What runs for too long is cut off, as it is at once if somebody asks twice: it goes on at the next start.
    pub(crate) async fn stop(self, stop: &Stop) {
        self.sweep.abort();
        let cut = async {
            tokio::select! {
                () = patience() => {}
                () = stop.asked_twice() => {}
            }
        }
        .shared();
        futures::future::join_all(self.pumps.into_iter().map(|pump| pump.stop_or(cut.clone()))).await;
    }
}

/// How long calls of batch APIs may take to end.
async fn patience() {
    tokio::time::sleep(QUIET).await;
    say("waiting for the calls in progress to end; Ctrl-C ends them at once");
    tokio::time::sleep(FAREWELL).await;
}

/// A function has the variables that the template gives it, and no others.
fn surroundings(engine: &Engine, template: &Template, world: &World, function: &str) -> Surroundings {
    let variables = template.environment(function).unwrap_or_default();
    Surroundings::new(engine.dynamodb(), engine.sqs(), world.clone(), move |name| variables.get(name).cloned())
}
