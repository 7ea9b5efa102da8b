//! When everything is quiet: did fan-outs end as they must, and was everybody told?

use std::collections::BTreeSet;

use fanfold::clock::World;
use fanfold::ids::{ItemId, TaskId, derived};
use fanfold::notice::{Event, FanoutCompleted, Notice};
use fanfold::store::Table;
use fanfold::store::fanouts::{Fanout, Fanouts};
use fanfold::store::groups::Groups;
use fanfold_local::Engine;
use uuid::Uuid;

use crate::check::ByTask;
use crate::lock;
use crate::model::{FanoutModel, Model};
use crate::sim::Sim;

/// What became of an item: whether it failed; none if it is not done.
fn item_failed(model: &Model, fanout: &FanoutModel, batches: &ByTask, item: &ItemId) -> Option<bool> {
    if let Some(failed) = fanout.acked.get(item) {
        return Some(*failed);
    }
    let id = TaskId::Item(*item);
    if let Some(batch) = batches.get(&id) {
        return batch.members.slot(&id).map(|slot| batch.failed.get(slot));
    }
    // A duplicate is dropped, which counts as done.
    let asked = model.tasks.get(&id).is_some_and(|task| task.accepted);
    (asked && model.rivals(&id).iter().any(|rival| batches.contains_key(rival))).then_some(false)
}

/// Looks at every fan-out.
pub(crate) async fn fanouts(engine: &Engine, sim: &Sim, model: &Model, batches: &ByTask) -> Result<(), String> {
    let table =
        |variable: &str| Table::new(engine.dynamodb(), sim.variables.get(variable).cloned().unwrap_or_default());
    let fanouts = Fanouts::new(table("FANOUTS_TABLE"), World::system());
    let groups = Groups::new(table("GROUPS_TABLE"), World::system());
    for (id, asked) in &model.fanouts {
        *lock(&sim.stats).brought.entry("fan-outs").or_default() += 1;
        let Some(fanout) = fanouts.get(*id).await.map_err(|error| error.to_string())? else {
            // Its user was told off, which is a violation of its own.
            continue;
        };
        let outcomes: Vec<Option<bool>> =
            asked.items.iter().map(|item| item_failed(model, asked, batches, item)).collect();
        let failed = outcomes.iter().filter(|outcome| **outcome == Some(true)).count() as u64;
        let done = outcomes.iter().all(Option::is_some);
        let complete = asked.sealing && done;
        let notice = model.notices.get(&derived("fanout.completed", &[id.as_bytes()]));
        ended(sim, &fanout, asked, complete, failed);
        told(sim, &fanout, asked, complete, failed, notice);
        let ids: BTreeSet<Uuid> = asked.items.iter().map(|item| item.group).filter(|group| group != id).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let records = groups.get_many(&ids).await.map_err(|error| error.to_string())?;
        let open = groups.open(*id).await.map_err(|error| error.to_string())?;
        let pending: u64 = records.iter().map(|group| group.pending.count()).sum();
        let left = outcomes.iter().filter(|outcome| outcome.is_none()).count() as u64;
        let inline = fanout.inline.as_ref().map_or(0, |(pending, _)| pending.count());
        if pending + inline != left || records.len() != ids.len() || (done && !open.is_empty()) {
            sim.violate(format!("fan-out {id}: {left} items are left, the groups say {records:?}, open: {open:?}"));
        }
    }
    for (id, notice) in &model.notices {
        if let Event::FanoutCompleted(completed) = &notice.event
            && *id != derived("fanout.completed", &[completed.fanout.as_bytes()])
        {
            sim.violate(format!("fan-out {} was told under another id: {notice:?}", completed.fanout));
        }
    }
    Ok(())
}

fn ended(sim: &Sim, fanout: &Fanout, asked: &FanoutModel, complete: bool, failed: u64) {
    let total = asked.items.len() as u64;
    let counts = fanout.total == total && (!complete || (fanout.failed == failed && fanout.open_groups == 0));
    if fanout.complete() != complete || !counts {
        sim.violate(format!("a fan-out of {total}, {failed} failed, complete: {complete}, is {fanout:?}"));
    }
    if complete && fanout.notify.is_some() != fanout.telling.told.is_some() {
        sim.violate(format!("the end of a fan-out was not marked as told: {fanout:?}"));
    }
}

fn told(sim: &Sim, fanout: &Fanout, asked: &FanoutModel, complete: bool, failed: u64, notice: Option<&Notice>) {
    let total = asked.items.len() as u64;
    let right = |notice: &Notice| match &notice.event {
        Event::FanoutCompleted(FanoutCompleted {
            fanout: id, total: all, succeeded, failed: bad, user_key, ..
        }) => {
            *id == fanout.id
                && (*all, *succeeded, *bad) == (total, total - failed, failed)
                && user_key.as_ref() == Some(&asked.user_key)
        }
        Event::TasksFailed(_) => false,
    };
    let wanted = complete && asked.notify;
    if wanted != notice.is_some() || !notice.is_none_or(right) {
        sim.violate(format!("a fan-out of {total}, {failed} failed, to be told: {wanted}, was told by {notice:?}"));
    }
}

/// Every failure was told where the policy says so, and nothing else was.
pub(crate) fn failures(sim: &Sim, model: &Model, batches: &ByTask) {
    let mut told: BTreeSet<(Uuid, TaskId)> = BTreeSet::new();
    for notice in model.notices.values() {
        if let Event::TasksFailed(failed) = &notice.event {
            told.extend(failed.failures.iter().map(|failure| (failed.batch, failure.id)));
        }
    }
    let mut wanted: BTreeSet<(Uuid, TaskId)> = BTreeSet::new();
    for (id, batch) in batches {
        let failed = batch.members.slot(id).is_some_and(|slot| batch.failed.get(slot));
        if failed && model.kinds.get(&batch.lane.kind).is_some_and(|kind| kind.notify) {
            wanted.insert((batch.id, *id));
        }
    }
    for (batch, id) in wanted.symmetric_difference(&told) {
        sim.violate(format!("the failure of {id} in {batch}, told: {}", told.contains(&(*batch, *id))));
    }
}
