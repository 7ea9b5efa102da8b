//! What each user does from beginning to end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::{ItemGroup, ItemId, TaskId, derived, expand};
use fanfold::messages::{AckRequest, TaskRequest};
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::tracking::OpenRequest;
use futures::FutureExt;
use serde_json::json;
use uuid::Uuid;

use crate::clients::Clients;
use crate::lock;
use crate::model::FanoutModel;
use crate::scenario::{FanoutPlan, Seal, SinglesPlan};

/// One request of a fan-out's user.
enum Request {
    Tasks(Vec<ItemId>),
    Acks(Vec<ItemId>),
    Seal,
}

/// A user with a fan-out.
pub(crate) async fn fanout(clients: Arc<Clients>, plan: FanoutPlan) {
    tokio::time::sleep(plan.start).await;
    let Some((id, mut items)) = open(&clients, &plan).await else { return };
    for (n, count) in plan.adds.iter().enumerate() {
        pause(&clients, plan.pace).await;
        let Some(groups) = add(&clients, &plan, id, n, *count).await else { return };
        items.extend(expand(id, &groups));
    }
    let dice = &clients.dice;
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
    let straggles = !plan.straggles.is_zero();
    if straggles {
        // The last request brings tasks: duplicates, of which the first was stored long before.
        requests.sort_by_key(|request| matches!(request, Request::Tasks(_)));
    }
    let last = requests.len().saturating_sub(1);
    let mut first: Option<TaskRequest> = None;
    for (n, request) in requests.into_iter().enumerate() {
        pause(&clients, plan.pace).await;
        if n == last {
            tokio::time::sleep(plan.straggles).await;
        }
        if dice.chance(300) {
            stray(&clients, id).await;
        }
        match request {
            Request::Seal => seal(&clients, id).await,
            Request::Acks(items) => acks(&clients, &plan, items).await,
            Request::Tasks(items) => {
                let like = first.clone().filter(|_| straggles && n == last);
                let ids = items.into_iter().map(|item| Some(TaskId::Item(item)));
                let new = |id| like.clone().map_or_else(|| task(&clients, id), |like| TaskRequest { id, ..like });
                let tasks: Vec<TaskRequest> = ids.map(new).collect();
                first = first.or_else(|| tasks.first().cloned());
                register(&clients, tasks, format!("{}-{n}", plan.name)).await;
            }
        }
    }
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
        register(&clients, tasks, format!("{}-{n}", plan.name)).await;
    }
}

async fn pause(clients: &Clients, most: Duration) {
    tokio::time::sleep(clients.dice.millis(0, most.as_millis() as u64)).await;
}

async fn open(clients: &Arc<Clients>, plan: &FanoutPlan) -> Option<(Uuid, Vec<ItemId>)> {
    let request = OpenRequest {
        items: plan.items,
        seal: plan.seal == Seal::AtOnce,
        user_key: Some(plan.name.clone()),
        notify: plan.notify.then_some(Destination::Queue(NoticesQueue::Notices)),
    };
    let key = plan.name.clone();
    let id = derived("fanout", &[key.as_bytes()]);
    let model = FanoutModel {
        user_key: plan.name.clone(),
        notify: plan.notify,
        sealing: request.seal,
        ..FanoutModel::default()
    };
    lock(&clients.cluster.sim.model).fanouts.insert(id, model);
    let mut first: Option<Vec<ItemGroup>> = None;
    for _ in 0..1 + usize::from(clients.repeat().is_some()) {
        let call = |request: &OpenRequest, key: &str| {
            let (request, key) = (request.clone(), key.to_owned());
            move |steps: Arc<crate::steps::Steps>| {
                let (request, key) = (request.clone(), key.clone());
                async move { steps.tracking.open(request, Some(&key)).await }.boxed()
            }
        };
        let what = format!("POST /fanouts {key}: {} items, seal: {}", plan.items, request.seal);
        let opened = clients.until_done("api", &what, call(&request, &key)).await?;
        if opened.fanout.id != id || first.as_ref().is_some_and(|first| *first != opened.groups) {
            clients.cluster.sim.violate(format!("{what} answered another fan-out: {opened:?}"));
        }
        first = Some(opened.groups);
    }
    let items: Vec<ItemId> = expand(id, &first.unwrap_or_default()).collect();
    remember(clients, id, &items, plan.items as usize);
    Some((id, items))
}

async fn add(clients: &Arc<Clients>, plan: &FanoutPlan, id: Uuid, n: usize, count: u32) -> Option<Vec<ItemGroup>> {
    let what = format!("POST /fanouts/{id}/items {count} ({}-{n})", plan.name);
    let key = format!("{}-{n}", plan.name);
    let call = move |steps: Arc<crate::steps::Steps>| {
        let key = key.clone();
        async move { steps.tracking.add(id, count, Some(&key)).await }.boxed()
    };
    let groups = clients.until_done("api", &what, call.clone()).await?;
    let items: Vec<ItemId> = expand(id, &groups).collect();
    remember(clients, id, &items, count as usize);
    if let Some(delay) = clients.repeat() {
        let (clients, first) = (Arc::clone(clients), groups.clone());
        clients.clone().spawn(async move {
            tokio::time::sleep(delay).await;
            if clients.until_done("api", &what, call).await.is_some_and(|again| again != first) {
                clients.cluster.sim.violate(format!("{what} answered other groups the second time"));
            }
        });
    }
    Some(groups)
}

