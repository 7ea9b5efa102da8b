//! Reissues of fan-outs with a producer, whose rows are all different: their user, and what must hold of them in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::producing::ReissueError;
use fanfold::store::fanouts::{Fanout, FanoutState, Fanouts};
use fanfold::store::producers::{Partition, PartitionState};
use futures::FutureExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::reissue::reissue;
use super::{ProducedPlan, beside, resume};
use crate::check::ByTask;
use crate::clients::{Clients, Passing};
use crate::dice::Dice;
use crate::model::Model;
use crate::producer::cancel;
use crate::run::sweep_for_all;
use crate::steps::Steps;

/// The length of a text that makes a row large: a page of a reissue has three of them.
const LARGE: usize = 100_000;

/// How a fan-out is reissued.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgainPlan {
    pub(super) missing: bool,
    pub(super) max_batch: Option<u32>,
    /// When the reissue is cancelled after it was opened.
    cancel: Option<Duration>,
    /// Whether it is cancelled once it has taken on a page, and perhaps not all.
    cut: bool,
}

impl AgainPlan {
    /// What fails of these rows is called again. Some always fail, some once. Rows that are in an object (`fixed`) stay short.
    pub(super) fn draw(dice: &Dice, rows: &mut [Value], fixed: bool) -> Option<Self> {
        let plan = Self {
            missing: dice.chance(5_000),
            max_batch: dice.chance(3_000).then(|| 1 + dice.below(3) as u32),
            cancel: dice.chance(4_000).then(|| dice.skewed(Duration::from_millis(1), Duration::from_secs(120))),
            cut: dice.chance(4_000),
        };
        if !dice.chance(6_000) {
            return None;
        }
        let large = dice.chance(5_000) && !fixed;
        for row in rows {
            if large {
                row["content"]["filler"] = json!("x".repeat(LARGE));
            }
            if dice.chance(4_000) {
                row["content"][dice.pick(&["doomed", "mended", "mended", "mended"])] = json!(true);
            }
        }
        Some(plan)
    }
}

impl Passing for ReissueError {
    fn passing(&self) -> bool {
        match self {
            Self::Store(_) | Self::Queue(_) => true,
            Self::Tracking(error) => error.passing(),
            _ => false,
        }
    }
}

/// Reissues what failed, then what that reissue left, if it was cut short, and what it had taken on.
pub(super) async fn user(clients: &Arc<Clients>, plan: &ProducedPlan, old: Uuid) {
    let Some(again) = plan.again else { return };
    let Some(first) = reissue(clients, plan, again, old, "first").await else { return };
    if again.max_batch.is_some() {
        clients.spawn(beside::user(Arc::clone(clients), plan.clone(), first));
    }
    if again.cut {
        clients.spawn(cut(Arc::clone(clients), first));
    } else {
        clients.spawn(cancel(Arc::clone(clients), again.cancel, first));
    }
    resume(clients, first, at_rest).await;
    if let Some(rest) = reissue(clients, plan, again, old, "rest").await {
        resume(clients, rest, at_rest).await;
    }
    let again = AgainPlan { missing: true, ..again };
    if let Some(taken_on) = reissue(clients, plan, again, first, "taken on").await {
        resume(clients, taken_on, at_rest).await;
    }
}

