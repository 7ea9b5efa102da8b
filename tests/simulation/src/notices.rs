//! Notices of fan-outs: of progress no more than was done, in its order, and not after the end; of ends those that were chosen, with the
//! names of what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::ids::{ItemId, ItemRange, derived};
use fanfold::notice::{Event, FanoutEnded, FanoutProgress, Notice};
use fanfold::store::fanouts::{Fanout, FanoutState, NotifyOn, ProgressPercentage, ReportedEnd};
use fanfold::tracking::Progress;
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use crate::dice::Dice;
use crate::lock;
use crate::model::{FanoutModel, Model};
use crate::scenario::FanoutPlan;
use crate::sim::Sim;

/// As long as an invocation of `notify` may last: so long after its turn was taken a percentage may be delivered.
const INVOCATION: Duration = Duration::from_secs(60);

/// All of the items, in ten-thousandths.
const ALL: u16 = 10_000;

/// What users heard of fan-outs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// The shares in ten-thousandths, and the end, with when they took it.
    took: BTreeMap<Uuid, BTreeMap<u16, Instant>>,
    /// The shares, or the end, that are being delivered now.
    hears: BTreeMap<Uuid, Vec<u16>>,
}

/// The fan-out that a notice is about, and how far that has come.
fn about(notice: &Notice) -> Option<(Uuid, u16)> {
    match &notice.event {
        Event::FanoutProgress(progress) => Some((progress.fanout, progress.percentage.ten_thousandths())),
        event => event.end().map(|end| (end.fanout, ALL)),
    }
}

impl Heard {
    /// A user took a notice.
    pub(crate) fn takes(&mut self, notice: &Notice) {
        if let Some((fanout, percentage)) = about(notice) {
            self.took.entry(fanout).or_default().entry(percentage).or_insert_with(Instant::now);
        }
    }

    /// A user is called; what is wrong with that where nothing fails.
    pub(crate) fn begins(&mut self, notice: &Notice) -> Option<String> {
        let (fanout, percentage) = about(notice)?;
        let hears = self.hears.entry(fanout).or_default();
        hears.push(percentage);
        (hears.len() > 1).then(|| format!("of fan-out {fanout} these are delivered at once: {hears:?}"))
    }

    /// The call is over.
    pub(crate) fn ends(&mut self, notice: &Notice) {
        let Some((fanout, percentage)) = about(notice) else { return };
        let hears = self.hears.entry(fanout).or_default();
        hears.iter().position(|other| *other == percentage).map(|at| hears.remove(at));
    }

    /// How long it is that a user took what comes after this.
    fn overtaken(&self, notice: &Notice) -> Option<Duration> {
        let (fanout, percentage) = about(notice)?;
        self.took.get(&fanout)?.range(percentage + 1..).map(|(_, at)| at.elapsed()).max()
    }
}

/// A notice is delivered; what is wrong with that, if it is one of a percentage.
pub(crate) fn called(sim: &Sim, notice: &Notice) {
    let Event::FanoutProgress(progress) = &notice.event else { return };
    let model = lock(&sim.model);
    let strict = sim.strictness().exact;
    let late = model.heard.overtaken(notice).filter(|since| strict || *since > INVOCATION);
    let problem = match (late, model.fanouts.get(&progress.fanout)) {
        (Some(since), _) => Some(format!("what comes after it was delivered {since:?} before")),
        (None, None) => Some("no user opened that fan-out".to_owned()),
        (None, Some(known)) => wrong(&model, known, notice, progress),
    };
    drop(model);
    *lock(&sim.stats).brought.entry("notices of progress").or_default() += 1;
    if let Some(problem) = problem {
        sim.violate(format!("progress is reported, but {problem}: {notice:?}"));
    }
}

/// What is wrong with the notice of a percentage: what was done then may be done by now.
fn wrong(model: &Model, known: &FanoutModel, notice: &Notice, progress: &FanoutProgress) -> Option<String> {
    let FanoutProgress { percentage, total, done, succeeded, failed, duplicates, .. } = *progress;
    let asked = known.notify && known.notify_on.progress.contains(&percentage);
    let id = derived::progress_notice(progress.fanout, percentage.ten_thousandths());
    if !asked || notice.id != id || progress.user_key.as_ref() != Some(&known.user_key) {
        return Some("it was not asked for".to_owned());
    }
    if !known.sealing {
        return Some("no user sealed it".to_owned());
    }
    if !reaches(percentage, done, total) || done >= total || succeeded + failed + duplicates != done {
        return Some("it does not add up".to_owned());
    }
    // A user gets the ids of added items after they exist.
    let all = known.items.len() as u64 == total;
    let may_be_done = known.items.iter().filter(|item| model.may_be_done(item)).count() as u64;
    (all && done > may_be_done).then(|| format!("only {may_be_done} may be done"))
}

fn reaches(percentage: ProgressPercentage, done: u64, total: u64) -> bool {
    u128::from(done) * u128::from(ALL) >= u128::from(total) * u128::from(percentage.ten_thousandths())
}

