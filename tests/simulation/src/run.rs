//! One run: a stack, its users and its faults, until everything is quiet; then it is looked at.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use fanfold::limits::{FOLLOW_PAUSE_MAX, HINT_LOST_AFTER, WAKE_PAUSE_MAX};
use fanfold_local::{Engine, Template};
use fanfold_sweep::{SweepReport, SweepRequest};
use futures::FutureExt;
use tokio::time::{Instant, sleep, sleep_until};

use crate::clients::Clients;
use crate::cluster::{Cluster, Pool};
use crate::faults::FaultPlan;
use crate::lock;
use crate::scenario::Scenario;
use crate::sim::Sim;
use crate::stats::Stats;
use crate::steps::step_name;
use crate::{check, deleted, dev, estimated, later, operator, produced, readers, resets, work};

/// The one description of tables and queues.
pub(crate) const TEMPLATE: &str = include_str!("../../../template.yaml");

/// After faults stopped, everything must be quiet within this time, messages that were late aside: the batch API may have
/// asked to wait for a day. A producer's partition is one chain of messages: each worker that dies over one at a request that its run makes
/// rarely costs its visibility time-out of 12 minutes, for some 20 kinds of requests.
const PATIENCE: Duration = Duration::from_secs((24 + 24 + 168) * 3_600);

/// How long a sweep may take (template.yaml).
const SWEEP_TIMEOUT: Duration = Duration::from_secs(300);

/// Sweeps in a row that find nothing to do before a stack counts as at rest.
const IDLE_SWEEPS: u32 = 2;

/// Sweeps after which a stack that still finds something to do counts as stuck.
const MOST_SWEEPS: u32 = 25;

/// What came of a run.
#[derive(Debug)]
pub struct SeedReport {
    /// The seed.
    pub seed: u64,
    /// What happened.
    pub trace: Vec<String>,
    /// What does not hold that must hold.
    pub violations: Vec<String>,
    /// What was injected and reached.
    pub stats: Stats,
    /// How long it took in its own time.
    pub lasted: Duration,
}

/// Runs a seed on this thread.
///
/// # Errors
/// The stack could not be made.
pub fn run(seed: u64) -> Result<SeedReport, String> {
    // The SDK draws jitter and tokens from the thread's generator.
    fastrand::seed(seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.map_err(|error| error.to_string())?.block_on(simulate(seed))
}

/// The template, which is parsed once for all seeds.
pub(crate) fn template() -> Result<&'static Template, String> {
    static PARSED: LazyLock<Result<Template, String>> =
        LazyLock::new(|| Template::parse(TEMPLATE).map_err(|error| error.to_string()));
    PARSED.as_ref().map_err(Clone::clone)
}

async fn simulate(seed: u64) -> Result<SeedReport, String> {
    let template = template()?;
    let engine = Engine::memory().map_err(|error| error.to_string())?;
    engine.provision_tables(template).map_err(|error| error.to_string())?;
    let plan = FaultPlan::draw(&crate::dice::Dice::new(seed, "plan"));
    let scenario = Scenario::draw(seed, plan.until, plan.quiet);
    let sim = Arc::new(Sim::new(seed, plan, template));
    sim.trace.line("-", &format!("{:?}", sim.plan));
    for part in scenario.describe() {
        sim.trace.line("-", &part);
    }
    lock(&sim.model).kinds = scenario.kind_models();
    let cluster = Arc::new(Cluster::new(&sim, &engine, scenario.workers, scenario.mood.clone())?);
    check::put_policies(&engine, &sim, &scenario).await?;
    let clients = Clients::new(&cluster, scenario.clone());
    for queue in sim.queues.names() {
        tokio::spawn(pump(Arc::clone(&cluster), queue));
    }
    tokio::spawn(keep_sweeping(Arc::clone(&cluster)));
    if sim.seed.is_multiple_of(4) {
        // A sweep of very many lanes goes on when the next one begins.
        tokio::spawn(keep_sweeping(Arc::clone(&cluster)));
    }
    tokio::spawn(restart_at_times(Arc::clone(&cluster)));
    begin(&clients, &scenario);
    come_to_rest(&cluster, &clients).await;
    sim.rest();
    readers::read_everything(&clients).await;
    if sim.violations().is_empty() {
        check::everything(&engine, &sim).await?;
    }
    let lasted = cluster.now();
    let stats = lock(&sim.stats).clone();
    Ok(SeedReport { seed, trace: sim.trace.take(), violations: sim.violations(), stats, lasted })
}

