//! When everything is quiet: did fan-outs end as they must, and was everybody told?

use std::collections::BTreeSet;

use fanfold::ids::{ItemId, TaskId, derived};
use fanfold::notice::{Event, FanoutCompleted, Notice};
use fanfold::store::fanouts::{Fanout, Fanouts};
use fanfold::store::groups::Groups;
use fanfold_local::Engine;
use uuid::Uuid;

use crate::check::{ByTask, table};
use crate::lock;
use crate::model::{FanoutModel, Model};
use crate::sim::Sim;

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Succeeded,
    Failed,
    Duplicate,
}

impl End {
    fn failed(failed: bool) -> Self {
        if failed { Self::Failed } else { Self::Succeeded }
    }
}

/// How many items ended in which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    total: u64,
    succeeded: u64,
    failed: u64,
    duplicates: u64,
}

/// What became of an item; none if it is not done.
fn item_end(model: &Model, fanout: &FanoutModel, batches: &ByTask, item: &ItemId) -> Option<End> {
    if let Some(failed) = fanout.acked.get(item) {
        return Some(End::failed(*failed));
    }
    let id = TaskId::Item(*item);
    if let Some(batch) = batches.get(&id) {
        return batch.members.slot(&id).map(|slot| End::failed(batch.failed.get(slot)));
    }
    let asked = model.tasks.get(&id).is_some_and(|task| task.accepted);
    (asked && model.rivals(&id).iter().any(|rival| batches.contains_key(rival))).then_some(End::Duplicate)
}

/// Looks at every fan-out.
pub(crate) async fn fanouts(engine: &Engine, sim: &Sim, model: &Model, batches: &ByTask) -> Result<(), String> {
    let fanouts = Fanouts::new(table(engine, sim, "FANOUTS_TABLE"));
    let groups = Groups::new(table(engine, sim, "GROUPS_TABLE"));
    for (id, asked) in &model.fanouts {
        *lock(&sim.stats).brought.entry("fan-outs").or_default() += 1;
        let Some(fanout) = fanouts.get(*id).await.map_err(|error| error.to_string())? else {
            // Its user was told off, which is a violation of its own.
            continue;
        };
        let outcomes: Vec<Option<End>> = asked.items.iter().map(|item| item_end(model, asked, batches, item)).collect();
        let count = |end| outcomes.iter().filter(|outcome| **outcome == Some(end)).count() as u64;
        let counts = Counts {
            total: asked.items.len() as u64,
            succeeded: count(End::Succeeded),
            failed: count(End::Failed),
            duplicates: count(End::Duplicate),
        };
        let done = outcomes.iter().all(Option::is_some);
        let complete = asked.sealing && done;
        let notice = model.notices.get(&derived::completed_notice(*id));
        let gone = model.hooks.gone(&derived::completed_notice(*id));
        ended(sim, &fanout, counts, complete, gone);
        told(sim, &fanout, asked, complete, counts, notice);
        let ids: BTreeSet<Uuid> = asked.items.iter().map(|item| item.group).filter(|group| group != id).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let records = groups.get_many(&ids).await.map_err(|error| error.to_string())?;
        let open = groups.open(*id).await.map_err(|error| error.to_string())?;
        let pending: u64 = records.iter().map(|group| group.pending.count()).sum();
        let left = outcomes.iter().filter(|outcome| outcome.is_none()).count() as u64;
        let inline = fanout.inline.as_ref().map_or(0, |inline| inline.pending.count());
        if pending + inline != left || records.len() != ids.len() || (done && !open.is_empty()) {
            sim.violate(format!("fan-out {id}: {left} items are left, the groups say {records:?}, open: {open:?}"));
        }
    }
    for (id, notice) in &model.notices {
        if let Event::FanoutCompleted(completed) = &notice.event
            && *id != derived::completed_notice(completed.fanout)
        {
            sim.violate(format!("fan-out {} was told under another id: {notice:?}", completed.fanout));
        }
    }
    Ok(())
}

fn ended(sim: &Sim, fanout: &Fanout, counts: Counts, complete: bool, gone: bool) {
    let at_the_end = (fanout.failed, fanout.duplicates, fanout.open_groups) == (counts.failed, counts.duplicates, 0);
    if fanout.complete() != complete || fanout.total != counts.total || (complete && !at_the_end) {
        sim.violate(format!("a fan-out of {counts:?}, complete: {complete}, is {fanout:?}"));
    }
    let told = fanout.notice.delivered.is_some() || (gone && fanout.notice.given_up.is_some());
    if complete && fanout.notify.is_some() != told {
        sim.violate(format!("the end of a fan-out was not marked as told: {fanout:?}"));
    }
}

fn told(sim: &Sim, fanout: &Fanout, asked: &FanoutModel, complete: bool, counts: Counts, notice: Option<&Notice>) {
    let right = |notice: &Notice| match &notice.event {
        Event::FanoutCompleted(FanoutCompleted {
            fanout: id, total, succeeded, failed, duplicates, user_key, ..
        }) => {
            let told = Counts { total: *total, succeeded: *succeeded, failed: *failed, duplicates: *duplicates };
            *id == fanout.id && told == counts && user_key.as_ref() == Some(&asked.user_key)
        }
        Event::TasksFailed(_) | Event::KindStopped(_) | Event::KindResumed(_) => false,
    };
    let wanted = complete && asked.notify;
    if wanted != notice.is_some() || !notice.is_none_or(right) {
        sim.violate(format!("a fan-out of {counts:?}, to be told: {wanted}, was told by {notice:?}"));
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