fn remember(clients: &Clients, id: Uuid, items: &[ItemId], count: usize) {
    let sim = &clients.cluster.sim;
    if items.len() != count {
        sim.violate(format!("{count} items were asked for, {} came", items.len()));
    }
    if let Some(fanout) = lock(&sim.model).fanouts.get_mut(&id) {
        fanout.items.extend(items);
        fanout.opened = true;
    }
}

async fn seal(clients: &Arc<Clients>, id: Uuid) {
    if let Some(fanout) = lock(&clients.cluster.sim.model).fanouts.get_mut(&id) {
        fanout.sealing = true;
    }
    let again = clients.repeat();
    let what = format!("POST /fanouts/{id}/seal");
    let call = move |steps: Arc<crate::steps::Steps>| async move { steps.tracking.seal(id).await }.boxed();
    clients.until_done("api", &what, call).await;
    if let Some(delay) = again {
        let clients = Arc::clone(clients);
        clients.clone().spawn(async move {
            tokio::time::sleep(delay).await;
            clients.until_done("api", &what, call).await;
        });
    }
}

/// Acks items as users' own workers do, over HTTP or the queue, some of them more than once.
async fn acks(clients: &Arc<Clients>, plan: &FanoutPlan, items: Vec<ItemId>) {
    let (failed, succeeded): (Vec<_>, Vec<_>) = items.into_iter().partition(|_| clients.dice.chance(plan.own_failed));
    {
        let mut model = lock(&clients.cluster.sim.model);
        for (items, failed) in [(&succeeded, false), (&failed, true)] {
            for item in items {
                if let Some(fanout) = model.fanouts.get_mut(&item.fanout) {
                    fanout.acked.insert(*item, failed);
                }
            }
        }
    }
    let mut request = AckRequest { items: succeeded, failed, settles: None };
    let deliver = async |clients: &Arc<Clients>, request: AckRequest| {
        if clients.dice.chance(5_000) {
            clients.send("AckQueue", json!(request).to_string());
        } else if let Some(answer) = clients.ack_http(request).await
            && !answer.refused.is_empty()
        {
            clients.cluster.sim.violate(format!("acks of items that exist were refused: {:?}", answer.refused));
        }
    };
    let again = clients.repeat();
    deliver(clients, request.clone()).await;
    if let Some(delay) = again {
        clients.dice.shuffle(&mut request.items);
        let clients = Arc::clone(clients);
        clients.clone().spawn(async move {
            tokio::time::sleep(delay).await;
            clients.send("AckQueue", json!(request).to_string());
        });
    }
}

/// Acks items that do not exist: refused, and without effect.
async fn stray(clients: &Arc<Clients>, fanout: Uuid) {
    let group = Uuid::from_u64_pair(clients.dice.any(), clients.dice.any());
    let index = clients.dice.below(7_168) as u16;
    let request = AckRequest { failed: vec![ItemId { fanout, group, index }], ..AckRequest::default() };
    if let Some(answer) = clients.ack_http(request).await
        && answer.refused.len() != 1
    {
        clients.cluster.sim.violate(format!("an ack of an item that does not exist was not refused: {answer:?}"));
    }
}

/// A task of any kind, its target and key drawn so that some are frequent.
fn task(clients: &Clients, id: Option<TaskId>) -> TaskRequest {
    let (dice, scenario) = (&clients.dice, &clients.scenario);
    let target = dice.below(scenario.targets).min(dice.below(scenario.targets));
    let kind = scenario.kinds[dice.below(scenario.kinds.len())].versions[0].1.kind.clone();
    let mut content =
        json!({"t": format!("t{target}"), "k": format!("k{}", dice.below(scenario.keys)), "n": dice.below(1_000)});
    if dice.chance(scenario.doomed) {
        content["doomed"] = json!(true);
    }
    TaskRequest { id, kind, content }
}

/// Registers tasks over HTTP or the queue, perhaps more than once.
async fn register(clients: &Arc<Clients>, tasks: Vec<TaskRequest>, request: String) {
    let sim = Arc::clone(&clients.cluster.sim);
    let over_http = clients.dice.chance(6_000);
    let name = if over_http { request.clone() } else { sim.queues.peek_id() };
    let id = |(n, task): (usize, &TaskRequest)| {
        let made = derived("task", &[name.as_bytes(), &(n as u64).to_be_bytes()]);
        task.id.unwrap_or(TaskId::Single(made))
    };
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
    let Some(registered) = clients.register_http(tasks.clone(), request.clone()).await else { return };
    let answered: BTreeSet<TaskId> = registered.iter().map(|task| task.id).collect();
    if answered != ids.iter().copied().collect() {
        sim.violate(format!("request {request} answered for {answered:?}, not for {ids:?}"));
    }
    clients.accept(&ids);
    if let Some(delay) = again {
        let clients = Arc::clone(clients);
        clients.clone().spawn(async move {
            tokio::time::sleep(delay).await;
            clients.register_http(tasks, request).await;
        });
    }
}
