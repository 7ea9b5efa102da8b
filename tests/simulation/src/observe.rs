//! What requests show of batches as they are applied, and what that binds others to.

use std::time::Duration;

use aws_smithy_types::base64;
use fanfold::lane::Lane;
use fanfold::limits::DELAY_MAX;
use fanfold::messages::HandleMessage;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use crate::clock;
use crate::lock;
use crate::model::Model;
use crate::request::{Record, Request, fanout_of, text};
use crate::sim::Sim;
use crate::transitions::bits;

/// Remembers what an applied write says of a batch: the lane it was formed in, and how an attempt ended.
pub(crate) fn wrote(model: &mut Model, request: &Request) {
    let (item, values) = (&request.body["Item"], &request.body["ExpressionAttributeValues"]);
    if request.table() != "BatchesTable" {
        return;
    }
    if let (Ok(id), false) = (text(item, "id").parse(), item["lane"].is_null()) {
        model.lanes.insert(id, text(item, "lane").to_owned());
    }
    let again = !values[":retry_at"].is_null();
    let batch = request.writes.first().and_then(|(_, key)| key.parse::<Uuid>().ok());
    if let (Some(batch), Some(attempt), Some(_)) =
        (batch, number(&values[":attempts"]), number::<u32>(&values[":ended"]))
    {
        model.counted_attempts.insert((batch, attempt));
    }
    if let (true, Some(batch), Some(attempt), Some(ended)) =
        (again, batch, number(&values[":attempts"]), number(&values[":ended"]))
    {
        let lane: Option<Lane> = model.lanes.get(&batch).and_then(|lane| lane.parse().ok());
        let backoff = lane.and_then(|lane| model.kinds.get(&lane.kind)).map(|kind| kind.backoff);
        if !values[":parts"].is_null() {
            model.split.insert(batch);
        }
        let refused = number(&values[":refused"]);
        if let Some(refused) = refused {
            model.pace.refused(batch, refused);
        }
        let silent = model.is_unanswered(batch, attempt);
        model.recorded(batch, attempt);
        if let Some(backoff) = backoff {
            // Parts follow each other, except after silence. Their attempts are counted from one.
            let (tries, backoff) = match (model.split.contains(&batch), refused) {
                (true, _) => (1, Some(backoff).filter(|_| silent)),
                (false, Some(refused)) => (refused, Some(backoff)),
                (false, None) => (model.pace.that_count(batch, ended), Some(backoff)),
            };
            model.pace.settled(batch, attempt, tries, backoff);
        }
    }
}

/// Whether a write begins an attempt.
pub(crate) fn begins(request: &Request) -> bool {
    request.table() == "BatchesTable" && !request.body["ExpressionAttributeValues"][":call_until"].is_null()
}

/// Remembers when an attempt began, by what its write answers.
pub(crate) fn began(model: &mut Model, request: &Request, answer: &Value) {
    let batch = request.writes.first().and_then(|(_, key)| key.parse::<Uuid>().ok()).filter(|_| begins(request));
    let begun = &answer["Attributes"];
    if let (Some(batch), Some(attempt)) = (batch, number(&begun["attempts"])) {
        model.begun.insert((batch, attempt), Instant::now());
        let cut_short = model.fanouts.iter().filter(|(_, fanout)| fanout.cut_short).map(|(id, _)| *id).collect();
        model.cut_before.insert((batch, attempt), cut_short);
        let mut closed = bits(begun, "succeeded");
        ["failed", "dropped"].iter().for_each(|name| closed.merge(&bits(begun, name)));
        model.later.closed.insert((batch, attempt), closed);
    }
}

