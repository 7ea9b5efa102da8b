//! One schedule's world: a cluster behind a gate, the workers of the case, and how it comes to rest after them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fanfold::delivery::Delivery;
use fanfold_sweep::SweepRequest;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::task::JoinHandle;

use super::gate::{Gate, Passed};
use super::ground::Ground;
use super::touches::Touches;
use crate::clients::Clients;
use crate::cluster::{Cluster, Lease, Pool};
use crate::lock;
use crate::model::Model;
use crate::queues::Snapshot;
use crate::run::{come_to_rest, pump};
use crate::sim::Sim;
use crate::steps::{Steps, step_name};
use crate::wire::WireAnswer;
use crate::{check, readers};

/// Decides what no schedule decides: ids, pauses.
const SEED: u64 = 7;

/// Longer than any schedule takes.
const TIMEOUT: Duration = Duration::from_secs(3_600);

/// What a worker has at hand.
#[derive(Clone)]
pub(crate) struct Hands {
    pub(crate) sim: Arc<Sim>,
    pub(crate) steps: Arc<Steps>,
    pub(crate) worker: String,
}

/// What a worker does. Returns whether it is done; otherwise it is to be done again.
pub(crate) type Work = Arc<dyn Fn(Hands) -> BoxFuture<'static, bool> + Send + Sync>;

/// Who sees to it that work is done that a worker left.
#[derive(Clone, Debug)]
pub(crate) enum Again {
    /// A message, which comes again: queue, id, body.
    Message(&'static str, String, String),
    /// A user, who repeats the request.
    User,
    /// Nobody.
    Nobody,
}

/// One of the workers of a case.
#[derive(Clone)]
pub(crate) struct Actor {
    pub(crate) step: &'static str,
    pub(crate) work: Work,
    pub(crate) again: Again,
    /// How far its clock is ahead of the others'.
    pub(crate) ahead: Duration,
}

impl Actor {
    /// A worker that gets a message.
    pub(crate) fn message(queue: &'static str, (id, body): (String, String)) -> Self {
        let again = Again::Message(queue, id.clone(), body.clone());
        let work = move |hands: Hands| {
            let delivery = Delivery { message_id: id.clone(), body: body.clone(), receive_count: 1 };
            async move { hands.steps.behind(queue).deliver(vec![delivery]).await.is_empty() }.boxed()
        };
        Self { step: step_name(queue), work: Arc::new(work), again, ahead: Duration::ZERO }
    }

    /// Two workers that get the same message.
    pub(crate) fn twice(queue: &'static str, message: (String, String)) -> Vec<Self> {
        vec![Self::message(queue, message.clone()), Self::message(queue, message)]
    }

    /// The same, but afterwards it gets the message that is first in that queue then, if there is one.
    pub(crate) fn and_then(self, queue: &'static str) -> Self {
        let first = Arc::clone(&self.work);
        let work = move |hands: Hands| {
            let first = first(hands.clone());
            async move {
                let done = first.await;
                if let Some(body) = look(&hands, queue).await {
                    // It stays in the queue, and comes again in any case.
                    let next = Delivery { message_id: "next".to_owned(), body, receive_count: 1 };
                    hands.steps.behind(queue).deliver(vec![next]).await;
                }
                done
            }
            .boxed()
        };
        Self { work: Arc::new(work), ..self }
    }

    /// A worker that sweeps.
    pub(crate) fn sweep(request: SweepRequest) -> Self {
        let work = move |hands: Hands| async move { hands.steps.all.sweep.sweep(request).await.is_ok() }.boxed();
        Self { step: "sweep", work: Arc::new(work), again: Again::Nobody, ahead: Duration::ZERO }
    }

    /// A worker behind the HTTP API.
    pub(crate) fn request(
        step: &'static str,
        again: Again,
        work: impl Fn(Hands) -> BoxFuture<'static, bool> + Send + Sync + 'static,
    ) -> Self {
        Self { step, work: Arc::new(work), again, ahead: Duration::ZERO }
    }

    /// The same with a clock that is ahead.
    pub(crate) fn ahead(self, ahead: Duration) -> Self {
        Self { ahead, ..self }
    }
}

/// The first message of a queue.
async fn look(hands: &Hands, queue: &str) -> Option<String> {
    let gate = hands.sim.gate.as_ref()?;
    let picked = gate.pass(&hands.worker, Touches::messages(queue)).await;
    let reply = picked.reply.unwrap_or_else(|| WireAnswer::ok(hands.sim.queues.peek(queue).into()));
    gate.replied(reply.clone());
    gate.heard(&hands.worker, queue, Some(&reply.body));
    reply.body.as_str().map(str::to_owned)
}

/// Everything that is not the workers': what a schedule goes on from.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) passed: Passed,
    model: Model,
    messages: Snapshot,
}

/// A worker of the case at its work.
pub(crate) struct Player {
    pub(crate) name: String,
    run: JoinHandle<Option<bool>>,
    /// How it ended; none while it works. It was done, it is to be done again, or it died.
    pub(crate) ended: Option<Option<bool>>,
}

/// The world of a schedule.
pub(crate) struct Stage {
    pub(crate) sim: Arc<Sim>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) cluster: Arc<Cluster>,
    clients: Arc<Clients>,
    /// How long ago what prepares a case happens, in milliseconds.
    ago: AtomicI64,
}

