//! When everything is quiet: did fan-outs end as they must, and was each end reported?

use std::collections::BTreeSet;

use fanfold::ids::{ItemId, TaskId, derived};
use fanfold::notice::{Event, FanoutEnded, Notice};
use fanfold::store::fanouts::{Fanout, FanoutState, Fanouts, Tolerance};
use fanfold::store::groups::{GroupRecord, Groups};
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
    Missing,
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
    missing: u64,
}

/// What became of tasks: the batches of those that were handled, and those that were cancelled.
type Ended<'a> = (&'a ByTask, &'a BTreeSet<TaskId>);

/// What became of an item; none if it is not done.
fn item_end(model: &Model, fanout: &FanoutModel, (batches, cancelled): Ended<'_>, item: &ItemId) -> Option<End> {
    if let Some(failed) = fanout.acked.get(item) {
        return Some(End::failed(*failed));
    }
    if fanout.children.contains_key(item) {
        return model.child_failed(item).map(End::failed);
    }
    let id = TaskId::Item(*item);
    if let Some(batch) = batches.get(&id) {
        let end = |slot| if batch.dropped.get(slot) { End::Missing } else { End::failed(batch.failed.get(slot)) };
        return batch.members.slot(&id).map(end);
    }
    if cancelled.contains(&id) {
        return Some(End::Failed);
    }
    let asked = model.tasks.get(&id).is_some_and(|task| task.accepted);
    let decided = |rival: &TaskId| batches.contains_key(rival) || cancelled.contains(rival);
    (asked && model.rivals(&id).iter().any(decided)).then_some(End::Duplicate)
}

/// A fan-out as it is, beside what its users did.
#[derive(Clone, Copy)]
struct Seen<'a> {
    fanout: &'a Fanout,
    asked: &'a FanoutModel,
    /// Its groups; none of a small one.
    records: &'a [GroupRecord],
}

impl Counts {
    fn of(outcomes: &[Option<End>]) -> Self {
        let count = |end| outcomes.iter().filter(|outcome| **outcome == Some(end)).count() as u64;
        Self {
            total: outcomes.len() as u64,
            succeeded: count(End::Succeeded),
            failed: count(End::Failed),
            duplicates: count(End::Duplicate),
            missing: count(End::Missing),
        }
    }
}

/// Looks at every fan-out.
pub(crate) async fn fanouts(engine: &Engine, sim: &Sim, model: &Model, tasks: Ended<'_>) -> Result<(), String> {
    let fanouts = Fanouts::new(table(engine, sim, "FANOUTS_TABLE"));
    let groups = Groups::new(table(engine, sim, "GROUPS_TABLE"));
    for (id, asked) in &model.fanouts {
        *lock(&sim.stats).brought.entry("fan-outs").or_default() += 1;
        let Some(fanout) = fanouts.get(*id).await.map_err(|error| error.to_string())? else {
            // Its user was refused, which is a violation of its own, or never answered.
            if asked.opened {
                sim.violate(format!("fan-out {id} is gone: {asked:?}"));
            }
            continue;
        };
        let ids: BTreeSet<Uuid> = asked.items.iter().map(|item| item.group).filter(|group| group != id).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let records = groups.get_many(&ids).await.map_err(|error| error.to_string())?;
        let seen = Seen { fanout: &fanout, asked, records: &records };
        let outcomes = outcomes(sim, model, tasks, seen);
        let counts = Counts::of(&outcomes);
        notice(sim, model, seen, &outcomes);
        bits(sim, &fanout, &records, counts);
        tolerated(sim, &fanout, asked, counts);
        crate::nested::followed(sim, &fanout);
        if asked.cancelled_at.is_some() && fanout.state != FanoutState::Cancelled {
            sim.violate(format!("a fan-out that was cancelled is {fanout:?}"));
        }
        let open = groups.open(*id, usize::MAX).await.map_err(|error| error.to_string())?;
        left(sim, seen, &outcomes, &open);
        if records.len() != ids.len() {
            sim.violate(format!("fan-out {id}: of the groups {ids:?} there are {records:?}"));
        }
    }
    other_notices(sim, model);
    Ok(())
}