/// Cancels a reissue once its producer has taken on a page.
async fn cut(clients: Arc<Clients>, id: Uuid) {
    for _ in 0..2_000 {
        let moved = move |steps: Arc<Steps>| {
            async move {
                let at = steps.producing.producers.get(id, 0).await?;
                Ok::<_, fanfold::aws::StoreError>(at.is_none_or(|at| at.rows > 0 || !at.unfinished()))
            }
            .boxed()
        };
        if clients.until_done("api", &format!("GET /fanouts/{id}"), moved).await == Some(true) {
            return cancel(clients, Some(Duration::ZERO), id).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether faults are over and no message is on its way, however late: what did not come by itself needs a sweep.
pub(super) fn at_rest(clients: &Clients) -> bool {
    clients.cluster.sim.healed() && clients.cluster.sim.queues.all().is_empty()
}

/// Waits for the end of a fan-out, for a while.
pub(super) async fn has_ended(clients: &Arc<Clients>, id: Uuid) -> bool {
    let mut left = 20;
    while left > 0 {
        left -= usize::from(at_rest(clients));
        let ended = move |steps: Arc<Steps>| {
            async move {
                Ok::<_, fanfold::aws::StoreError>(steps.tracking.fanouts.get(id).await?.is_some_and(|it| it.ended()))
            }
            .boxed()
        };
        if clients.until_done("api", &format!("GET /fanouts/{id}"), ended).await == Some(true) {
            return true;
        }
        tokio::time::sleep(clients.dice.skewed(Duration::from_secs(1), Duration::from_secs(300))).await;
        if at_rest(clients) && !clients.cluster.sim.plan.calm {
            sweep_for_all(&clients.cluster).await;
        }
    }
    false
}

impl Model {
    /// Whether a task is an item of a reissue.
    pub(crate) fn is_reissued(&self, id: &TaskId) -> bool {
        matches!(id, TaskId::Item(item) if self.produced.get(&item.fanout).is_some_and(|it| it.of.is_some()))
    }
}

/// The fan-out that was reissued first, from which this one follows.
fn root(model: &Model, fanout: Uuid) -> Uuid {
    std::iter::successors(Some(fanout), |id| model.produced.get(id)?.of).last().unwrap_or(fanout)
}

/// The keys of a fan-out's rows that tasks of others have, too. Who finds the key of a task that is not stored yet stores that task,
/// with its own content: which row such an item has depends on who was first.
fn shared_keys(model: &Model, fanout: Uuid) -> BTreeSet<String> {
    let from = root(model, fanout);
    let follows =
        |id: &TaskId| matches!(id, TaskId::Item(item) if item.fanout != from && root(model, item.fanout) == from);
    let items = model.fanouts.get(&from).into_iter().flat_map(|fanout| &fanout.items);
    let shared = items.map(|item| TaskId::Item(*item)).filter(|id| {
        let mut others = model.rivals(id).into_iter().filter(|other| other != id);
        others.any(|other| !follows(&other))
    });
    shared.filter_map(|id| key(model, &id)).collect()
}

fn key(model: &Model, id: &TaskId) -> Option<String> {
    Some(model.tasks.get(id)?.content["k"].to_string())
}

/// The tasks of a fan-out whose rows are certain.
fn certain(model: &Model, fanout: Uuid) -> impl Iterator<Item = TaskId> {
    let shared = shared_keys(model, fanout);
    let items = model.fanouts.get(&fanout).into_iter().flat_map(|fanout| &fanout.items);
    let is_certain = move |id: &TaskId| key(model, id).is_none_or(|key| !shared.contains(&key));
    items.map(|item| TaskId::Item(*item)).filter(is_certain)
}

/// The rows of a fan-out that are certain, each with its task.
fn rows_of(model: &Model, fanout: Uuid) -> BTreeMap<u64, TaskId> {
    let row = |id: &TaskId| model.tasks.get(id)?.content["row"].as_u64();
    certain(model, fanout).filter_map(|id| Some((row(&id)?, id))).collect()
}

fn succeeded(batches: &ByTask, id: &TaskId) -> bool {
    batches.get(id).is_some_and(|batch| batch.members.slot(id).is_some_and(|slot| batch.succeeded.get(slot)))
}

/// Each item is another row of a task that did not succeed.
pub(super) fn rows(model: &Model, batches: &ByTask, of: Uuid, fanout: &Fanout) -> Option<String> {
    let (before, now) = (rows_of(model, of), rows_of(model, fanout.id));
    if now.len() != certain(model, fanout.id).count() {
        return Some("a row was reissued twice".to_owned());
    }
    let wrong = now.keys().find(|row| before.get(row).is_none_or(|task| succeeded(batches, task)))?;
    Some(format!("row {wrong} was reissued, whose task in {of} succeeded or is not there"))
}

/// Its producer ended, and counts what there is.
pub(super) fn ended(fanout: &Fanout, partitions: &[Partition]) -> Option<String> {
    let [at] = partitions else { return Some("a reissue has one partition".to_owned()) };
    let open = fanout.state == FanoutState::Open;
    let right = fanout.state.cut_short() || at.state == PartitionState::Done && at.rows - at.bad == fanout.total;
    (at.unfinished() || open || !right).then(|| "a reissue did not end as it must".to_owned())
}

/// No row of a fan-out is in two of its reissues, and each that failed is in one of them, unless the last one was cut
/// short, and nobody was told that it had taken on all.
pub(super) async fn all(
    model: &Model,
    batches: &ByTask,
    old: &Fanout,
    fanouts: &Fanouts,
) -> Result<Option<String>, String> {
    let (mut seen, mut cut_short) = (BTreeSet::new(), true);
    for (id, _) in model.produced.iter().filter(|(_, produced)| produced.of == Some(old.id)) {
        let found = fanouts.get(*id).await.map_err(|error| error.to_string())?;
        let Some(found) = found else { continue };
        cut_short &= found.state.cut_short();
        for row in rows_of(model, *id).into_keys() {
            if !seen.insert(row) {
                return Ok(Some(format!("row {row} of {} was reissued twice: {found:?}", old.id)));
            }
        }
    }
    let nothing_left = model.produced.get(&old.id).is_some_and(|produced| produced.nothing_left);
    if cut_short && !nothing_left || old.state.cut_short() {
        return Ok(None);
    }
    let failed = |id: &TaskId| {
        batches.get(id).is_some_and(|batch| batch.members.slot(id).is_some_and(|slot| batch.failed.get(slot)))
    };
    let left = rows_of(model, old.id).into_iter().find(|(row, task)| failed(task) && !seen.contains(row));
    Ok(left.map(|(row, task)| format!("row {row} failed as {task} and was not reissued: {old:?}")))
}
