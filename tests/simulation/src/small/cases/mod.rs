//! The cases.

mod acks;
mod cancels;
mod counts;
mod expires;
mod fails;
mod groups;
mod handles;
mod looks;
mod overtaken;
mod policies;
mod probes;
mod registers;

use fanfold::ids::{ItemId, TaskId, derived, expand};
use fanfold::messages::{AckRequest, TaskRequest};
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::tracking::OpenRequest;
use futures::FutureExt;
use serde_json::{Value, json};
use uuid::Uuid;

use super::ground::Case;
use super::stage::{Actor, Again, Hands, Stage};
use crate::lock;
use crate::model::FanoutModel;

/// The kind of all tasks.
const KIND: &str = "kind0";

/// Every case.
#[must_use]
pub fn cases() -> Vec<Case> {
    let of_tasks = [registers::CASES, groups::CASES, handles::CASES, policies::CASES, probes::CASES];
    let of_fanouts = [acks::CASES, cancels::CASES, fails::CASES, counts::CASES, looks::CASES, expires::CASES];
    [of_tasks.concat(), of_fanouts.concat(), overtaken::CASES.to_vec()].concat()
}

/// The policy of the kind, with these fields beside what all have.
fn policy(fields: &Value) -> Value {
    let mut policy = json!({
        "kind": KIND, "target": "content.t", "linger": 1, "max_batch": 10, "max_in_flight": 2, "max_attempts": 3,
        "batch_api": {"url": "https://a.example/batch", "timeout": 10},
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        policy[name] = value.clone();
    }
    policy
}

/// The policy with nothing else.
fn plain() -> Value {
    policy(&json!({}))
}

/// Notices to the stack's queue.
fn queue() -> Option<Destination> {
    Some(Destination::Queue(NoticesQueue::Notices))
}

/// A task with a key, under an id if it has one.
fn task(id: Option<TaskId>, key: &str) -> TaskRequest {
    TaskRequest { id, kind: KIND.to_owned(), content: json!({"t": "t0", "k": key}) }
}

/// Tasks with these keys, under no ids.
fn tasks(keys: &[&str]) -> Vec<TaskRequest> {
    keys.iter().map(|key| task(None, key)).collect()
}

fn single(number: u128) -> TaskId {
    TaskId::Single(Uuid::from_u128(number))
}

/// A message that registers tasks: somebody has sent it.
fn registration(stage: &Stage, id: &str, tasks: &[TaskRequest]) -> (String, String) {
    let mut model = lock(&stage.sim.model);
    for (at, task) in tasks.iter().enumerate() {
        let id = task.id.unwrap_or_else(|| derived::task(id, at));
        model.ask(id, task);
        model.accept(&id);
    }
    (id.to_owned(), json!({ "tasks": tasks }).to_string())
}

/// Registers tasks.
async fn register(stage: &Stage, id: &str, tasks: &[TaskRequest]) -> Result<(), String> {
    stage.alone(Actor::message("RegisterQueue", registration(stage, id, tasks))).await
}

/// Registers tasks and elects a leader. Returns the message for it.
async fn elected(stage: &Stage, tasks: &[TaskRequest]) -> Result<(String, String), String> {
    register(stage, "before", tasks).await?;
    stage.deliver("ElectQueue").await?;
    stage.take("GroupQueue")
}

/// Forms a batch of tasks. Returns the message to handle it.
async fn grouped(stage: &Stage, tasks: &[TaskRequest]) -> Result<(String, String), String> {
    let leader = elected(stage, tasks).await?;
    stage.alone(Actor::message("GroupQueue", leader)).await?;
    stage.take("HandleQueue")
}

/// A task of a lane of its own.
fn apart(key: &str) -> TaskRequest {
    let mut task = task(None, key);
    task.content["t"] = json!(key);
    task
}

/// Forms one of several batches, of tasks that no other request registers. Returns the message to handle it.
async fn formed(stage: &Stage, request: &str, tasks: &[TaskRequest]) -> Result<(String, String), String> {
    register(stage, request, tasks).await?;
    stage.deliver("ElectQueue").await?;
    stage.deliver("GroupQueue").await?;
    stage.take("HandleQueue")
}

/// The fan-out of a case.
fn fanout() -> Uuid {
    derived::fanout("fanout")
}

/// Opens the fan-out. Returns its items.
async fn open(stage: &Stage, items: u32, seal: bool, notify: Option<Destination>) -> Result<Vec<ItemId>, String> {
    open_as(stage, OpenRequest { items, seal, notify, ..OpenRequest::default() }).await
}

/// The same with other fields.
async fn open_as(stage: &Stage, request: OpenRequest) -> Result<Vec<ItemId>, String> {
    let request = OpenRequest { user_key: Some("fanout".to_owned()), ..request };
    let open = move |hands: Hands| {
        let request = request.clone();
        async move {
            let Ok(opened) = hands.steps.tracking.open(request.clone(), Some("fanout")).await else { return false };
            let model = FanoutModel {
                user_key: "fanout".to_owned(),
                notify: request.notify.is_some(),
                sealing: request.seal,
                tolerated: request.tolerated_failures,
                idle_limit: request.idle_limit,
                items: expand(opened.fanout.id, &opened.groups).collect(),
                opened: true,
                ..FanoutModel::default()
            };
            lock(&hands.sim.model).fanouts.insert(opened.fanout.id, model);
            true
        }
        .boxed()
    };
    stage.alone(Actor::request("api", Again::Nobody, open)).await?;
    Ok(items_of(stage))
}

/// Adds an item in a group of its own. Returns all items.
async fn add(stage: &Stage, key: &'static str, count: u32) -> Result<Vec<ItemId>, String> {
    let add = move |hands: Hands| {
        async move {
            let Ok(groups) = hands.steps.tracking.add(fanout(), count, Some(key)).await else { return false };
            if let Some(model) = lock(&hands.sim.model).fanouts.get_mut(&fanout()) {
                model.items.extend(expand(fanout(), &groups));
            }
            true
        }
        .boxed()
    };
    stage.alone(Actor::request("api", Again::Nobody, add)).await?;
    Ok(items_of(stage))
}

fn items_of(stage: &Stage) -> Vec<ItemId> {
    lock(&stage.sim.model).fanouts.get(&fanout()).map(|model| model.items.iter().copied().collect()).unwrap_or_default()
}

/// A user seals the fan-out.
fn seal(stage: &Stage) -> Actor {
    if let Some(model) = lock(&stage.sim.model).fanouts.get_mut(&fanout()) {
        model.sealing = true;
    }
    let seal = |hands: Hands| async move { hands.steps.tracking.seal(fanout()).await.is_ok() }.boxed();
    Actor::request("api", Again::User, seal)
}

/// A message that acks items as succeeded: somebody has sent it.
fn ack(stage: &Stage, id: &str, items: &[ItemId]) -> Actor {
    ack_as(stage, id, items, false)
}

/// A message that acks items.
fn ack_as(stage: &Stage, id: &str, items: &[ItemId], failed: bool) -> Actor {
    if let Some(model) = lock(&stage.sim.model).fanouts.get_mut(&fanout()) {
        model.acked.extend(items.iter().map(|item| (*item, failed)));
    }
    let entries = items.iter().copied().map(Into::into).collect();
    let acks = match failed {
        true => AckRequest { failed: entries, ..AckRequest::default() },
        false => AckRequest { items: entries, ..AckRequest::default() },
    };
    Actor::message("AckQueue", (id.to_owned(), json!(acks).to_string()))
}
