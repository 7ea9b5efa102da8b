//! What must hold for estimated fan-outs: each ends once, never before its counters say so, and counts nothing twice that came once.

use fanfold::ids::derived;
use fanfold::notice::{FanoutEnded, Notice};
use fanfold::store::fanouts::{Fanout, FanoutState, Fanouts, Tolerance};
use fanfold_local::Engine;
use serde_json::Value;
use uuid::Uuid;

use super::EstimatedModel;
use crate::check::table;
use crate::lock;
use crate::model::Model;
use crate::request::{Request, text};
use crate::sim::Sim;

/// Whether nothing may be counted any more by now.
pub(crate) fn may_be_over(asked: &EstimatedModel) -> bool {
    asked.sealing || asked.cancelling || asked.tolerated.is_some() || asked.idle_limit.is_some()
}

/// Whether what was answered with a fan-out has counted for certain. What adds is refused if it does not count. What only
/// counts items as done may count nothing if the fan-out is over.
pub(crate) fn has_counted([add, ..]: [u32; 3], fanout: &Fanout) -> bool {
    add > 0 || !(fanout.ended() || fanout.nothing_left())
}

/// How many are missing: those that were added and not done when it was cut short, whichever way.
fn missing(state: FanoutState, total: u64, done: u64) -> u64 {
    match state {
        FanoutState::Cancelled | FanoutState::Failed | FanoutState::Expired => total.saturating_sub(done),
        FanoutState::Open | FanoutState::Sealed | FanoutState::Completed => 0,
    }
}

fn exceeded(asked: &EstimatedModel, failed: u64, total: u64) -> bool {
    match asked.tolerated {
        None => false,
        Some(Tolerance::Count(most)) => failed > most,
        Some(Tolerance::Percentage(share)) => failed * 10_000 > total * u64::from(share),
    }
}

/// What is wrong with how one ended.
pub(crate) fn wrong_end(asked: &EstimatedModel, fanout: &Fanout) -> Option<&'static str> {
    let failing = exceeded(asked, fanout.failed, fanout.total);
    let right = match fanout.state {
        FanoutState::Open | FanoutState::Sealed => true,
        FanoutState::Completed => asked.sealing && fanout.done >= fanout.total && !failing,
        FanoutState::Cancelled => asked.cancelling,
        FanoutState::Failed => failing,
        FanoutState::Expired => asked.idle_limit.is_some(),
    };
    (!right).then_some("ended otherwise than it was counted")
}

