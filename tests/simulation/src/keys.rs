//! When everything is quiet: who has which key?

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::AttributeValue;
use fanfold::ids::TaskId;
use fanfold_local::Engine;

use crate::check::ByTask;
use crate::model::Model;
use crate::server::DOOMED;
use crate::sim::Sim;

/// Keys of tasks whose failure was answered are free, and those that span fan-outs of tasks that were not called; those of tasks
/// that failed in silence are kept. One whose attempt began, but that never reached the batch API, may have lost its key while it
/// waited in a fan-out that was cut short. What was cancelled was not called.
pub(crate) async fn released(
    engine: &Engine,
    sim: &Sim,
    model: &Model,
    batches: &ByTask,
    cancelled: &BTreeSet<TaskId>,
) -> Result<(), String> {
    let owners = owners(engine, sim).await?;
    // Where the key is changed, a task may have taken another one, too.
    let keyed = |id: &&TaskId| {
        let kind = model.tasks.get(id).and_then(|task| model.kinds.get(&task.kind));
        kind.is_none_or(|kind| kind.keyed)
    };
    for id in cancelled.iter().filter(keyed).filter(|id| owners.get(id) == Some(&false)) {
        sim.violate(format!("task {id} was cancelled, and keeps its key"));
    }
    for (id, batch) in batches.iter().filter(|(id, _)| !model.may_be_reissued(id)) {
        let kind = model.kinds.get(&batch.lane.kind).filter(|kind| kind.keyed);
        let (Some(kind), Some(slot)) = (kind, batch.members.slot(id)) else { continue };
        let ended = kind.releases && batch.failed.get(slot) || kind.scope.is_some() && batch.dropped.get(slot);
        // If the batch API said of this very task that it failed, no silence before that counts.
        let clear = batch.failed.get(slot) && batch.error(slot) == Some(DOOMED);
        let frees = ended && (clear || !batch.silent.get(slot));
        let kept = owners.get(id) == Some(&false);
        let taken = !owners.contains_key(id) && batch.dropped.get(slot) && !model.was_called(id);
        if frees == kept && !taken {
            sim.violate(format!("task {id} keeps its key: {kept}, it was handled in {batch:?}"));
        }
    }
    Ok(())
}

/// Whether the tasks that have keys released them.
async fn owners(engine: &Engine, sim: &Sim) -> Result<BTreeMap<TaskId, bool>, String> {
    let (client, mut owners, mut start) = (engine.dynamodb(), BTreeMap::new(), None);
    loop {
        let scan = client.scan().table_name(sim.variables.get("TASKS_TABLE").cloned().unwrap_or_default());
        let answer = scan.set_exclusive_start_key(start).send().await.map_err(|error| error.to_string())?;
        for item in answer.items() {
            if let Some(AttributeValue::S(owner)) = item.get("owner")
                && let Ok(owner) = owner.parse()
            {
                owners.insert(owner, item.contains_key("released"));
            }
        }
        start = answer.last_evaluated_key;
        if start.is_none() {
            return Ok(owners);
        }
    }
}
