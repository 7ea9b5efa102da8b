//! An operator who pauses scopes for a while, resumes or drains them, cancels tasks, and lists lanes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fanfold::control::{ControlError, LaneCursor, Scope, Switched};
use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use fanfold::store::policies::SwitchError;
use futures::FutureExt;
use tokio::time::{Instant, sleep};

use crate::clients::{Clients, Passing};
use crate::dice::Dice;
use crate::faults::LATE_MAX;
use crate::lock;

impl Passing for ControlError {
    fn passing(&self) -> bool {
        !matches!(self, Self::Switch(SwitchError::UnknownKind(_) | SwitchError::TooMany(_)))
    }

    fn wants_policy(&self) -> bool {
        matches!(self, Self::Switch(SwitchError::UnknownKind(_)))
    }
}

/// Whether this operator is at work. Where tasks of a lane must not wait, it is not paused.
pub(crate) fn pauses(clients: &Clients) -> bool {
    let sim = &clients.cluster.sim;
    !sim.plan.calm && clients.scenario.mood.hangs.is_none() && sim.seed.is_multiple_of(3)
}

/// Pauses scopes in which there is something to do, one after the other, until faults stop.
pub(crate) async fn pause_scopes(clients: Arc<Clients>) {
    let sim = Arc::clone(&clients.cluster.sim);
    let dice = Dice::new(sim.seed, "operator");
    let mut used = BTreeSet::new();
    while !sim.healed() {
        sleep(dice.skewed(Duration::from_secs(1), Duration::from_secs(120))).await;
        let Some(scope) = awaited(&clients, &dice).or_else(|| scope(&clients, &dice)) else { continue };
        if sim.healed() {
            break;
        }
        used.insert(scope.clone());
        if dice.chance(2_000) {
            drain(&clients, &scope).await;
            continue;
        }
        sim.count("scopes paused");
        pause(&clients, &scope).await;
        sleep(dice.skewed(Duration::from_secs(1), Duration::from_secs(600))).await;
        if dice.chance(3_000) { drain(&clients, &scope).await } else { resume(&clients, &scope).await }
    }
    // A pause whose answer was lost may have been applied after its end.
    sleep(LATE_MAX).await;
    for scope in used {
        if dice.chance(3_000) { drain(&clients, &scope).await } else { resume(&clients, &scope).await }
    }
}

/// Cancels tasks now and then, and lists lanes.
pub(crate) async fn cancel_tasks(clients: Arc<Clients>) {
    let sim = Arc::clone(&clients.cluster.sim);
    let dice = Dice::new(sim.seed, "cancels");
    while !sim.healed() {
        sleep(dice.skewed(Duration::from_secs(1), Duration::from_secs(90))).await;
        if sim.healed() {
            return;
        }
        match dice.below(8) {
            0 => list(&clients).await,
            1 if dice.chance(2_500) => cancel_selection(&clients, &dice).await,
            _ => cancel_some(&clients, &dice).await,
        }
    }
}

/// A scope of a lane in which somebody waits for a pause.
fn awaited(clients: &Clients, dice: &Dice) -> Option<Scope> {
    let lanes: Vec<Lane> = lock(&clients.cluster.sim.model).control.awaited.iter().cloned().collect();
    (!lanes.is_empty() && dice.chance(7_000)).then(|| scope_of(&dice.pick(&lanes), dice))
}

/// A scope of a lane that had a batch, or of a task.
fn scope(clients: &Clients, dice: &Dice) -> Option<Scope> {
    let lane = {
        let model = lock(&clients.cluster.sim.model);
        let lanes: BTreeSet<String> = model.lanes.values().cloned().collect();
        let of_task = |task: &crate::model::TaskModel| {
            let target = task.content["t"].as_str()?.to_owned();
            Some(Lane { kind: task.kind.clone(), partition: 0, target })
        };
        let lanes = lanes.iter().filter_map(|lane| lane.parse().ok());
        let lanes: BTreeSet<Lane> = lanes.chain(model.tasks.values().filter_map(of_task)).collect();
        if lanes.is_empty() {
            return None;
        }
        dice.pick(&lanes.into_iter().collect::<Vec<_>>())
    };
    Some(scope_of(&lane, dice))
}

fn scope_of(lane: &Lane, dice: &Dice) -> Scope {
    let [all, kind, target, lane] = Scope::of(lane);
    dice.pick(&[all, kind.clone(), kind, target.clone(), target, lane.clone(), lane])
}

