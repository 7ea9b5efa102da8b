//! What each user does from beginning to end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId, derived, expand};
use fanfold::messages::TaskRequest;
use fanfold_register::request_id;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use crate::clients::Clients;
use crate::dice::Dice;
use crate::lock;
use crate::producer::{acks, add, cancel, open, seal, stray};
use crate::reuse;
use crate::scenario::{FanoutPlan, Seal, SinglesPlan};
use crate::streams;

/// One request of a fan-out's user.
enum Request {
    Tasks(Vec<ItemId>),
    Acks(Vec<ItemId>),
    Seal,
}

/// A user with a fan-out, and those of the fan-outs under its items.
pub(crate) fn fanout(clients: Arc<Clients>, plan: FanoutPlan) -> BoxFuture<'static, ()> {
    fanout_of_user(clients, plan).boxed()
}

async fn fanout_of_user(clients: Arc<Clients>, plan: FanoutPlan) {
    tokio::time::sleep(plan.start).await;
    let Some((id, mut items)) = open(&clients, &plan).await else { return };
    clients.spawn(cancel(Arc::clone(&clients), plan.cancel, id));
    for (n, count) in plan.adds.iter().enumerate() {
        pause(&clients, plan.pace).await;
        let Some(groups) = add(&clients, &plan, id, n, *count).await else { return };
        items.extend(expand(id, &groups));
    }
    open_children(&clients, &plan, id, &mut items);
    let mut requests = requests(&clients.dice, &plan, items);
    let straggles = !plan.straggles.is_zero();
    if straggles {
        // The last request brings tasks: duplicates, of which the first was stored long before.
        requests.sort_by_key(|request| matches!(request, Request::Tasks(_)));
    }
    let last = requests.len().saturating_sub(1);
    let mut first: Option<TaskRequest> = None;
    for (n, request) in requests.into_iter().enumerate() {
        pause(&clients, plan.pace).await;
        if n == last && straggles {
            tokio::time::sleep(plan.straggles).await;
            wait_for_the_rest(&clients, id, &request).await;
        }
        if clients.dice.chance(300) {
            stray(&clients, id).await;
        }
        if clients.dice.chance(300) {
            reuse::no_item(&clients, id, clients.scenario.kinds[0].versions[0].1.kind.clone()).await;
        }
        match request {
            Request::Seal => seal(&clients, &plan, id).await,
            Request::Acks(items) => acks(&clients, &plan, items).await,
            Request::Tasks(items) => {
                let like = first.clone().filter(|_| straggles && n == last);
                let ids = items.into_iter().map(|item| Some(TaskId::Item(item)));
                let new = |id| like.clone().map_or_else(|| task(&clients, id), |like| TaskRequest { id, ..like });
                let tasks: Vec<TaskRequest> = ids.map(new).collect();
                first = first.or_else(|| tasks.first().cloned());
                register(&clients, usize::MAX, tasks, format!("{}-{n}", plan.name)).await;
            }
        }
    }
}

/// Has the fan-out's last items be fan-outs.
fn open_children(clients: &Arc<Clients>, plan: &FanoutPlan, id: Uuid, items: &mut Vec<ItemId>) {
    for child in &plan.children {
        let Some(item) = items.pop() else { break };
        clients.cluster.sim.count("fan-outs under an item");
        let name = derived::fanout(&child.name);
        if let Some(fanout) = lock(&clients.cluster.sim.model).fanouts.get_mut(&id) {
            fanout.children.insert(item, name);
        }
        clients.spawn(fanout(Arc::clone(clients), FanoutPlan { parent: Some(item), ..child.clone() }));
    }
}

/// The requests that a fan-out's user makes, in their order.
fn requests(dice: &Dice, plan: &FanoutPlan, mut items: Vec<ItemId>) -> Vec<Request> {
    dice.shuffle(&mut items);
    items.truncate(items.len().saturating_sub(plan.left));
    let (own, tasks): (Vec<ItemId>, Vec<ItemId>) = items.into_iter().partition(|_| dice.chance(plan.own));
    let mut requests: Vec<Request> = tasks.chunks(plan.chunk).map(|items| Request::Tasks(items.to_vec())).collect();
    requests.extend(own.chunks(plan.chunk).map(|items| Request::Acks(items.to_vec())));
    dice.shuffle(&mut requests);
    match plan.seal {
        Seal::AtOnce | Seal::Never => {}
        Seal::Early => requests.insert(0, Request::Seal),
        Seal::Meanwhile => requests.insert(dice.below(requests.len() + 1), Request::Seal),
        Seal::Late => requests.push(Request::Seal),
    }
    requests
}