/// Lets the users, operators and readers of a scenario begin.
fn begin(clients: &Arc<Clients>, scenario: &Scenario) {
    let sim = &clients.cluster.sim;
    for plan in &scenario.kinds {
        clients.spawn(change_policies(Arc::clone(clients), plan.clone()));
    }
    for plan in &scenario.fanouts {
        clients.spawn(work::fanout(Arc::clone(clients), plan.clone()));
    }
    let cancels = !sim.plan.calm && clients.scenario.mood.hangs.is_none() && sim.seed % 4 == 1;
    if operator::pauses(clients) {
        clients.spawn(operator::pause_scopes(Arc::clone(clients)));
    }
    // Where everything is to be handled, nothing is cancelled.
    if cancels {
        clients.spawn(operator::cancel_tasks(Arc::clone(clients)));
    }
    if cancels || operator::pauses(clients) {
        clients.spawn(resets::reset_tasks(Arc::clone(clients)));
    }
    if !sim.plan.calm && deleted::may_be(clients) {
        clients.spawn(deleted::delete_policies(Arc::clone(clients)));
    }
    if !sim.plan.calm && dev::may_be(clients) {
        clients.spawn(dev::sessions(Arc::clone(clients)));
    }
    tokio::spawn(readers::keep_reading(Arc::clone(clients)));
    tokio::spawn(later::keep_posting(Arc::clone(clients)));
    for plan in &scenario.singles {
        clients.spawn(work::singles(Arc::clone(clients), plan.clone()));
    }
    for plan in &scenario.produced {
        clients.spawn(produced::user(Arc::clone(clients), plan.clone()));
    }
    for plan in &scenario.estimated {
        clients.spawn(estimated::users(Arc::clone(clients), plan.clone()));
    }
}

/// Waits until faults are over and nothing is left to do.
pub(crate) async fn come_to_rest(cluster: &Arc<Cluster>, clients: &Clients) {
    let sim = &cluster.sim;
    sleep_until(sim.start + sim.plan.until).await;
    let _up = cluster.up.read().await;
    sim.heal();
    let healed = Instant::now();
    let (mut idle, mut sweeps) = (0, 0);
    loop {
        while clients.busy() > 0 || cluster.busy() > 0 || !sim.queues.all().is_empty() {
            if !sim.violations().is_empty() {
                return;
            }
            let late = Instant::now() - healed > PATIENCE;
            sweep_while_waiting(cluster, healed).await;
            if late {
                return sim.violate(format!("after {PATIENCE:?} there is still: {:?}", sim.queues.all()));
            }
        }
        if sweeps == 0 && sim.plan.calm {
            // A look before the first sweep: it is to find nothing.
            idle = IDLE_SWEEPS;
        }
        if idle >= IDLE_SWEEPS || !sim.violations().is_empty() {
            return;
        }
        let Some(report) = sweep_for_all(cluster).await else { continue };
        sweeps += 1;
        let nothing = SweepReport { retired: report.retired, ..SweepReport::default() } == report;
        idle = if nothing { idle + 1 } else { 0 };
        if sweeps > MOST_SWEEPS {
            return sim.violate(format!("after {sweeps} sweeps there is still something to do: {report:?}"));
        }
    }
}

/// Waits until whatever got lost is due, and runs a sweep.
pub(crate) async fn sweep_for_all(cluster: &Arc<Cluster>) -> Option<SweepReport> {
    // Times that a fast clock stamped must look old to one that is slow, and a message that got lost again be due.
    sleep(cluster.sim.plan.skew * 2 + HINT_LOST_AFTER + WAKE_PAUSE_MAX.max(FOLLOW_PAUSE_MAX)).await;
    sweep(cluster, SweepRequest::default(), false).await
}

/// Waits for messages; sweeps go on meanwhile, less often when the next message is far off.
async fn sweep_while_waiting(cluster: &Arc<Cluster>, healed: Instant) {
    for _ in 0..24 {
        sleep(Duration::from_secs(5)).await;
        if cluster.sim.queues.all().is_empty() {
            return;
        }
    }
    if cluster.sim.plan.calm {
        return;
    }
    if Instant::now() - healed < Duration::from_secs(1_800) || cluster.sim.post.chance(1_000) {
        sweep(cluster, SweepRequest::default(), false).await;
    }
}