/// Pauses a scope.
pub(crate) async fn pause(clients: &Clients, scope: &Scope) {
    let asked = scope.clone();
    let what = format!("POST /pause {scope}");
    let pause = clients.until_done("api", &what, move |steps| {
        let scope = asked.clone();
        async move { steps.control.pause(&scope).await }.boxed()
    });
    if pause.await.is_some() {
        lock(&clients.cluster.sim.model).control.paused.insert(scope.clone(), Instant::now());
    }
}

/// Resumes a scope.
pub(crate) async fn resume(clients: &Clients, scope: &Scope) {
    lock(&clients.cluster.sim.model).control.paused.remove(scope);
    let asked = scope.clone();
    let what = format!("POST /resume {scope}");
    let resume = clients.until_done("api", &what, move |steps| {
        let scope = asked.clone();
        async move { steps.control.resume(&scope).await }.boxed()
    });
    let begun = Instant::now();
    let Some(Switched { switch: Some(_), paused_by }) = resume.await else { return };
    let woken = |lane: &Lane| lock(&clients.cluster.sim.heeding).woken_since(lane, begun);
    if let Scope::Lane(lane) = scope
        && paused_by.is_empty()
        && !woken(lane)
    {
        clients.cluster.sim.violate(format!("lane {lane} was resumed, and nobody wakes it"));
    }
}

async fn drain(clients: &Clients, scope: &Scope) {
    clients.cluster.sim.count("scopes drained");
    {
        let control = &mut lock(&clients.cluster.sim.model).control;
        control.paused.remove(scope);
        control.drained.insert(scope.clone());
    }
    let asked = scope.clone();
    let what = format!("POST /drain {scope}");
    let drain = clients.until_done("api", &what, move |steps| {
        let scope = asked.clone();
        async move { steps.control.drain(&scope).await }.boxed()
    });
    if drain.await.is_some() {
        lock(&clients.cluster.sim.model).control.draining.insert(scope.clone(), Instant::now());
    }
}

/// Cancels some tasks that were asked for, whatever became of them.
async fn cancel_some(clients: &Clients, dice: &Dice) {
    let sim = &clients.cluster.sim;
    let ids: Vec<TaskId> = {
        let mut model = lock(&sim.model);
        let all: Vec<TaskId> = model.tasks.keys().copied().collect();
        if all.is_empty() {
            return;
        }
        let ids: BTreeSet<TaskId> = (0..1 + dice.below(3)).map(|_| dice.pick(&all)).collect();
        model.control.asked.extend(&ids);
        ids.into_iter().collect()
    };
    sim.count("cancellations of tasks");
    let asked = ids.clone();
    let what = format!("DELETE /tasks of {ids:?}");
    let cancel = clients.until_done("api", &what, move |steps| {
        let ids = asked.clone();
        async move { steps.cancelling.cancel(ids).await }.boxed()
    });
    if let Some(cancelled) = cancel.await {
        *lock(&sim.stats).brought.entry("tasks cancelled").or_default() += cancelled.len() as u64;
        lock(&sim.model).control.cancelled.extend(cancelled);
    }
}

/// Cancels all that waits in a scope, page by page.
async fn cancel_selection(clients: &Clients, dice: &Dice) {
    let Some(scope) = scope(clients, dice).filter(|scope| *scope != Scope::All) else { return };
    let sim = &clients.cluster.sim;
    sim.count("cancellations of selections");
    lock(&sim.model).control.selected.extend(scope.kind().map(str::to_owned));
    let mut after = None;
    loop {
        let asked = (scope.clone(), after.clone());
        let what = format!("POST /tasks/cancel {scope}");
        let cancel = clients.until_done("api", &what, move |steps| {
            let (scope, after) = asked.clone();
            async move { steps.cancelling.cancel_page(&scope, after.as_ref()).await }.boxed()
        });
        after = cancel.await.and_then(|page| page.next);
        if after.is_none() {
            return;
        }
    }
}

/// Looks at all lanes.
async fn list(clients: &Clients) {
    let mut after: Option<LaneCursor> = None;
    for _ in 0..50 {
        let asked = after.clone();
        let list = clients.until_done("api", "GET /lanes", move |steps| {
            let after = asked.clone();
            async move { steps.control.lanes(&Scope::All, false, after, 20).await }.boxed()
        });
        after = list.await.and_then(|page| page.next);
        if after.is_none() {
            return;
        }
    }
}
