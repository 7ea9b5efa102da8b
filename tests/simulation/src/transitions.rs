//! What a record may never do, whichever step writes it: looked at on every write.

mod lanes;
mod tasks;

use aws_smithy_types::base64;
use fanfold::bits::Bits;
use fanfold::ids::{ItemId, TaskId};
use fanfold::lane::Lane;
use fanfold::limits::{IDLE_OPEN, IDLE_SEALED, KEY_RETENTION, RETENTION};
use fanfold::store::fanouts::Tolerance;
use fanfold::store::places::Party;
use serde_json::Value;
use uuid::Uuid;

pub(crate) use self::lanes::resigned;
pub(crate) use self::tasks::{buried, freed};
use crate::lock;
use crate::request::{Record, fanout_of, text};
use crate::sim::Sim;
use crate::{estimated, kinds, listed, produced};

/// What is wrong with a record that is now as `now` and was as `earlier` before its latest write.
pub(crate) fn check(sim: &Sim, record: &Record, earlier: Option<Option<Value>>, now: Option<&Value>) -> Option<String> {
    let now = now?;
    let (table, key) = record;
    if table == "LocksTable" && Party::kind(key).is_none() {
        let lane: Lane = key.parse().ok()?;
        let flying = now["in_flight"]["BS"].as_array().map_or(0, Vec::len);
        let most = lock(&sim.model).kinds.get(&lane.kind).map_or(usize::MAX, |kind| kind.max_in_flight);
        if flying > most {
            return Some(format!("lane {key} has {flying} batches in flight, {most} are allowed"));
        }
    }
    if table == "TasksTable" && text(now, "status") == "duplicate" {
        lock(&sim.model).dropped.extend(key.parse::<TaskId>());
    }
    let lost = match table.as_str() {
        "LocksTable" if Party::kind(key).is_none() => lanes::is_lost(now),
        "TasksTable" => tasks::is_lost(now),
        "ProducersTable" => produced::is_lost(&lock(&sim.model), key, now),
        _ => None,
    };
    if let Some(lost) = lost {
        return Some(format!("{table} {key} {lost}: {now}"));
    }
    let earlier = earlier??;
    let problem = match table.as_str() {
        "LocksTable" => match Party::kind(key) {
            Some(kind) => kinds::transition(sim, kind, &earlier, now),
            None => lanes::leadership(&earlier, now),
        },
        "TasksTable" if key.starts_with("bundle:") => tasks::bundle(&earlier, now),
        "TasksTable" => tasks::task(&earlier, now).or_else(|| tasks::owner(sim, key, &earlier, now)),
        "BatchesTable" => batch(&earlier, now),
        "FanoutsTable" => {
            let changed = if text(now, "mode") == "estimated" {
                estimated::check::transition(sim, key, &earlier, now)
            } else {
                let decided = || fails(sim, key, &earlier, now).or_else(|| expires(sim, key, &earlier, now));
                fanout(&earlier, now).or_else(decided)
            };
            changed.or_else(|| listed::entry(now)).or_else(|| kept(now))
        }
        "GroupsTable" => group(&earlier, now),
        "ProducersTable" => produced::transition(&earlier, now),
        _ => None,
    };
    let problem = problem.or_else(|| early(sim, record, &earlier, now));
    problem.map(|problem| format!("{table} {key} {problem}: it was {earlier} and is {now}"))
}

/// No bit may be cleared before its item can be done.
fn early(sim: &Sim, (table, key): &Record, earlier: &Value, now: &Value) -> Option<String> {
    let fanout = match table.as_str() {
        "GroupsTable" => fanout_of(earlier)?,
        "FanoutsTable" => key.parse().ok()?,
        _ => return None,
    };
    let group = key.parse().ok()?;
    let cleared = bits(earlier, "pending").minus(&bits(now, "pending"));
    let missing = bits(now, if table == "GroupsTable" { "missing" } else { "missing_items" });
    let model = lock(&sim.model);
    let mut items = cleared.iter().filter_map(|index| Some(ItemId { fanout, group, index: index.try_into().ok()? }));
    let may = |item: &ItemId| {
        if missing.get(item.index.into()) { model.may_be_missing(item) } else { model.may_be_done(item) }
    };
    items.find(|item| !may(item)).map(|item| format!("counted item {item} too early"))
}

