//! What the records of tasks, bundles and keys may never do.

use aws_smithy_types::base64;
use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::limits::BUNDLE_FILLING_MAX;
use fanfold::masks::Masks;
use serde_json::Value;
use uuid::Uuid;

use super::bits;
use crate::clock;
use crate::control::NO_BATCH;
use crate::lock;
use crate::order::created_at;
use crate::request::{Record, Request, statement_record, text};
use crate::sim::Sim;

/// What waits, or may come to wait, is in the index of what waits, and what is there does not expire.
pub(super) fn is_lost(now: &Value) -> Option<&'static str> {
    let waits = ["filling", "waiting"].contains(&text(now, "state")) || text(now, "status") == "created";
    match (now["pending"].is_null(), now["ttl"].is_null()) {
        (true, _) if waits => Some("waits, and is not in the index of what waits"),
        (false, false) => Some("is in the index of what waits, and expires"),
        _ => None,
    }
}

/// The bundle of a task that waits on its own since a write: it must be dead.
pub(crate) fn freed(record: &Record, earlier: Option<&Option<Value>>, now: Option<&Value>) -> Option<Record> {
    let earlier = earlier.and_then(Option::as_ref).filter(|_| record.0 == "TasksTable")?;
    let bundle = Uuid::from_slice(&base64::decode(earlier["bundle"]["B"].as_str()?).ok()?).ok()?;
    (text(now?, "status") == "created").then(|| (record.0.clone(), format!("bundle:{bundle}")))
}

/// What is wrong with a write that declares a bundle dead: unless everything has died, its worker may take its time. `was`:
/// the bundle before it.
pub(crate) fn buried(sim: &Sim, request: &Request, record: &Record, was: Option<&Value>) -> Option<String> {
    let was = was.filter(|was| text(was, "state") == "filling" && sim.plan.restarts == 0)?;
    let dead = |value: &Value| value["S"] == "dead";
    let mut statements = request.body["Statements"].as_array()?.iter().filter(|it| statement_record(it).0 == *record);
    let dies = statements.any(|it| it["Parameters"].as_array().is_some_and(|values| values.iter().any(dead)));
    let age = clock::right(sim.start).plus(sim.plan.skew).0.saturating_sub(created_at(was));
    let early = dies && u128::from(age) < BUNDLE_FILLING_MAX.as_millis();
    early.then(|| format!("{} is declared dead after {age} ms: {was}", record.1))
}

/// A bundle's tasks are claimed once each, after it was opened; what was claimed stays claimed.
pub(super) fn bundle(earlier: &Value, now: &Value) -> Option<String> {
    let allowed = match (text(earlier, "state"), text(now, "state")) {
        (before, after) if before == after => true,
        ("filling", "waiting" | "taken" | "dead") | ("waiting", "taken") => true,
        _ => false,
    };
    if !allowed {
        return Some("went back".to_owned());
    }
    if earlier["members"] != now["members"] || earlier["lane"] != now["lane"] {
        return Some("changed its members".to_owned());
    }
    let (claimed, claims) = (claims(earlier)?, claims(now)?);
    // What is cancelled is claimed for no batch, one after the other.
    let had = |batch| claimed.get(batch).cloned().unwrap_or_default();
    let kept = |(batch, slots): (Uuid, &Bits)| match claims.get(batch) {
        Some(now) if batch == NO_BATCH => slots.minus(now).is_zero(),
        now => now == Some(slots),
    };
    if !claimed.iter().all(kept) {
        return Some("forgot a claim".to_owned());
    }
    let mut left = bits(earlier, "free");
    for (batch, slots) in claims.iter() {
        let new = slots.minus(&had(batch));
        if !new.minus(&left).is_zero() {
            return Some("was claimed where it was not free".to_owned());
        }
        left = left.minus(&new);
    }
    let opened = text(earlier, "state") == "filling";
    (!opened && bits(now, "free") != left).then(|| "lost or found tasks".to_owned())
}

fn claims(bundle: &Value) -> Option<Masks> {
    Masks::unpack(&base64::decode(bundle["claims"]["B"].as_str().unwrap_or("")).ok()?).ok()
}

/// A task is in one batch, or in one bundle until that is dead.
pub(super) fn task(earlier: &Value, now: &Value) -> Option<String> {
    let moved = !now["bundle"].is_null() && earlier["bundle"] != now["bundle"];
    let claimed = moved || !earlier["batch"].is_null() && earlier["batch"] != now["batch"];
    let dropped = ["duplicate", "cancelled"].contains(&text(earlier, "status")) && earlier != now;
    (claimed || dropped || earlier["digest"] != now["digest"]).then(|| "changed hands".to_owned())
}

/// A key is released by a task that failed or whose fan-out was cut short, and taken over from that one, or from one that was
/// dropped as a duplicate.
pub(super) fn owner(sim: &Sim, key: &str, earlier: &Value, now: &Value) -> Option<String> {
    let owner: TaskId = text(earlier, "owner").parse().ok()?;
    let mut model = lock(&sim.model);
    let to_others = model.may_be_released_to_others(&owner) || model.may_be_cancelled(&owner);
    let to_others = to_others || model.may_be_reissued(&owner);
    let free = !earlier["released"].is_null() || model.dropped.contains(&owner) || to_others;
    if earlier["owner"] != now["owner"] {
        let had = model.had.entry(key.to_owned()).or_default();
        had.insert(owner);
        let again = text(now, "owner").parse().is_ok_and(|owner: TaskId| had.contains(&owner));
        return (!free || again).then(|| "changed hands".to_owned());
    }
    let released = earlier["released"].is_null() && !now["released"].is_null();
    (released && !to_others && !model.may_be_released(&owner)).then(|| "was released".to_owned())
}