fn number(header: &Value, name: &str) -> u64 {
    header[name]["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// What is wrong with a header that is now as `now` and was as `earlier` before its latest write.
pub(crate) fn transition(sim: &Sim, key: &str, earlier: &Value, now: &Value) -> Option<String> {
    let asked = key.parse().ok().and_then(|id: Uuid| lock(&sim.model).estimated.get(&id).cloned());
    let Some(asked) = asked else { return Some("was opened by no user".to_owned()) };
    let counts = |header: &Value| ["total", "done", "failed"].map(|name| number(header, name));
    let (before, after) = (counts(earlier), counts(now));
    if before.iter().zip(&after).any(|(before, after)| after < before) {
        return Some("counted back".to_owned());
    }
    let (was, is) = (text(earlier, "state"), text(now, "state"));
    let drained = was == "sealed" && before[1] >= before[0];
    if before != after && (drained || !earlier["ended_at"].is_null()) {
        return Some("was counted after its end".to_owned());
    }
    if is == was {
        return None;
    }
    let limit = asked.idle_limit.and_then(|limit| if was == "open" { limit.open } else { limit.sealed });
    let idle = number(now, "updated_at").saturating_sub(number(earlier, "updated_at"));
    let right = match is {
        "sealed" => was == "open" && asked.sealing,
        "completed" => drained,
        "failed" => exceeded(&asked, after[2], after[0]),
        "cancelled" => asked.cancelling,
        "expired" => limit.is_some_and(|limit| u128::from(idle) >= limit.0.as_millis()),
        _ => false,
    };
    (!right || (was != "open" && was != "sealed")).then(|| format!("became {is} too early"))
}

/// What is wrong with a write that is applied: a worker counts for each request once, with or without an answer. Another request is made
/// at another time, which the write says.
pub(crate) fn again(sim: &Sim, worker: &str, request: &Request) -> Option<String> {
    let values = &request.body["ExpressionAttributeValues"];
    let counts = request.operation == "UpdateItem" && text(values, ":mode") == "estimated";
    let first = counts && lock(&sim.model).counted.insert((worker.to_owned(), request.body.to_string()));
    (counts && !first).then(|| format!("{worker} counts again what it has counted: {}", request.body))
}

/// What is wrong with the notice of an end, given the header that it is of.
pub(crate) fn notice(end: &FanoutEnded, header: &Value) -> Option<String> {
    let [total, done, failed] = ["total", "done", "failed"].map(|name| number(header, name));
    let missing = missing(end.state, total, done);
    let right = [end.total, end.succeeded, end.failed, end.missing] == [total, done - failed, failed, missing];
    (!right).then(|| format!("an estimated fan-out ended as {end:?} by its notice, its header is {header}"))
}

/// What is wrong with how one is shown.
pub(crate) fn shown(model: &Model, body: &Value) -> Option<String> {
    let number = |name: &str| body[name].as_u64().unwrap_or(u64::MAX);
    let id: Option<Uuid> = body["id"].as_str().and_then(|id| id.parse().ok());
    let Some(asked) = id.and_then(|id| model.estimated.get(&id)) else {
        return Some("is no fan-out of a user".to_owned());
    };
    let counts = ["total", "done", "failed"].map(number);
    let state: Option<FanoutState> = body["state"].as_str().and_then(|state| state.parse().ok());
    let beyond = !asked.by_queue && (0..3).any(|at| counts[at] > asked.most[at]);
    if beyond
        || counts[2] > counts[1]
        || number("succeeded") != counts[1] - counts[2]
        || state.is_none_or(|state| number("missing") != missing(state, counts[0], counts[1]))
        || body["progress"] != "estimated"
    {
        return Some(format!("is not what was counted: {asked:?}"));
    }
    let early = body["complete"] == true && !(asked.sealing && counts[1] >= counts[0]);
    early.then(|| "is complete too early".to_owned())
}

/// When everything is quiet: nothing is left to be ended, nothing was counted twice that came once, and each end was reported.
pub(crate) async fn rested(engine: &Engine, sim: &Sim, model: &Model) -> Result<(), String> {
    let fanouts = Fanouts::new(table(engine, sim, "FANOUTS_TABLE"));
    for (id, asked) in &model.estimated {
        let Some(fanout) = fanouts.get(*id).await.map_err(|error| error.to_string())? else {
            // Its user was refused, which is a violation of its own, or never answered.
            if asked.opened {
                sim.violate(format!("estimated fan-out {id} is gone: {asked:?}"));
            }
            continue;
        };
        let mut problems = vec![wrong_end(asked, &fanout), wrong_counts(asked, &fanout)];
        problems.push((fanout.nothing_left() || fanout.to_fail()).then_some("is still to be ended"));
        problems.push((asked.cancelled && fanout.state != FanoutState::Cancelled).then_some("was cancelled"));
        problems.push(wrong_notice(model, *id, asked, &fanout));
        for problem in problems.into_iter().flatten() {
            sim.violate(format!("an estimated fan-out {problem}: {fanout:?}, {asked:?}"));
        }
        let brought = match fanout.state {
            FanoutState::Completed => "estimated that completed",
            _ if fanout.ended() => "estimated that ended otherwise",
            _ => "estimated that did not end",
        };
        *lock(&sim.stats).brought.entry(brought).or_default() += 1;
    }
    Ok(())
}

/// Each count that was answered counts, and only messages count twice.
fn wrong_counts(asked: &EstimatedModel, fanout: &Fanout) -> Option<&'static str> {
    let counts = [fanout.total, fanout.done, fanout.failed];
    let lost = (0..3).any(|at| counts[at] < asked.least[at]);
    let beyond = !asked.by_queue && (0..3).any(|at| counts[at] > asked.most[at]);
    let judged = fanout.failures != if asked.tolerated.is_some() { fanout.failed } else { 0 };
    (lost || beyond || judged).then_some("counts something else than was counted")
}

fn wrong_notice(model: &Model, id: Uuid, asked: &EstimatedModel, fanout: &Fanout) -> Option<&'static str> {
    let wanted = fanout.ended() && asked.notify;
    let notice = model.notices.get(&derived::end_notice(id));
    let gone = model.hooks.gone(&derived::end_notice(id)) && fanout.notice.given_up.is_some();
    let right = |notice: &Notice| {
        notice.event.end().is_some_and(|end| {
            let left = end.missing == missing(fanout.state, fanout.total, fanout.done);
            left && *end == FanoutEnded::of(fanout) && end.user_key.as_ref() == Some(&asked.user_key)
        })
    };
    let delivered = fanout.notice.delivered.is_some() || gone;
    (wanted != notice.is_some() || !notice.is_none_or(right) || wanted != delivered).then_some("was reported otherwise")
}