/// What became of each item of a fan-out; none of those that are not done.
fn outcomes(sim: &Sim, model: &Model, tasks: Ended<'_>, seen: Seen<'_>) -> Vec<Option<End>> {
    let Seen { fanout, asked, records } = seen;
    let cut_short = fanout.state.cut_short();
    let inline = fanout.inline_group();
    let mut outcomes = Vec::with_capacity(asked.items.len());
    for item in &asked.items {
        let end = item_end(model, asked, tasks, item);
        let group = inline.iter().chain(records).find(|group| group.id == item.group);
        let missing = group.is_some_and(|group| group.missing.get(item.index.into()));
        if missing && called_for(tasks.0, item) && sim.gate.is_some() {
            sim.violate(format!("item {item} is missing, although its call ended: {end:?}"));
        }
        // As long as its work may take, its fan-out may be idle.
        let child = !cut_short && model.child(item).is_some_and(|child| child.opened);
        if child && group.is_some_and(|group| !group.children) {
            sim.violate(format!("a fan-out was opened under item {item}, which its group does not know: {group:?}"));
        }
        // Its registration was begun, and never accepted: that another task has its key may have been found, or not.
        let found = |group: &&GroupRecord| group.duplicates.get(item.index.into());
        let found = cut_short && group.filter(found).is_some() && model.rivals(&TaskId::Item(*item)).len() > 1;
        outcomes.push(match end {
            _ if cut_short && missing => Some(End::Missing),
            None if found => Some(End::Duplicate),
            end => end,
        });
    }
    outcomes
}

/// A fan-out ends if and only if it must, and is reported so.
fn notice(sim: &Sim, model: &Model, seen: Seen<'_>, outcomes: &[Option<End>]) {
    let Seen { fanout, asked, .. } = seen;
    let counts = Counts::of(outcomes);
    let done = outcomes.iter().all(Option::is_some);
    let right = match fanout.state {
        FanoutState::Cancelled => asked.cancelling,
        FanoutState::Expired => asked.expired,
        FanoutState::Failed => asked.failing,
        _ => false,
    };
    // Items that no worker has are closed by sweeps, which a calm run has none of.
    let right = right && (done || !sim.plan.calm);
    let ends = asked.sealing && done || right;
    let id = derived::end_notice(fanout.id);
    let notice = model.notices.get(&id);
    let wanted = asked.notice_type(fanout, counts.failed).filter(|_| ends);
    ended(sim, fanout, counts, ends);
    reported(sim, seen, counts, wanted, notice);
    crate::notices::marked(sim, fanout, wanted.is_some(), model.hooks.gone(&id));
    crate::notices::at_rest(sim, model, fanout, asked);
    if let Some(end) = notice.and_then(|notice| notice.event.end()) {
        let items = asked.items.iter().zip(outcomes);
        let missing = items.filter(|(_, outcome)| **outcome == Some(End::Missing)).map(|(item, _)| *item);
        crate::notices::names(sim, end, &missing.collect());
    }
}

/// The bits of items that are left are the items that are not done. `open`: the groups that the index shows as open.
fn left(sim: &Sim, Seen { fanout, records, .. }: Seen<'_>, outcomes: &[Option<End>], open: &[GroupRecord]) {
    let pending: u64 = records.iter().map(|group| group.pending.count()).sum();
    let inline = fanout.inline.as_ref().map_or(0, |inline| inline.pending.count());
    let left = outcomes.iter().filter(|outcome| outcome.is_none()).count() as u64;
    if pending + inline != left || (left == 0 && !open.is_empty()) {
        sim.violate(format!(
            "fan-out {}: {left} items are left, the groups say {records:?}, open: {open:?}",
            fanout.id
        ));
    }
}

/// Notices of ends have their ids, and those that no receiver wanted are in the dead-letter queue.
fn other_notices(sim: &Sim, model: &Model) {
    for (id, notice) in &model.notices {
        if let Some(end) = notice.event.end()
            && *id != derived::end_notice(end.fanout)
        {
            sim.violate(format!("fan-out {} was reported under another id: {notice:?}", end.fanout));
        }
        // Of percentages and kinds, what another change follows is not reported any more.
        let stays = notice.event.end().is_some() || matches!(notice.event, Event::TasksFailed(_));
        if stays && model.hooks.no_letter(id) {
            sim.violate(format!("a notice that its receiver wants no more of left no dead letter: {notice:?}"));
        }
    }
}

/// Whether a call for an item ended, and its outcome was written down.
fn called_for(batches: &ByTask, item: &ItemId) -> bool {
    let id = TaskId::Item(*item);
    batches.get(&id).is_some_and(|batch| batch.members.slot(&id).is_some_and(|slot| !batch.dropped.get(slot)))
}