/// When everything is quiet, the largest percentage that a sealed fan-out has reached was reported.
pub(crate) fn at_rest(sim: &Sim, model: &Model, fanout: &Fanout, asked: &FanoutModel) {
    if fanout.state != FanoutState::Sealed || !asked.notify {
        return;
    }
    let done = Progress::of_header(fanout).done;
    let reached = asked.notify_on.progress.iter().rev().find(|percentage| reaches(**percentage, done, fanout.total));
    let Some(percentage) = reached else { return };
    let id = derived::progress_notice(fanout.id, percentage.ten_thousandths());
    if !model.notices.contains_key(&id) && !model.hooks.gone(&id) {
        sim.violate(format!("that {percentage} of a fan-out is done was not reported: {fanout:?}"));
    }
}

/// The end of a fan-out is marked as delivered if it was to be, and as nothing otherwise.
pub(crate) fn marked(sim: &Sim, fanout: &Fanout, wanted: bool, gone: bool) {
    let delivered = fanout.notice.delivered.is_some() || (gone && fanout.notice.given_up.is_some());
    if fanout.ended() && wanted != delivered {
        sim.violate(format!("the end of a fan-out, to be reported: {wanted}, was marked otherwise: {fanout:?}"));
    }
    if fanout.ended() && fanout.notify.is_some() && !wanted {
        *lock(&sim.stats).brought.entry("ends without a notice by choice").or_default() += 1;
    }
}

/// The notice of an end names missing items, each once, and counts the others.
pub(crate) fn names(sim: &Sim, end: &FanoutEnded, missing: &BTreeSet<ItemId>) {
    let Some(missing_items) = &end.missing_items else {
        if end.missing > 0 {
            sim.violate(format!("what is missing is not named: {end:?}"));
        }
        return;
    };
    let mut named = BTreeSet::new();
    let mut right = true;
    for name in &missing_items.items {
        let range = name
            .parse::<ItemRange>()
            .or_else(|_| name.parse::<ItemId>().map(|first| ItemRange { first, last: first.index }));
        let Ok(ItemRange { first, last }) = range else {
            right = false;
            continue;
        };
        right &= (first.index..=last).all(|index| named.insert(ItemId { index, ..first }));
    }
    if !right || !named.is_subset(missing) || named.len() as u64 + missing_items.more != end.missing {
        sim.violate(format!("of {missing:?} other items are named as missing: {end:?}"));
    }
    // So few groups are all looked at, if the index shows them.
    if sim.strictness().exact
        && missing_items.more > 0
        && missing_items.items.len() < fanfold::limits::MISSING_RANGES_NAMED_MAX
    {
        sim.violate(format!("there was room to name all that is missing: {end:?}"));
    }
}

impl FanoutModel {
    /// The type of the notice of an end, if there is to be one.
    pub(crate) fn notice_type(&self, fanout: &Fanout, failed: u64) -> Option<&'static str> {
        use ReportedEnd::{Cancelled, Completed, Expired, Failed, Succeeded};
        let chosen = |end| self.notify_on.ends.as_ref().map_or(end != Succeeded, |ends| ends.contains(&end));
        let (end, name) = match fanout.state {
            FanoutState::Completed if failed == 0 && chosen(Succeeded) => (Succeeded, "fanout.succeeded"),
            FanoutState::Completed => (Completed, "fanout.completed"),
            FanoutState::Failed => (Failed, "fanout.failed"),
            FanoutState::Cancelled => (Cancelled, "fanout.cancelled"),
            FanoutState::Expired => (Expired, "fanout.expired"),
            FanoutState::Open | FanoutState::Sealed => return None,
        };
        (self.notify && chosen(end)).then_some(name)
    }

    /// Whether a notice of its end says so.
    pub(crate) fn notice_says(notice: &Notice, wanted: &str) -> bool {
        json!(notice.event)["type"] == wanted
    }
}

impl Model {
    /// Whether a message asks for notices of a fan-out whose progress is reported.
    pub(crate) fn reports_progress(&self, message: &str) -> bool {
        let message: serde_json::Value = serde_json::from_str(message).unwrap_or_default();
        let fanout = message["fanout"].as_str().and_then(|id| self.fanouts.get(&id.parse().ok()?));
        fanout.is_some_and(|fanout| fanout.notify && !fanout.notify_on.progress.is_empty())
    }
}

impl FanoutPlan {
    /// Draws what is reported of it, and of the fan-outs under it.
    pub(crate) fn choose(&mut self, dice: &Dice) {
        if self.notify && dice.chance(7_000) {
            let shares = [1, 1_000, 2_500, 3_333, 5_000, 7_500, 9_000, 9_999].map(ProgressPercentage::new);
            self.notify_on.progress = shares.into_iter().flatten().filter(|_| dice.chance(5_000)).collect();
        }
        if self.notify && dice.chance(3_000) {
            let ends = ReportedEnd::ALL.into_iter().filter(|_| dice.chance(5_000)).collect();
            self.notify_on = NotifyOn { ends: Some(ends), ..self.notify_on.clone() };
        }
        self.children.iter_mut().for_each(|child| child.choose(dice));
    }
}