impl Stage {
    pub(crate) fn new(ground: &Ground, gate: Arc<Gate>) -> Result<Self, String> {
        let sim = Arc::new(Sim::new(SEED, ground.plan(), ground.template).behind(Arc::clone(&gate), ground.spread()));
        let workers = ground.scenario.workers;
        let cluster = Arc::new(Cluster::new(&sim, &ground.engine, workers, ground.scenario.mood.clone())?);
        let clients = Clients::new(&cluster, ground.scenario.clone());
        Ok(Self { sim, gate, cluster, clients, ago: AtomicI64::new(0) })
    }

    /// What prepares the case from now on happens so long ago.
    pub(crate) fn long_ago(&self, ago: Duration) {
        self.ago.store(i64::try_from(ago.as_millis()).unwrap_or(0), Ordering::Relaxed);
    }

    /// How things are.
    pub(crate) fn scene(&self) -> Scene {
        let model = lock(&self.sim.model).clone();
        Scene { passed: self.gate.passed(), model, messages: self.sim.queues.snapshot() }
    }

    /// Things are like this.
    pub(crate) fn set(&self, scene: Scene) {
        self.gate.go_on_from(scene.passed);
        *lock(&self.sim.model) = scene.model;
        self.sim.queues.restore(scene.messages);
        // What is checked depends on what was not done again.
        self.sim.forgive();
    }

    /// Does some work while nobody else works.
    pub(crate) async fn alone(&self, actor: Actor) -> Result<(), String> {
        let lease = self.lease().await?;
        self.cluster.worker(&lease).clock.set(-self.ago.load(Ordering::Relaxed));
        match run(Arc::clone(&self.cluster), lease, actor).await {
            Some(true) => Ok(()),
            ended => Err(format!("what prepares a case ended as {ended:?}: {:?}", self.sim.violations())),
        }
    }

    /// Has a message delivered, and takes it from its queue.
    pub(crate) async fn deliver(&self, queue: &'static str) -> Result<(), String> {
        let message = self.take(queue)?;
        self.alone(Actor::message(queue, message)).await
    }

    /// Takes the first message of a queue.
    pub(crate) fn take(&self, queue: &str) -> Result<(String, String), String> {
        self.sim.queues.take(queue).ok_or_else(|| format!("{queue} is empty"))
    }

    async fn lease(&self) -> Result<Lease, String> {
        self.cluster.lease(Pool::Steps, false).await.ok_or_else(|| "there is no worker".to_owned())
    }

    /// The workers of a case begin; their first requests wait at the gate.
    pub(crate) async fn play(&self, actors: &[Actor]) -> Result<Vec<Player>, String> {
        self.gate.close();
        let mut players = Vec::with_capacity(actors.len());
        for actor in actors {
            let lease = self.lease().await?;
            let worker = self.cluster.worker(&lease);
            worker.clock.set(i64::try_from(actor.ahead.as_millis()).unwrap_or(0));
            let name = worker.name.clone();
            let run = tokio::spawn(run(Arc::clone(&self.cluster), lease, actor.clone()));
            players.push(Player { name, run, ended: None });
        }
        Ok(players)
    }

    /// Waits until every worker's next request stands at the gate, or the worker has ended.
    pub(crate) async fn wait_at_gates(&self, players: &mut [Player]) -> Result<(), String> {
        let mut pause = Duration::from_millis(1);
        for _ in 0..1_000 {
            // Time is paused: it goes on when nobody can do anything any more.
            tokio::time::sleep(pause).await;
            let mut waits = false;
            for player in players.iter_mut().filter(|player| player.ended.is_none()) {
                if player.run.is_finished() {
                    player.ended = Some((&mut player.run).await.map_err(|error| error.to_string())?);
                } else {
                    waits |= self.gate.waits(&player.name).is_none();
                }
            }
            if !waits {
                return Ok(());
            }
            pause = (pause * 2).min(Duration::from_millis(200));
        }
        Err("a worker neither ends nor asks for anything".to_owned())
    }

    /// What was left is done again, as by queues, users and sweeps; then everything is looked at.
    pub(crate) async fn rest(&self, ground: &Ground, players: &[Player]) -> Result<(), String> {
        self.gate.open();
        for (player, actor) in players.iter().zip(&ground.actors) {
            if player.ended == Some(Some(true)) {
                continue;
            }
            match &actor.again {
                Again::Message(queue, id, body) => {
                    self.sim.queues.send(queue, id.clone(), body.clone(), Duration::ZERO, *queue != "RegisterQueue");
                }
                Again::User => {
                    let (cluster, actor) = (Arc::clone(&self.cluster), actor.clone());
                    self.clients.spawn(async move {
                        while let Some(lease) = cluster.lease(Pool::Steps, false).await {
                            if run(Arc::clone(&cluster), lease, actor.clone()).await == Some(true) {
                                return;
                            }
                            tokio::time::sleep(Duration::from_secs(1)).await;
                        }
                    });
                }
                Again::Nobody => {}
            }
        }
        for queue in self.sim.queues.names() {
            tokio::spawn(pump(Arc::clone(&self.cluster), queue));
        }
        come_to_rest(&self.cluster, &self.clients).await;
        readers::read_everything(&self.clients).await;
        if self.sim.violations().is_empty() {
            check::everything(&ground.engine, &self.sim).await?;
        }
        Ok(())
    }
}

/// Runs a worker of a case; none if it died.
async fn run(cluster: Arc<Cluster>, lease: Lease, actor: Actor) -> Option<bool> {
    let sim = Arc::clone(&cluster.sim);
    let worker = cluster.worker(&lease).name.clone();
    cluster.run(lease, actor.step, TIMEOUT, move |steps| (actor.work)(Hands { sim, steps, worker })).await
}
