//! A whole stack in this process: tables, queues, every step behind its queue, the sweep on its schedule, the HTTP routes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fanfold::clock::World;
use fanfold::config::Surroundings;
use fanfold_batch_api::Caller;
use fanfold_http_client::Guard;
use fanfold_local::{Engine, Invocations, Pump, PumpHandle, Template};
use fanfold_notify::HttpWebhooks;
use fanfold_produce::AllSources;
use fanfold_stack::{Outside, Steps};
use fanfold_sweep::SweepRequest;
use futures::FutureExt;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::failure::Failure;
use crate::run::{EndsRun, FailFast, FileRows, Limited, Moves};
use crate::say::say;
use crate::sources::LocalFolder;
use crate::stop::Stop;
use crate::sweeping::Sweeping;

/// The stack as it is deployed, from the same file.
const TEMPLATE: &str = include_str!("../../template.yaml");

/// The function that forms batches.
const GROUP: &str = "GroupFunction";

/// The function that reads producers' sources.
const PRODUCE: &str = "ProduceFunction";

/// How long it may take to end.
const SOON: Duration = Duration::from_millis(50);

/// How long invocations may take to end before a line shows what is waited for.
const QUIET: Duration = Duration::from_secs(1);

/// Between two looks at the queues.
const LOOK: Duration = Duration::from_millis(20);

/// A stack.
#[derive(Debug)]
pub(crate) struct EmbeddedStack {
    /// Its tables and queues.
    pub(crate) engine: Engine,
    template: Template,
    world: World,
}

/// What a run adds to its stack.
#[derive(Debug)]
pub(crate) struct OfRun {
    /// Its fan-out.
    pub(crate) fanout: Uuid,
    /// Its file.
    pub(crate) file: Arc<FileRows>,
    /// Learns when its rows are registered, and why they cannot be.
    pub(crate) moves: Moves,
    /// Once it is reached no batch is handled any more.
    pub(crate) limit: Option<Arc<FailFast>>,
}

/// The steps of a stack at work.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) steps: Steps,
    pumps: Vec<PumpHandle>,
    sweep: JoinHandle<()>,
    /// Whether rows of a run come in.
    reads_run: bool,
}

