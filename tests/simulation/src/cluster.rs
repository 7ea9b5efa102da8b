//! The workers of a run, and how invocations get one.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use fanfold::config::Surroundings;
use fanfold::lane::Lane;
use fanfold_local::Engine;
use futures::future::BoxFuture;
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit, RwLock, Semaphore};
use tokio::time::Instant;

use crate::api::{Mood, SimulatedApi};
use crate::clock::{SkewedClock, world};
use crate::dice::Dice;
use crate::lock;
use crate::server::Server;
use crate::sim::Sim;
use crate::sources::SimulatedSources;
use crate::steps::Steps;
use crate::webhooks::SimulatedWebhooks;
use crate::wire::Wire;
use crate::worker::Worker;

type Attributes = HashMap<String, AttributeValue>;

struct Machine {
    worker: Arc<Worker>,
    surroundings: OnceLock<Surroundings>,
    /// Made when they are first used; none again once they died.
    steps: Mutex<Option<Arc<Steps>>>,
}

/// Which of the workers. Those that call batch APIs are others than those of the other steps, and only so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    /// Those of the step `handle`.
    Calls,
    /// Those of all other steps.
    Steps,
}

impl Pool {
    /// The workers behind a queue.
    pub(crate) fn behind(queue: &str) -> Self {
        if queue == "HandleQueue" { Self::Calls } else { Self::Steps }
    }
}

/// The workers of a pool that do nothing.
struct Free {
    machines: Mutex<Vec<usize>>,
    permits: Arc<Semaphore>,
}

impl Free {
    fn new(machines: std::ops::Range<usize>) -> Self {
        Self { permits: Arc::new(Semaphore::new(machines.len())), machines: Mutex::new(machines.collect()) }
    }
}

/// The workers.
pub(crate) struct Cluster {
    pub(crate) sim: Arc<Sim>,
    engine: Engine,
    machines: Vec<Machine>,
    steps: Free,
    calls: Free,
    /// Held for writing while everything is down.
    pub(crate) up: Arc<RwLock<()>>,
    mood: Mood,
    dice: Dice,
}

/// A worker that is one's own for an invocation.
pub(crate) struct Lease {
    at: usize,
    pool: Pool,
    _permit: OwnedSemaphorePermit,
    _up: Option<OwnedRwLockReadGuard<()>>,
}

impl Cluster {
    pub(crate) fn new(sim: &Arc<Sim>, engine: &Engine, workers: usize, mood: Mood) -> Result<Self, String> {
        let dice = Dice::new(sim.seed, "workers");
        let all = workers + sim.calls_at_once;
        let mut machines = Vec::with_capacity(all);
        for n in 0..all {
            let name = format!("w{n}");
            let clock = Arc::new(SkewedClock::new(sim.start, skew(sim, &dice)).at(sim.gate.clone()));
            let worker = Arc::new(Worker::new(name, clock));
            machines.push(Machine { worker, surroundings: OnceLock::new(), steps: Mutex::default() });
        }
        Ok(Self {
            sim: Arc::clone(sim),
            engine: engine.clone(),
            machines,
            steps: Free::new(0..workers),
            calls: Free::new(workers..all),
            up: Arc::default(),
            mood,
            dice,
        })
    }

    /// The records in which tasks of a kind wait, as they are.
    pub(crate) async fn waiting_of(&self, kind: &str) -> BTreeSet<String> {
        let scan = self.engine.dynamodb().scan().table_name(&self.sim.variables["TASKS_TABLE"]).index_name("pending");
        let text = |item: &Attributes, name: &str| item.get(name)?.as_s().ok().cloned();
        let ours = |item: &Attributes| {
            let lane: Option<Lane> = text(item, "pending")?.parse().ok();
            lane.filter(|lane| lane.kind == kind).and_then(|_| text(item, "id"))
        };
        scan.send().await.map(|found| found.items().iter().filter_map(ours).collect()).unwrap_or_default()
    }

    /// Workers that run something.
    pub(crate) fn busy(&self) -> usize {
        self.machines.len() - lock(&self.steps.machines).len() - lock(&self.calls.machines).len()
    }

    fn pool(&self, pool: Pool) -> &Free {
        match pool {
            Pool::Calls => &self.calls,
            Pool::Steps => &self.steps,
        }
    }

    /// Waits for a worker, any of those that are free. `down`: although everything is down.
    pub(crate) async fn lease(&self, pool: Pool, down: bool) -> Option<Lease> {
        let up = if down { None } else { Some(Arc::clone(&self.up).read_owned().await) };
        let free = self.pool(pool);
        let permit = Arc::clone(&free.permits).acquire_owned().await.ok()?;
        let mut machines = lock(&free.machines);
        let at = self.dice.below(machines.len());
        Some(Lease { at: machines.swap_remove(at), pool, _permit: permit, _up: up })
    }