/// Runs a sweep.
async fn sweep(cluster: &Arc<Cluster>, request: SweepRequest, down: bool) -> Option<SweepReport> {
    let lease = cluster.lease(Pool::Steps, down).await?;
    let step = if request.workers_dead { "resume" } else { "sweep" };
    let run = cluster
        .run(lease, step, SWEEP_TIMEOUT, move |steps| async move { steps.all.sweep.sweep(request).await }.boxed());
    let report = run.await?;
    cluster.sim.trace.line(step, &format!("{report:?}"));
    report.ok()
}

/// Sweeps while faults last.
async fn keep_sweeping(cluster: Arc<Cluster>) {
    while !cluster.sim.healed() && !cluster.sim.plan.calm {
        sleep(cluster.sim.post.millis(100, cluster.sim.plan.sweep_every.as_millis() as u64 * 2)).await;
        sweep(&cluster, SweepRequest::default(), false).await;
    }
}

/// Everything dies at once and loses its messages; a sweep for dead workers makes them again, as the local runner does.
async fn restart_at_times(cluster: Arc<Cluster>) {
    let sim = Arc::clone(&cluster.sim);
    for _ in 0..sim.plan.restarts {
        if sim.post.chance(5_000) {
            sleep(sim.post.millis(0, sim.plan.until.as_millis() as u64)).await;
        } else {
            sim.disaster.notified().await;
        }
        if sim.healed() {
            return;
        }
        sim.count("restarts of everything");
        sim.trace.line("-", "EVERYTHING DIES");
        let down = Arc::clone(&cluster.up).write_owned();
        cluster.kill_all();
        let down = down.await;
        sim.queues.lose_hints();
        let request = SweepRequest { min_age: Duration::ZERO, workers_dead: true };
        while sweep(&cluster, request, true).await.is_none() {
            sleep(Duration::from_secs(1)).await;
        }
        drop(down);
        sim.trace.line("-", "EVERYTHING RUNS AGAIN");
    }
}

/// Stores the later versions of a policy when their time comes.
async fn change_policies(clients: Arc<Clients>, plan: crate::scenario::KindPlan) {
    for (at, policy) in plan.versions.into_iter().skip(1) {
        sleep_until(clients.cluster.sim.start + at).await;
        clients.put_policy(policy).await;
    }
}

/// Hands the messages of a queue to its step as the event source does.
pub(crate) async fn pump(cluster: Arc<Cluster>, name: String) {
    let sim = Arc::clone(&cluster.sim);
    loop {
        let Some(queue) = sim.queues.get(&name) else { return };
        queue.ready().await;
        sleep(sim.post.skewed(Duration::from_millis(1), Duration::from_millis(1_500))).await;
        let Some(lease) = cluster.lease(Pool::behind(&name), false).await else { return };
        let received = queue.receive(&sim.post, sim.rate(sim.plan.message_again));
        if received.is_empty() {
            cluster.release(lease);
            continue;
        }
        let (cluster, name) = (Arc::clone(&cluster), name.clone());
        tokio::spawn(async move { deliver(&cluster, &name, lease, received).await });
    }
}

async fn deliver(cluster: &Cluster, name: &str, lease: crate::cluster::Lease, received: crate::queues::Received) {
    let sim = &cluster.sim;
    let Some(queue) = sim.queues.get(name) else { return };
    let ids: Vec<&str> = received.iter().map(|delivery| delivery.message_id.as_str()).collect();
    let step = step_name(name);
    sim.trace.line(step, &format!("gets {}", ids.join(" ")));
    lock(&sim.told).gets(&cluster.worker(&lease).name, &received);
    let (handed, of) = (received.clone(), name.to_owned());
    let run = cluster
        .run(lease, step, queue.timeout, move |steps| async move { steps.behind(&of).deliver(handed).await }.boxed());
    match run.await {
        Some(failed) => {
            if !failed.is_empty() {
                sim.trace.line(step, &format!("failed {}", failed.join(" ")));
            }
            queue.done(&received, &failed, || sim.again());
        }
        None => sim.trace.line(step, &format!("died over {}", ids.join(" "))),
    }
}
