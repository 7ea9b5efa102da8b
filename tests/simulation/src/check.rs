//! When everything is quiet: does all that DESIGN.md section 8 promises hold?

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use fanfold::aws::Table;
use fanfold::bits::Bits;
use fanfold::clock::World;
use fanfold::grouping::BundleState;
use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use fanfold::results::Kept;
use fanfold::store::batches::{Batch, BatchStatus, Batches};
use fanfold::store::locks::{Locks, is_lane};
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold_local::Engine;
use uuid::Uuid;

use crate::lock;
use crate::model::{Model, Said};
use crate::scenario::Scenario;
use crate::sim::Sim;

/// Stores what the scenario begins with.
pub(crate) async fn put_policies(engine: &Engine, sim: &Sim, scenario: &Scenario) -> Result<(), String> {
    let policies = Policies::new(table(engine, sim, "POLICIES_TABLE"));
    for (_, policy) in scenario.all_kinds().filter_map(|plan| plan.versions.first()) {
        policy.check().map_err(|error| error.to_string())?;
        policies.put(policy).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// One of the tables.
pub(crate) fn table(engine: &Engine, sim: &Sim, variable: &str) -> Table {
    Table::new(engine.dynamodb(), sim.variables.get(variable).cloned().unwrap_or_default(), World::system())
}

/// The keys of a table.
pub(crate) async fn keys(engine: &Engine, sim: &Sim, variable: &str, key: &str) -> Result<Vec<String>, String> {
    let (client, mut keys, mut start) = (engine.dynamodb(), Vec::new(), None);
    loop {
        let scan = client.scan().table_name(sim.variables.get(variable).cloned().unwrap_or_default());
        let answer = scan.set_exclusive_start_key(start).send().await.map_err(|error| error.to_string())?;
        for item in answer.items() {
            if let Some(AttributeValue::S(value)) = item.get(key) {
                keys.push(value.clone());
            }
        }
        start = answer.last_evaluated_key;
        if start.is_none() {
            keys.sort();
            return Ok(keys);
        }
    }
}

/// Looks at every table.
pub(crate) async fn everything(engine: &Engine, sim: &Sim) -> Result<(), String> {
    locks(engine, sim).await?;
    let batches = batches(engine, sim).await?;
    let cancelled = tasks(engine, sim, &batches).await?;
    let model = std::mem::take(&mut *lock(&sim.model));
    handled(sim, &model, &batches, &cancelled);
    outcomes(sim, &model, &batches);
    successes(sim, &model, &batches);
    model.later.closed_was_called(&batches).into_iter().for_each(|problem| sim.violate(problem));
    results(engine, sim, &model, &batches).await?;
    crate::control::rested(engine, sim, &model, &cancelled).await?;
    crate::resets::handled(sim, &model, &batches, &cancelled);
    crate::keys::released(engine, sim, &model, &batches, &cancelled).await?;
    crate::ends::fanouts(engine, sim, &model, (&batches, &cancelled)).await?;
    crate::ends::failures(sim, &model, &batches);
    crate::listed::complete(engine, sim).await?;
    crate::estimated::check::rested(engine, sim, &model).await?;
    crate::kinds::reported(engine, sim, &model).await?;
    crate::produced::check(engine, sim, &model, &batches).await?;
    Ok(())
}

async fn locks(engine: &Engine, sim: &Sim) -> Result<(), String> {
    let locks = Locks::new(table(engine, sim, "LOCKS_TABLE"));
    let keys = keys(engine, sim, "LOCKS_TABLE", "lane").await?;
    for lane in keys.into_iter().filter(|key| is_lane(key)) {
        let lane: Lane = lane.parse().map_err(|error: fanfold::lane::LaneError| error.to_string())?;
        let lock = locks.get(&lane).await.map_err(|error| error.to_string())?;
        if !lock.idle() {
            sim.violate(format!("the lane is not free: {lock:?}"));
        }
    }
    Ok(())
}

/// The batches by member.
pub(crate) type ByTask = BTreeMap<TaskId, Batch>;

async fn batches(engine: &Engine, sim: &Sim) -> Result<ByTask, String> {
    let batches = Batches::new(table(engine, sim, "BATCHES_TABLE"));
    let ids: Vec<Uuid> =
        keys(engine, sim, "BATCHES_TABLE", "id").await?.iter().filter_map(|id| id.parse().ok()).collect();
    let mut by_task = ByTask::new();
    for batch in batches.get_many(&ids).await.map_err(|error| error.to_string())? {
        *lock(&sim.stats).brought.entry("batches").or_default() += 1;
        let most = lock(&sim.model).kinds.get(&batch.lane.kind).map_or(0, |kind| kind.max_batch);
        let twice = |one: &Bits, other: &Bits| !one.and(other).is_zero();
        let both = twice(&batch.succeeded, &batch.failed)
            || twice(&batch.dropped, &batch.succeeded)
            || twice(&batch.dropped, &batch.failed);
        if batch.status != BatchStatus::Done || !batch.unsettled().is_empty() || both || batch.members.len() > most {
            sim.violate(format!("a batch did not end as it must, {most} members are allowed: {batch:?}"));
        }
        for id in batch.members.ids() {
            if let Some(other) = by_task.insert(*id, batch.clone()) {
                sim.violate(format!("task {id} is a member of two batches, {} and {}", other.id, batch.id));
            }
        }
    }
    Ok(by_task)
}

/// Every member that succeeded has the result that the batch API returned for it in a call whose answer counted, if results are
/// kept, and no other has one.
async fn results(engine: &Engine, sim: &Sim, model: &Model, batches: &ByTask) -> Result<(), String> {
    let store = Batches::new(table(engine, sim, "BATCHES_TABLE"));
    for (id, batch) in batches {
        let Some(slot) = batch.members.slot(id) else { continue };
        let kept = store.results(batch, [slot]).of(slot).await.map_err(|error| error.to_string())?;
        let due = batch.succeeded.get(slot) && model.kinds.get(&batch.lane.kind).is_some_and(|kind| kind.keeps);
        match (due, &kept) {
            (true, kept) => {
                *lock(&sim.stats).brought.entry("results").or_default() += 1;
                let shown = kept.as_ref().map(Kept::text);
                model.wrong_result(batch.id, id, shown).into_iter().for_each(|problem| sim.violate(problem));
            }
            (false, Some(kept)) => sim.violate(format!("task {id} has the result {kept:?}: {batch:?}")),
            (false, None) => {}
        }
    }
    Ok(())
}

/// Every stored task is a member of the batch that it names, in the lane that it names, or it was cancelled. Returns those.
async fn tasks(engine: &Engine, sim: &Sim, batches: &ByTask) -> Result<BTreeSet<TaskId>, String> {
    let tasks = Tasks::new(table(engine, sim, "TASKS_TABLE"));
    let (mut stored, mut cancelled) = (BTreeSet::new(), BTreeSet::new());
    let ids = keys(engine, sim, "TASKS_TABLE", "id").await?;
    let bundles: Vec<Uuid> =
        ids.iter().filter_map(|id| id.strip_prefix("bundle:")).filter_map(|id| id.parse().ok()).collect();
    *lock(&sim.stats).brought.entry("bundles").or_default() += bundles.len() as u64;
    for bundle in tasks.bundles(&bundles, true).await.map_err(|error| error.to_string())?.values() {
        if !bundle.free.is_zero() || !matches!(bundle.state, BundleState::Taken | BundleState::Dead) {
            sim.violate(format!("a bundle did not end: {bundle:?}"));
        }
    }
    for id in ids {
        let Ok(id) = id.parse::<TaskId>() else { continue };
        let task = tasks.get(&id).await.map_err(|error| error.to_string())?;
        if task.as_ref().is_some_and(|task| task.duplicate_of.is_some()) {
            continue;
        }
        stored.insert(id);
        let misplaced = task.as_ref().and_then(|task| lock(&sim.model).misplaced(task));
        misplaced.into_iter().for_each(|problem| sim.violate(problem));
        let batch = batches.get(&id);
        if task.as_ref().is_some_and(|task| task.cancelled) {
            cancelled.insert(id);
            if batch.is_some() {
                sim.violate(format!("task {id} was cancelled, and handled in {batch:?}"));
            }
            continue;
        }
        let agree = |task: &fanfold::store::tasks::Task| {
            batch.is_some_and(|batch| task.batch == Some(batch.id) && task.lane == batch.lane)
        };
        if !task.as_ref().is_some_and(agree) {
            sim.violate(format!("task {id} is {task:?}, it was handled in {batch:?}"));
        }
    }
    for id in batches.keys().filter(|id| !stored.contains(*id)) {
        sim.violate(format!("task {id} was handled, but is not stored"));
    }
    Ok(cancelled)
}

/// Every accepted task, or the one that has its key, was handled once, or it was cancelled.
fn handled(sim: &Sim, model: &Model, batches: &ByTask, cancelled: &BTreeSet<TaskId>) {
    for (id, task) in &model.tasks {
        let rivals = model.rivals(id);
        let handled: Vec<&TaskId> = rivals.iter().filter(|id| batches.contains_key(*id)).collect();
        // All but one must have failed, and their keys be free. Whoever reissues what has no clear answer wants it called again.
        let handled: Vec<&TaskId> = handled.into_iter().filter(|id| !model.may_be_reissued(id)).collect();
        let reissued = rivals.iter().any(|id| model.may_be_reissued(id) && batches.contains_key(id));
        let kept =
            handled.iter().filter(|id| !model.may_be_released(id) && !model.may_be_released_to_others(id)).count();
        let worked = handled.iter().filter(|id| model.said.get(id).is_some_and(|said| said.succeeded)).count();
        let handled = handled.len();
        let never = handled == 0 && !reissued && rivals.is_disjoint(cancelled) && !model.ended_before_its_tasks(id);
        if kept > 1 || worked > 1 || (never && task.accepted) {
            sim.violate(format!(
                "task {id} (accepted: {}) or one with its key was handled {handled} times, {worked} of them worked",
                task.accepted
            ));
        }
    }
}

/// Every success that was written down stands, also where attempts were used up after it.
fn successes(sim: &Sim, model: &Model, batches: &ByTask) {
    for id in model.recorded.iter().chain(model.later.recorded.keys()) {
        let batch = batches.get(id);
        if !batch.is_some_and(|batch| batch.members.slot(id).is_some_and(|slot| batch.succeeded.get(slot))) {
            sim.violate(format!("the success of task {id} was recorded, and is not in {batch:?}"));
        }
    }
}

/// Every accepted task was handled as it was asked for, and ended as the batch API said.
fn outcomes(sim: &Sim, model: &Model, batches: &ByTask) {
    for (id, content) in &model.handled_as {
        let asked = |id: &TaskId| model.tasks.get(id).is_some_and(|task| task.content == *content);
        if !model.rivals(id).iter().any(asked) {
            sim.violate(format!("task {id} was handled as {content}, which its key was not accepted for"));
        }
    }
    for (id, batch) in batches {
        if !model.tasks.contains_key(id) {
            sim.violate(format!("task {id} was handled, but nobody asked for it"));
        }
        let Some(slot) = batch.members.slot(id) else { continue };
        let Said { succeeded, failed } = model.said.get(id).copied().unwrap_or_default();
        let most = model.kinds.get(&batch.lane.kind).map_or(0, |kind| kind.max_attempts);
        if batch.dropped.get(slot) {
            let TaskId::Item(item) = id else { continue };
            if !model.may_be_missing(item) {
                sim.violate(format!("task {id} was dropped, and nobody cancelled its fan-out: {batch:?}"));
            }
            continue;
        }
        let error = batch.error(slot).unwrap_or_default();
        let lost = error.contains("workers were lost");
        let right = if batch.failed.get(slot) { failed || lost || model.used_up(id) } else { succeeded };
        // A batch that was split is called for each of its parts: there are fewer than twice as many as members.
        let calls = if model.split.contains(&batch.id) { most * (2 * batch.members.len() as u32) } else { most };
        let others = error.contains("poisoned by") && !error.contains(&id.to_string());
        // A fault that may pass is not split if a call may have worked, or the policy allows a single attempt.
        let unsplit = error.starts_with("gave up after") && (most == 1 || batch.silent.get(slot));
        if others && !unsplit && batch.members.len() > 1 {
            sim.violate(format!("task {id} failed because of another member: {batch:?}"));
        }
        if !right || batch.ended - batch.refused > calls || error.contains("record is gone") {
            sim.violate(format!(
                "the batch API said of {id} {:?}, its batch says {batch:?}",
                Said { succeeded, failed }
            ));
        }
    }
}