fn batch(earlier: &Value, now: &Value) -> Option<String> {
    // An attempt may be taken back before the batch API was called.
    let rank = |item| match text(item, "status") {
        "grouping" => 0,
        "formed" | "in_progress" => 1,
        _ => 2,
    };
    if rank(now) < rank(earlier) {
        return Some("went back".to_owned());
    }
    if rank(earlier) > 0 && earlier["members"] != now["members"] {
        return Some("changed its members after it was formed".to_owned());
    }
    if !earlier["answers_until"].is_null() && !now["lease_until"].is_null() {
        return Some("is called while a call of it is open".to_owned());
    }
    if text(now, "status") == "done" && !(now["answers_until"].is_null() && now["again"].is_null()) {
        return Some("is done, and awaits outcomes".to_owned());
    }
    within(now, earlier, "succeeded", "forgot an outcome")
        .or_else(|| within(now, earlier, "failed", "forgot a failure"))
        .or_else(|| within(now, earlier, "dropped", "calls for who was dropped"))
}

fn fanout(earlier: &Value, now: &Value) -> Option<String> {
    let rank = |item| match text(item, "state") {
        "open" => 0,
        "sealed" => 1,
        _ => 2,
    };
    if rank(now) < rank(earlier) {
        return Some("went back".to_owned());
    }
    if rank(earlier) > 0 && earlier["total"] != now["total"] {
        return Some("got items after it was sealed".to_owned());
    }
    if rank(earlier) == 2 && earlier["state"] != now["state"] {
        return Some("ended twice".to_owned());
    }
    let change = |item: &Value| item["changes"]["N"].as_str().and_then(|n| n.parse::<u64>().ok());
    if change(now) < change(earlier) {
        return Some("reports a share that comes before another one".to_owned());
    }
    let kept = ["failed", "duplicates", "missing", "open_groups", "ended_at", "updated_at"];
    if !earlier["ended_at"].is_null() && kept.iter().any(|name| earlier[name] != now[name]) {
        return Some("changed after it ended".to_owned());
    }
    within(earlier, now, "pending", "got bits back").or_else(|| within(now, earlier, "missing_items", "found items"))
}

/// A header is kept for two weeks from its end, and for twelve if it was cut short: its tasks may wait for so long, and
/// must not be called. Before its end it does not expire. Both times are of one clock.
fn kept(now: &Value) -> Option<String> {
    let number = |name: &str| now[name]["N"].as_str().and_then(|number| number.parse::<u64>().ok());
    let least = if text(now, "state") == "completed" { RETENTION } else { KEY_RETENTION };
    let until = number("ended_at").map(|ended_at| ended_at / 1_000 + least.as_secs());
    let right = number("ttl").is_some() == until.is_some() && number("ttl") >= until;
    (!right).then(|| "is not kept for as long as it must be".to_owned())
}

/// A fan-out expires by the clock of the worker that decides it: no sooner after the last change of its header than it may be idle in
/// that state.
fn expires(sim: &Sim, key: &str, earlier: &Value, now: &Value) -> Option<String> {
    if text(now, "state") != "expired" || text(earlier, "state") == "expired" {
        return None;
    }
    let asked = key.parse().ok().and_then(|id: Uuid| lock(&sim.model).fanouts.get(&id)?.idle_limit).unwrap_or_default();
    let (asked, default) = match text(earlier, "state") {
        "open" => (asked.open, IDLE_OPEN),
        _ => (asked.sealed, IDLE_SEALED),
    };
    let at = |item: &Value| item["updated_at"]["N"].as_str().and_then(|at| at.parse::<u64>().ok()).unwrap_or(0);
    let (idle, limit) = (at(now).saturating_sub(at(earlier)), asked.map_or(default, |limit| limit.0));
    (u128::from(idle) < limit.as_millis()).then(|| format!("expired after {idle} ms, its limit is {limit:?}"))
}

/// A fan-out fails by the write that finds more failures than it tolerates.
fn fails(sim: &Sim, key: &str, earlier: &Value, now: &Value) -> Option<String> {
    if text(now, "state") != "failed" || text(earlier, "state") == "failed" {
        return None;
    }
    let known = lock(&sim.model).fanouts.get(&key.parse().ok()?).cloned()?;
    let number = |name: &str| now[name]["N"].as_str().and_then(|number| number.parse().ok()).unwrap_or(0);
    let failures = number("failures").max(bits(now, "failed_items").count());
    let share = matches!(known.tolerated, Some(Tolerance::Percentage(_)));
    let right = known.exceeded(failures, number("total")) && !(share && text(earlier, "state") == "open");
    (!right).then(|| format!("failed, which tolerates {:?}", known.tolerated))
}

fn group(earlier: &Value, now: &Value) -> Option<String> {
    within(earlier, now, "pending", "got bits back").or_else(|| within(now, earlier, "missing", "found items"))
}

/// Every bit that `few` has, `many` must have.
fn within(many: &Value, few: &Value, name: &str, problem: &str) -> Option<String> {
    (!bits(few, name).minus(&bits(many, name)).is_zero()).then(|| problem.to_owned())
}

pub(crate) fn bits(item: &Value, name: &str) -> Bits {
    Bits::from_bytes(base64::decode(item[name]["B"].as_str().unwrap_or("")).unwrap_or_default())
}
