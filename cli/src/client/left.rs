//! The items that are left of a fan-out of which few are left, and what each waits for.

use std::collections::BTreeMap;

use fanfold_client::{ClientError, Fanout, Item, ItemsState};
use futures::{StreamExt, TryStreamExt};
use serde_json::Value;

use super::connection::Stack;
use super::scope::named;
use super::view::{moment, shown, word};
use crate::count::count;

/// So many are few.
const FEW: u64 = 20;

/// Up to so many items, groups that have not ended are read to count in them.
const EXACT_UP_TO: u64 = 100_000;

/// Items that are named.
const NAMED: usize = 10;

/// What holds whole kinds and lanes.
#[derive(Debug, Default)]
struct Held {
    standing_still: Vec<Value>,
    paused: Vec<Value>,
    kinds: Vec<String>,
}

/// The fan-out with exact counts, if few items are left of it. Groups that have not ended are counted, too, unless that are many
/// reads.
pub(super) async fn of_few(stack: &Stack, fanout: &Fanout) -> Result<Option<Fanout>, ClientError> {
    let exact = match fanout.raw["progress"].as_str() {
        _ if fanout.has_ended() => return Ok(None),
        Some("exact") => fanout.clone(),
        Some("at_least") if fanout.total <= EXACT_UP_TO => stack.api.get_exact(fanout.id).await?,
        _ => return Ok(None),
    };
    let few = exact.raw["progress"] == "exact" && !exact.has_ended() && (1..=FEW).contains(&number_left(&exact));
    Ok(few.then_some(exact))
}

fn number_left(fanout: &Fanout) -> u64 {
    fanout.total.saturating_sub(fanout.done + fanout.missing)
}

/// The first items that are left, each with the lines that say why.
pub(super) async fn left(stack: &Stack, fanout: &Fanout) -> Result<Option<String>, ClientError> {
    let items: Vec<Item> = stack.api.items(fanout.id, ItemsState::Pending).take(NAMED).try_collect().await?;
    let mut tasks = Vec::new();
    for item in &items {
        tasks.push(found(stack.api.task(&item.to_string()).await)?);
    }
    let waits = tasks.iter().flatten().any(is_called_yet);
    let held = if waits { held(stack).await? } else { Held::default() };
    let (mut batches, mut reasons) = (BTreeMap::new(), Vec::new());
    for (item, task) in items.iter().zip(&tasks) {
        let id = task.as_ref().and_then(|task| task["batch"].as_str());
        if let Some(id) = id.filter(|id| !batches.contains_key(*id)) {
            batches.insert(id.to_owned(), found(stack.api.batch(id).await)?);
        }
        let batch = id.and_then(|id| batches.get(id)).and_then(Option::as_ref);
        reasons.push((item.to_string(), why(task.as_ref(), batch, &held)));
    }
    Ok((!reasons.is_empty()).then(|| text(fanout, &reasons)))
}