/// What a write that is applied says of a fan-out: something happens to it, or it expires, although something did just now.
pub(crate) fn expires(sim: &Sim, request: &Request, record: &Record, before: Option<&Value>) -> Option<String> {
    let fanout = match record.0.as_str() {
        "FanoutsTable" => record.1.parse().ok(),
        "GroupsTable" => before.and_then(fanout_of),
        _ => None,
    };
    let id: Uuid = fanout?;
    let mut model = lock(&sim.model);
    let known = model.fanouts.get_mut(&id)?;
    let values = &request.body["ExpressionAttributeValues"];
    let active = known.active_at.replace(Instant::now());
    let state = before.map_or("", |header| text(header, "state"));
    known.failing |= text(values, ":state") == "failed";
    known.cut_short |= ["cancelled", "failed", "expired"].contains(&text(values, ":state"));
    if text(values, ":state") != "expired" || state == "expired" {
        // Only what sweeps and notices note of a header changes nothing of it.
        let noted = values[":updated_at"].is_null() && values[":state"].is_null() && request.operation == "UpdateItem";
        known.active_at = if noted { active } else { known.active_at };
        return None;
    }
    known.expired = true;
    let limit = known.idle_limit.map(|limit| match state {
        "open" => limit.open,
        _ => limit.sealed,
    });
    let limit = limit.flatten()?.0;
    // What happened since its groups were read is not known to the worker that decides, and clocks differ.
    let idle = active.map_or(limit, |at| at.elapsed());
    let early = idle + sim.plan.skew * 2 + DECIDED_WITHIN < limit;
    early.then(|| format!("fan-out {id} expires, although something happened {idle:?} ago, its limit is {limit:?}"))
}

/// An invocation that decides reads groups no longer before than it may last.
const DECIDED_WITHIN: Duration = Duration::from_secs(60);

/// The batches that a write takes from those that its lane knows, if it is applied to `before`.
pub(crate) fn leaving(request: &Request, before: Option<&Value>) -> Vec<Record> {
    let expression = request.body["UpdateExpression"].as_str().unwrap_or("");
    let Some((_, deleted)) = expression.split_once("DELETE ").filter(|_| request.table() == "LocksTable") else {
        return Vec::new();
    };
    let mut words = deleted.split([' ', ',']).filter(|word| !word.is_empty());
    let (set, name) = (words.next().unwrap_or("").trim_start_matches('#'), words.next().unwrap_or(""));
    let known = before.and_then(|lock| lock[set]["BS"].as_array()).cloned().unwrap_or_default();
    let leave = request.body["ExpressionAttributeValues"][name]["BS"].as_array().into_iter().flatten();
    let ids = leave.filter(|id| known.contains(id)).filter_map(|id| base64::decode(id.as_str()?).ok());
    ids.filter_map(|id| Some(("BatchesTable".to_owned(), Uuid::from_slice(&id).ok()?.to_string()))).collect()
}

/// What is wrong with a write that takes a batch from those that its lane knows: the batch is to be done, and known as
/// closing until its failures are reported, or given up. What is over stays so, whoever reads it late.
pub(crate) fn let_go(sim: &Sim, request: &Request, batch: &Value) -> Option<&'static str> {
    if text(batch, "status") != "done" {
        return Some("before it was done");
    }
    let closing = request.body["UpdateExpression"].as_str().is_some_and(|change| change.contains("ADD #closing"));
    let over = !batch["notified"].is_null() || !batch["undeliverable"].is_null();
    let lane: Option<Lane> = text(batch, "lane").parse().ok();
    let kind = lane.map(|lane| lane.kind).unwrap_or_default();
    let due = lock(&sim.model).kinds.get(&kind).is_some_and(|kind| kind.notify) && !bits(batch, "failed").is_zero();
    (due && !over && !closing).then_some("before its failures were reported")
}

/// The batch whose next attempt a message is for, and that attempt's number.
pub(crate) fn next_attempt(queue: &str, body: &str) -> Option<(Record, u32)> {
    let message: HandleMessage = (queue == "HandleQueue").then(|| serde_json::from_str(body).ok()).flatten()?;
    Some((("BatchesTable".to_owned(), message.batch.to_string()), message.attempt))
}

/// How much too early an attempt's message comes that is sent now with a `delay`, if it does: it is to wait for the
/// time that the batch's record names, or as long as SQS can.
pub(crate) fn too_early(sim: &Sim, batch: &Value, attempt: u32, delay: Duration) -> Option<Duration> {
    let time = number(&batch["retry_at"]).filter(|_| number(&batch["attempts"]) == Some(attempt.saturating_sub(1)));
    let left = Duration::from_millis(u64::saturating_sub(time?, clock::right(sim.start).0));
    // The sender may have a clock that is fast, and waits itself for what is less than a second.
    let early = left.min(DELAY_MAX).saturating_sub(delay + sim.plan.skew * 2);
    (early >= Duration::from_secs(1)).then_some(early)
}

/// A number, as DynamoDB's JSON has it.
fn number<T: std::str::FromStr>(value: &Value) -> Option<T> {
    value["N"].as_str()?.parse().ok()
}