/// A fan-out fails if more items failed than it tolerates, and otherwise never. Its failures are counted as they are acked.
fn tolerated(sim: &Sim, fanout: &Fanout, asked: &FanoutModel, counts: Counts) {
    let exceeded = asked.exceeded(counts.failed, counts.total);
    let wrong = match fanout.state {
        FanoutState::Failed => !exceeded,
        FanoutState::Open => exceeded && matches!(asked.tolerated, Some(Tolerance::Count(_))),
        FanoutState::Sealed | FanoutState::Completed => exceeded,
        FanoutState::Cancelled | FanoutState::Expired => false,
    };
    let counted = asked.tolerated.is_some() && fanout.inline.is_none();
    if wrong || fanout.failures != if counted { counts.failed } else { 0 } {
        sim.violate(format!("a fan-out of {counts:?} that tolerates {:?} is {fanout:?}", asked.tolerated));
    }
    if fanout.state == FanoutState::Failed {
        *lock(&sim.stats).brought.entry("fan-outs that failed early").or_default() += 1;
    }
}

/// What the bits say of a fan-out that ended is what its header counts.
fn bits(sim: &Sim, fanout: &Fanout, records: &[GroupRecord], counts: Counts) {
    let (inline, mut of_bits) = (fanout.inline_group(), [0; 3]);
    for group in records.iter().chain(inline.as_ref()) {
        for (sum, bits) in of_bits.iter_mut().zip([&group.failed, &group.duplicates, &group.missing]) {
            *sum += bits.count();
        }
    }
    if fanout.ended() && of_bits != [counts.failed, counts.duplicates, counts.missing] {
        sim.violate(format!("the bits of a fan-out of {counts:?} say {of_bits:?}: {fanout:?}, {records:?}"));
    }
}

fn ended(sim: &Sim, fanout: &Fanout, counts: Counts, ends: bool) {
    let of_header = (fanout.failed, fanout.duplicates, fanout.missing, fanout.open_groups);
    let at_the_end = of_header == (counts.failed, counts.duplicates, counts.missing, 0);
    if fanout.ended() != ends || fanout.total != counts.total || (ends && !at_the_end) {
        sim.violate(format!("a fan-out of {counts:?}, to end: {ends}, is {fanout:?}"));
    }
    let counted = fanout.inline.is_some() || fanout.done == fanout.total;
    if fanout.done > fanout.total || (ends && !counted) {
        sim.violate(format!("a fan-out of {counts:?} counts other items of groups that ended: {fanout:?}"));
    }
}

fn reported(sim: &Sim, seen: Seen<'_>, counts: Counts, wanted: Option<&str>, notice: Option<&Notice>) {
    let Seen { fanout, asked, .. } = seen;
    let right = |notice: &Notice| {
        notice.event.end().is_some_and(|end| {
            let FanoutEnded { total, succeeded, failed, duplicates, missing, .. } = *end;
            let said = Counts { total, succeeded, failed, duplicates, missing };
            let about = end.fanout == fanout.id && end.user_key.as_ref() == Some(&asked.user_key);
            let kind = wanted.is_some_and(|wanted| FanoutModel::notice_says(notice, wanted));
            about && kind && said == counts && end.state == fanout.state
        })
    };
    if wanted.is_some() != notice.is_some() || !notice.is_none_or(right) {
        sim.violate(format!("a fan-out of {counts:?}, to be reported: {wanted:?}, was reported by {notice:?}"));
    }
}

/// Every failure was reported where the policy says so, and nothing else was.
pub(crate) fn failures(sim: &Sim, model: &Model, batches: &ByTask) {
    let mut reported: BTreeSet<(Uuid, TaskId)> = BTreeSet::new();
    for notice in model.notices.values() {
        if let Event::TasksFailed(failed) = &notice.event {
            reported.extend(failed.failures.iter().map(|failure| (failed.batch, failure.id)));
        }
    }
    let mut wanted: BTreeSet<(Uuid, TaskId)> = BTreeSet::new();
    for (id, batch) in batches {
        let failed = batch.members.slot(id).is_some_and(|slot| batch.failed.get(slot));
        if failed && model.kinds.get(&batch.lane.kind).is_some_and(|kind| kind.notify) {
            wanted.insert((batch.id, *id));
        }
    }
    for (batch, id) in wanted.symmetric_difference(&reported) {
        sim.violate(format!("the failure of {id} in {batch}, reported: {}", reported.contains(&(*batch, *id))));
    }
}