impl EmbeddedStack {
    /// Makes or opens the tables and makes the queues; nothing runs yet.
    pub(crate) async fn open(data: Option<&Path>) -> Result<Self, Failure> {
        let template = Template::parse(TEMPLATE)?;
        let engine = match data {
            Some(folder) => Engine::open(folder)?,
            None => Engine::memory()?,
        };
        engine.provision(&template).await?;
        let world = World::system();
        Ok(Self { engine, template, world })
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

    /// Waits until none of these functions has a message to work on now. Messages that are due later do not count.
    pub(crate) async fn quiet(&self, which: impl Fn(&str) -> bool) {
        loop {
            let mut messages = 0;
            for source in self.template.event_sources().iter().filter(|source| which(&source.function)) {
                let backlog = self.engine.backlog(&source.queue_url).await.unwrap_or_default();
                messages += backlog.visible + backlog.in_flight;
            }
            if messages == 0 {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// No more tasks come: no batch that is not full waits for more. Delayed messages of `group` are those that linger.
    pub(crate) async fn drain(&self) {
        for source in self.template.event_sources().iter().filter(|source| source.function == GROUP) {
            self.engine.end_delays(&source.queue_url).await;
        }
    }

    /// Sets every step to work. Before that, every message that died with an earlier process is made again. `folder`: where files
    /// and programs that are sources of producers are looked for. `commands`: whether the HTTP API takes policies and producers
    /// that name programs or files.
    pub(crate) async fn start(
        &self,
        batch_apis: Arc<dyn Caller>,
        folder: &Path,
        run: Option<OfRun>,
        commands: bool,
    ) -> Result<Running, Failure> {
        let guard = Guard::local(|name| std::env::var(name).ok());
        let sources = AllSources::from_environment(&self.surroundings("ProduceFunction"), guard.clone());
        let file = run.as_ref().map(|run| Arc::clone(&run.file));
        let sources = Arc::new(sources.with_local(Arc::new(LocalFolder::new(folder.to_owned(), file))));
        let webhooks = Arc::new(HttpWebhooks::from_environment(&self.surroundings("NotifyFunction"), guard)?);
        // Ctrl-C and `--fail-fast` hold between two parts of a batch, too.
        let outside = Outside { batch_apis, webhooks, sources, commands, call_by_call: true };
        let steps = Steps::new(|function| self.surroundings(function), outside)?;
        steps.sweep.sweep(SweepRequest { min_age: Duration::ZERO, workers_dead: true }).await?;
        let mut pumps = Vec::new();
        for source in self.template.event_sources() {
            let mut source = source.clone();
            let missing = || Failure::Internal(format!("no step goes by the name {}", source.function));
            let mut step = steps.behind(&source.function).ok_or_else(missing)?;
            match (&run, source.function.as_str()) {
                (Some(OfRun { limit: Some(limit), .. }), "HandleFunction") => {
                    step = Arc::new(Limited::new(step, Arc::clone(limit)));
                }
                (Some(run), PRODUCE) => {
                    step = Arc::new(EndsRun::new(Arc::clone(&steps.produce), run.fanout, run.moves.clone()));
                    // However slow the machine is: nobody else would register the page sooner.
                    source.timeout = Duration::MAX;
                }
                _ => {}
            }
            pumps.push(Pump::start(self.engine.sqs(), source, step));
        }
        let sweeping =
            Sweeping::new(Arc::clone(&steps.sweep), &self.surroundings("SweepFunction"), self.engine.clone())?;
        Ok(Running { steps, pumps, sweep: tokio::spawn(sweeping.keep_on()), reads_run: run.is_some() })
    }
}

impl Running {
    /// From now on no message waits for others that could share its invocation.
    pub(crate) fn hasten(&self) {
        self.pumps.iter().for_each(PumpHandle::hasten);
    }

    /// Takes no more messages, and waits for the invocations that run, so that nothing they need is gone before they are.
    /// What runs for longer than `within` is cut off, as it is at once if somebody asks again: it goes on at the next
    /// start. Returns what was invoked, by function.
    pub(crate) async fn stop(self, stop: &Stop, within: Duration) -> BTreeMap<String, Invocations> {
        self.sweep.abort();
        let cut = async {
            tokio::select! {
                () = time_out(within) => {}
                () = stop.asked_again() => {}
            }
        }
        .shared();
        // The pages of a run call nobody, and whoever goes on begins with them: they are cut off after a moment, in which invocations
        // that are through can end.
        let cut_soon = async {
            tokio::time::sleep(SOON).await;
        }
        .shared();
        let stop = async |pump: PumpHandle| {
            let function = pump.function().to_owned();
            let invoked = match self.reads_run && function == PRODUCE {
                true => pump.stop_or(cut_soon.clone()).await,
                false => pump.stop_or(cut.clone()).await,
            };
            (function, invoked)
        };
        futures::future::join_all(self.pumps.into_iter().map(stop)).await.into_iter().collect()
    }
}

/// Waits for so long, and says for what once it takes more than a moment.
async fn time_out(within: Duration) {
    tokio::time::sleep(QUIET).await;
    let most = humantime::format_duration(within);
    say(format_args!("waiting for the calls in progress to end, at most {most}; Ctrl-C ends them at once"));
    tokio::time::sleep(within).await;
}

/// A function has the variables that the template gives it, and no others. What the template leaves empty, as it does with secrets,
/// comes from the command's own environment.
fn surroundings(engine: &Engine, template: &Template, world: &World, function: &str) -> Surroundings {
    let variables = template.environment(function).unwrap_or_default();
    // What Lambda would set is the user's own here: notices may go to AWS, and sources be there.
    let look_up = move |name: &str| match variables.get(name) {
        Some(value) if !value.is_empty() => Some(value.clone()),
        None if !name.starts_with("AWS_") => None,
        _ => std::env::var(name).ok(),
    };
    engine.surroundings(world.clone(), look_up)
}