    /// Runs an invocation; none if its worker died. Another process takes the worker's place then.
    pub(crate) async fn run<T: Send>(
        &self,
        lease: Lease,
        step: &'static str,
        timeout: Duration,
        invocation: impl FnOnce(Arc<Steps>) -> BoxFuture<'static, T>,
    ) -> Option<T> {
        let machine = &self.machines[lease.at];
        if self.dice.chance(self.sim.rate(50)) {
            machine.worker.clock.set(skew(&self.sim, &self.dice));
        }
        let result = match self.steps_of(machine) {
            Ok(steps) => machine.worker.run(&self.sim, step, steps, timeout, invocation).await,
            Err(problem) => {
                self.sim.violate(problem);
                None
            }
        };
        if result.is_none() {
            *lock(&machine.steps) = None;
        }
        self.release(lease);
        result
    }

    /// The worker that was leased.
    pub(crate) fn worker(&self, lease: &Lease) -> &Worker {
        &self.machines[lease.at].worker
    }

    /// The worker is free again.
    pub(crate) fn release(&self, lease: Lease) {
        lock(&self.pool(lease.pool).machines).push(lease.at);
        drop(lease);
    }

    fn steps_of(&self, machine: &Machine) -> Result<Arc<Steps>, String> {
        let mut made = lock(&machine.steps);
        if let Some(steps) = &*made {
            return Ok(Arc::clone(steps));
        }
        let of = match machine.surroundings.get() {
            Some(surroundings) => surroundings,
            None => {
                let surroundings = surroundings(&self.sim, &self.engine, &machine.worker)?;
                machine.surroundings.get_or_init(|| surroundings)
            }
        };
        let steps = steps(&self.sim, &machine.worker, of, &self.mood)?;
        Ok(Arc::clone(made.insert(steps)))
    }

    /// Every worker dies.
    pub(crate) fn kill_all(&self) {
        self.machines.iter().for_each(|machine| machine.worker.kill());
    }

    pub(crate) fn now(&self) -> Duration {
        Instant::now() - self.sim.start
    }
}

/// How wrong a clock is.
fn skew(sim: &Sim, dice: &Dice) -> i64 {
    let most = sim.plan.skew.as_millis() as u64;
    let skew = if most == 0 { 0 } else { dice.between(0, 2 * most) as i64 - most as i64 };
    if dice.chance(3_000) { 0 } else { skew }
}

fn steps(sim: &Arc<Sim>, worker: &Arc<Worker>, of: &Surroundings, mood: &Mood) -> Result<Arc<Steps>, String> {
    let server = Server { sim: Arc::clone(sim), mood: mood.clone() };
    let api = SimulatedApi { server, worker: Arc::clone(worker) };
    let webhooks = SimulatedWebhooks { sim: Arc::clone(sim), worker: Arc::clone(worker) };
    let sources = SimulatedSources { sim: Arc::clone(sim), worker: Arc::clone(worker) };
    Steps::new(of, Arc::new(api), Arc::new(webhooks), Arc::new(sources), sim.gathering)
        .map(Arc::new)
        .map_err(|error| error.to_string())
}

/// Clients whose requests pass by the worker's end of the wire.
fn surroundings(sim: &Arc<Sim>, engine: &Engine, worker: &Arc<Worker>) -> Result<Surroundings, String> {
    let wire = |inner| Wire { sim: Arc::clone(sim), worker: Arc::clone(worker), inner };
    let none = || "the engine's client has no HTTP client".to_owned();
    let dynamodb = engine.dynamodb();
    let inner = dynamodb.config().http_client().ok_or_else(none)?;
    let dynamodb = dynamodb.config().to_builder().http_client(wire(inner)).build();
    let sqs = engine.sqs();
    let inner = sqs.config().http_client().ok_or_else(none)?;
    let sqs = sqs.config().to_builder().http_client(wire(inner)).build();
    let variables = sim.variables.clone();
    let mut surroundings = Surroundings::new(
        aws_sdk_dynamodb::Client::from_conf(dynamodb),
        aws_sdk_sqs::Client::from_conf(sqs),
        world(Arc::clone(&worker.clock), sim.seed, &worker.name),
        move |name| variables.get(name).cloned(),
    );
    surroundings.spread = sim.spread;
    Ok(surroundings)
}