/// A user with tasks of no fan-out.
pub(crate) async fn singles(clients: Arc<Clients>, plan: SinglesPlan) {
    tokio::time::sleep(plan.start).await;
    let named = clients.dice.chance(5_000);
    let ids: Vec<usize> = (0..plan.tasks).collect();
    for (n, chunk) in ids.chunks(plan.chunk).enumerate() {
        pause(&clients, plan.pace).await;
        let id = |_| named.then(|| TaskId::Single(Uuid::from_u64_pair(clients.dice.any(), clients.dice.any())));
        let tasks = chunk.iter().map(|n| task(&clients, id(n))).collect();
        // A user that gives up leaves keys whose tasks may never have been stored.
        let tries = if clients.dice.chance(5_000) { 1 } else { usize::MAX };
        register(&clients, tries, tasks, format!("{}-{n}", plan.name)).await;
    }
}

/// Waits until all items but those of a request are done, as far as that comes to be while faults last: the request may end the
/// fan-out.
async fn wait_for_the_rest(clients: &Clients, fanout: Uuid, request: &Request) {
    let sim = &clients.cluster.sim;
    let mine: &[ItemId] = match request {
        Request::Tasks(items) | Request::Acks(items) => items,
        Request::Seal => &[],
    };
    let done = || {
        let model = lock(&sim.model);
        let items = model.fanouts.get(&fanout).into_iter().flat_map(|fanout| &fanout.items);
        items.filter(|item| !mine.contains(item)).all(|item| model.may_be_done(item))
    };
    while !done() && sim.start.elapsed() < sim.plan.until.mul_f64(0.8) {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    tokio::time::sleep(clients.dice.skewed(Duration::from_secs(1), Duration::from_secs(60))).await;
}

async fn pause(clients: &Clients, most: Duration) {
    tokio::time::sleep(clients.dice.millis(0, most.as_millis() as u64)).await;
}

/// A task of any kind, its target and key drawn so that some are frequent.
pub(crate) fn task(clients: &Clients, id: Option<TaskId>) -> TaskRequest {
    let (dice, scenario) = (&clients.dice, &clients.scenario);
    let target = dice.below(scenario.targets).min(dice.below(scenario.targets));
    let kind = scenario.kinds[dice.below(scenario.kinds.len())].versions[0].1.kind.clone();
    let mut content =
        json!({"t": format!("t{target}"), "k": format!("k{}", dice.below(scenario.keys)), "n": dice.below(1_000)});
    if dice.chance(scenario.doomed) {
        content["doomed"] = json!(true);
    }
    // Dice of its own would be drawn for all tasks: most runs have no poison.
    if scenario.poison > 0 && dice.chance(scenario.poison) {
        content["poison"] = json!(dice.pick(&[400, 413, 422, 500, 500, 500]));
    }
    TaskRequest { id, kind, content }
}

/// Registers tasks over HTTP or the queue, perhaps more than once. A user without an answer after so many `tries` gives up.
async fn register(clients: &Arc<Clients>, tries: usize, tasks: Vec<TaskRequest>, request: String) {
    let sim = Arc::clone(&clients.cluster.sim);
    let over_http = clients.dice.chance(6_000);
    if over_http && streams::may_be(clients, &request) {
        return streams::register(clients, tries, tasks, request).await;
    }
    let name = if over_http { request_id(&request) } else { sim.queues.peek_id() };
    let id = |(n, task): (usize, &TaskRequest)| task.id.unwrap_or_else(|| derived::task(&name, n));
    let ids: Vec<TaskId> = tasks.iter().enumerate().map(id).collect();
    {
        let mut model = lock(&sim.model);
        ids.iter().zip(&tasks).for_each(|(id, task)| model.ask(*id, task));
        *lock(&sim.stats).brought.entry("tasks").or_default() += ids.len() as u64;
    }
    if !over_http {
        clients.send("RegisterQueue", json!({"tasks": tasks}).to_string());
        clients.accept(&ids);
        return;
    }
    let again = clients.repeat();
    let Some(registered) = clients.register_http(tries, tasks.clone(), request.clone()).await else {
        if clients.dice.chance(5_000) {
            clients.spawn(reuse::instead(Arc::clone(clients), ids, tasks, request));
        }
        return;
    };
    let answered: BTreeSet<TaskId> = registered.iter().map(|task| task.id).collect();
    if answered != ids.iter().copied().collect() {
        sim.violate(format!("request {request} answered for {answered:?}, not for {ids:?}"));
    }
    clients.accept(&ids);
    ids.iter().for_each(|id| lock(&sim.model).answer(id));
    if clients.dice.chance(1_000) {
        clients.spawn(reuse::after(Arc::clone(clients), tasks.clone(), request.clone()));
    }
    if let Some(delay) = again {
        let clients = Arc::clone(clients);
        clients.clone().spawn(async move {
            tokio::time::sleep(delay).await;
            clients.register_http(usize::MAX, tasks, request).await;
        });
    }
}