/// What does not exist is no error here.
fn found(answer: Result<Value, ClientError>) -> Result<Option<Value>, ClientError> {
    match answer {
        Err(ClientError::Api { status: 404, .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

async fn held(stack: &Stack) -> Result<Held, ClientError> {
    let health = stack.api.health().await?;
    let switches: Vec<Value> = stack.api.switches().try_collect().await?;
    let policies = stack.api.policies().await?;
    Ok(Held {
        standing_still: health["standing_still"].as_array().cloned().unwrap_or_default(),
        paused: switches.into_iter().filter(|switch| switch["state"] == "paused").collect(),
        kinds: policies.iter().map(|policy| word(&policy["kind"]).to_owned()).collect(),
    })
}

/// Whether a task has no outcome yet.
fn is_called_yet(task: &Value) -> bool {
    matches!(word(&task["status"]), "created" | "batched" | "in_progress")
}

/// Why an item is not done.
fn why(task: Option<&Value>, batch: Option<&Value>, held: &Held) -> Vec<String> {
    let Some(task) = task else { return vec!["it has no task: whoever handles it acks it".to_owned()] };
    if !is_called_yet(task) {
        return vec![format!("its task is {}, and its ack is on its way", word(&task["status"]))];
    }
    let of_kind = held.of(task);
    match batch {
        Some(batch) => of_kind.into_iter().chain(of_batch(batch)).collect(),
        None => {
            vec![of_kind.unwrap_or_else(|| format!("it waits in lane {} for its batch", shown(word(&task["lane"]))))]
        }
    }
}

impl Held {
    /// What holds the kind or the lane of a task.
    fn of(&self, task: &Value) -> Option<String> {
        let kind = word(&task["kind"]);
        if !self.kinds.iter().any(|it| it == kind) {
            return Some(format!("there is no policy of kind {}", shown(kind)));
        }
        let covers = |scope: &&Value| {
            let same = |name: &str| scope[name].is_null() || scope[name] == task[name];
            scope["all"] == true || same("kind") && same("target") && same("partition")
        };
        if let Some(scope) = self.paused.iter().find(covers) {
            return Some(format!("{} is paused", named(scope)));
        }
        let standing = self.standing_still.iter().find(|it| it["kind"] == task["kind"])?;
        let since = moment(standing["since"].as_u64().unwrap_or_default());
        Some(format!("kind {} stands still since {since}: {}", shown(kind), shown(word(&standing["answer"]))))
    }
}

/// What a task's batch waits for.
fn of_batch(batch: &Value) -> Vec<String> {
    let (id, attempts) = (word(&batch["id"]), batch["attempts"].as_u64().unwrap_or_default());
    let time = |name: &str| batch[name].as_u64().map(moment);
    let by = if batch["dev_session"].is_string() { " by a dev session" } else { "" };
    let attempts = count(attempts, "attempt", "attempts");
    let mut lines = match (time("retry_at"), time("answers_until"), word(&batch["status"])) {
        (Some(at), ..) => vec![format!("batch {id}: {attempts}"), format!("next attempt {at}")],
        (None, Some(until), _) => vec![format!("batch {id}: {attempts}"), format!("answered later, until {until}")],
        (None, None, "in_progress") => vec![format!("batch {id} is being called{by}: {attempts}")],
        (None, None, "done") => vec![format!("batch {id} is done, and its acks are on their way")],
        _ => vec![format!("batch {id} waits for its call")],
    };
    lines.extend(batch["last_error"].as_str().map(|error| format!("last error: {}", shown(error))));
    lines
}

/// Items with the same reason stand together.
fn text(fanout: &Fanout, reasons: &[(String, Vec<String>)]) -> String {
    let mut lines = vec!["  What is left, and why:".to_owned()];
    for (number, (item, why)) in reasons.iter().enumerate() {
        lines.push(format!("  {item}"));
        if reasons.get(number + 1).is_none_or(|(_, next)| next != why) {
            lines.extend(why.iter().map(|line| format!("    {line}")));
        }
    }
    let more = number_left(fanout).saturating_sub(reasons.len() as u64);
    lines.extend((more > 0).then(|| format!("  and {}: fanfold items {}", count(more, "other", "others"), fanout.id)));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(status: &str) -> Value {
        json!({"status": status, "kind": "row", "target": "a", "partition": 1, "lane": "row:1:a", "batch": "b"})
    }

    fn held(paused: Value) -> Held {
        Held { paused: vec![paused], kinds: vec!["row".to_owned()], ..Held::default() }
    }

    #[test]
    fn a_task_without_a_batch_waits_for_what_holds_its_lane() {
        let nothing = held(json!({"kind": "row", "target": "b"}));
        let reason = |held: &Held| why(Some(&task("created")), None, held);
        assert_eq!(reason(&nothing), ["it waits in lane row:1:a for its batch"]);
        for (scope, says) in [
            (json!({"all": true}), "everything is paused"),
            (json!({"kind": "row"}), "kind row is paused"),
            (json!({"kind": "row", "target": "a"}), "target a of kind row is paused"),
            (json!({"kind": "row", "target": "a", "partition": 1}), "partition 1 of target a of kind row is paused"),
            (json!({"kind": "row", "target": "a", "partition": 2}), "it waits in lane row:1:a for its batch"),
        ] {
            assert_eq!(reason(&held(scope)), [says]);
        }
        let standing_still = vec![json!({"kind": "row", "since": 0, "answer": "401 Unauthorized"})];
        let stands = Held { standing_still, ..nothing };
        assert_eq!(reason(&stands), ["kind row stands still since 1970-01-01T00:00:00Z: 401 Unauthorized"]);
        assert_eq!(reason(&Held::default()), ["there is no policy of kind row"]);
    }

    #[test]
    fn a_task_in_a_batch_waits_for_its_call() {
        let none = held(json!({"kind": "mail"}));
        let reason = |batch: Value| why(Some(&task("in_progress")), Some(&batch), &none);
        let failed = json!({"id": "b", "status": "in_progress", "attempts": 3, "retry_at": 0, "last_error": "503"});
        assert_eq!(reason(failed), ["batch b: 3 attempts", "next attempt 1970-01-01T00:00:00Z", "last error: 503"]);
        let later = json!({"id": "b", "status": "in_progress", "attempts": 1, "answers_until": 0});
        assert_eq!(reason(later), ["batch b: 1 attempt", "answered later, until 1970-01-01T00:00:00Z"]);
        let called = json!({"id": "b", "status": "in_progress", "attempts": 1, "dev_session": "s"});
        assert_eq!(reason(called), ["batch b is being called by a dev session: 1 attempt"]);
        assert_eq!(reason(json!({"id": "b", "status": "formed", "attempts": 0})), ["batch b waits for its call"]);
    }

    #[test]
    fn other_items_need_no_call() {
        assert_eq!(why(None, None, &Held::default()), ["it has no task: whoever handles it acks it"]);
        let acked = why(Some(&task("failed")), None, &Held::default());
        assert_eq!(acked, ["its task is failed, and its ack is on its way"]);
    }
}
