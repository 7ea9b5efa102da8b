//! Kinds that stop and go on: each change is counted, begins a notice of its own, and the latest one is delivered in the end.

use fanfold::clock::Timestamp;
use fanfold::notice::{Event, Notice};
use fanfold::store::gates::Gates;
use fanfold_local::Engine;
use serde_json::Value;

use crate::check::table;
use crate::clock;
use crate::lock;
use crate::model::Model;
use crate::sim::Sim;

/// What is wrong with a write to a kind's gate.
pub(crate) fn transition(sim: &Sim, kind: &str, earlier: &Value, now: &Value) -> Option<String> {
    let changes =
        |gate: &Value| gate["changes"]["N"].as_str().and_then(|changes| changes.parse::<u64>().ok()).unwrap_or(0);
    let [before, after] = [earlier, now].map(changes);
    let changed = earlier["stopped_at"] != now["stopped_at"];
    if after != before + u64::from(changed) {
        return Some(format!("counts {after} changes after {before}"));
    }
    let over = |gate: &Value| !gate["notified"].is_null() || !gate["undeliverable"].is_null();
    if !changed {
        if let Some(problem) = of_probe(sim, earlier, now).or_else(|| of_places(sim, earlier, now)) {
            return Some(problem);
        }
        return (over(earlier) && !over(now) && earlier["undeliverable"].is_null())
            .then(|| "is to be reported again".to_owned());
    }
    lock(&sim.stats).brought.entry("changes of kinds").and_modify(|changes| *changes += 1).or_insert(1);
    let notify = lock(&sim.model).kinds.get(kind).is_some_and(|kind| kind.notify);
    let begins =
        !now["notice_due"].is_null() && !over(now) && now["notice_tries"].is_null() && now["notice_lease"].is_null();
    (notify != begins).then(|| format!("changed, and is to be reported: {begins}, wanted: {notify}"))
}

/// A probe ends together with its place: whoever made it says how it went, and nobody else says that it is over. Others may take
/// either away only once its lease is over, or where everything has died.
fn of_probe(sim: &Sim, earlier: &Value, now: &Value) -> Option<String> {
    let until = Timestamp(earlier["probing"]["N"].as_str()?.parse().ok()?);
    let lasts = |gate: &Value| gate["probing"] == earlier["probing"];
    let has_place = |gate: &Value| {
        gate["places"]["M"].as_object().is_some_and(|places| places.values().any(|of| *of == earlier["probing"]))
    };
    let over = clock::right(sim.start).plus(sim.plan.skew) >= until || sim.plan.restarts > 0;
    if over || !has_place(earlier) || lasts(now) == has_place(now) {
        return None;
    }
    Some(match lasts(now) {
        true => format!("the probe until {} is over, and nobody says how it went", until.0),
        false => format!("the probe until {} goes on, and counts as over", until.0),
    })
}

/// While a kind stands still, a place is taken for a probe only. Where everything has died, calls that may still work
/// take theirs anew.
fn of_places(sim: &Sim, earlier: &Value, now: &Value) -> Option<String> {
    if earlier["stopped_at"].is_null() || sim.plan.restarts > 0 {
        return None;
    }
    let had = |holder: &String| !earlier["places"]["M"][holder.as_str()].is_null();
    let places = now["places"]["M"].as_object()?;
    let (holder, _) = places.iter().find(|(holder, until)| !had(holder) && **until != now["probing"])?;
    Some(format!("stands still, and {holder} takes a place without a probe"))
}

/// Every kind's latest change was reported where its policy says so, and of no other kind anything.
pub(crate) async fn reported(engine: &Engine, sim: &Sim, model: &Model) -> Result<(), String> {
    let kinds: Vec<&str> = model.kinds.keys().map(String::as_str).collect();
    for gate in
        Gates::new(table(engine, sim, "LOCKS_TABLE")).get_many(&kinds).await.map_err(|error| error.to_string())?
    {
        let notify = model.kinds.get(&gate.kind).is_some_and(|kind| kind.notify);
        if gate.to_notify() || gate.notice_at.is_some() != (notify && gate.notice.change.is_some()) {
            sim.violate(format!("it is still to be reported how a kind stands, or to the wrong receivers: {gate:?}"));
        }
        let notice = Notice::of_kind(&gate);
        let right = model.notices.get(&notice.id) == Some(&notice);
        if gate.notice_at.is_some() && (!right || (gate.notice.given_up.is_some() && !model.hooks.gone(&notice.id))) {
            sim.violate(format!("how a kind stands was not reported, {notice:?}: {gate:?}"));
        }
    }
    for notice in model.notices.values() {
        let kind = match &notice.event {
            Event::KindStopped(stopped) => &stopped.kind,
            Event::KindResumed(resumed) => &resumed.kind,
            Event::FanoutCompleted(_)
            | Event::FanoutCancelled(_)
            | Event::FanoutFailed(_)
            | Event::FanoutExpired(_)
            | Event::FanoutSucceeded(_)
            | Event::FanoutProgress(_)
            | Event::TasksFailed(_) => continue,
        };
        *lock(&sim.stats).brought.entry("notices of kinds").or_default() += 1;
        if !model.kinds.get(kind).is_some_and(|kind| kind.notify) {
            sim.violate(format!("a notice came of a kind whose policy names no receiver: {notice:?}"));
        }
    }
    Ok(())
}
