//! What users ask of tracking: they open fan-outs, add items, seal, and ack.

use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::{ItemGroup, ItemId, TaskId, derived, expand};
use fanfold::messages::{AckRequest, TaskRequest};
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::tracking::{FanoutTask, OpenRequest, TrackingError};
use futures::FutureExt;
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

use crate::clients::Clients;
use crate::lock;
use crate::model::FanoutModel;
use crate::opening::{open_late, opening};
use crate::scenario::{FanoutPlan, Seal};
use crate::shapes::entries;
use crate::work::task;

pub(crate) async fn open(clients: &Arc<Clients>, plan: &FanoutPlan) -> Option<(Uuid, Vec<ItemId>)> {
    let mut request = request(plan);
    let key = plan.name.clone();
    let id = derived::fanout(&key);
    expect(clients, plan, id);
    if plan.brings {
        request = OpenRequest { items: 0, seal: false, tasks: Some(bring(clients, plan, id)), ..request };
    }
    // A user who gives up leaves tasks that only a sweep has registered.
    let tries = if plan.brings && clients.dice.chance(3_000) { 1 } else { usize::MAX };
    let mut first: Option<Vec<ItemGroup>> = None;
    let what = format!("POST /fanouts {key}: {} items, seal: {}", plan.items, request.seal);
    let call = opening(request, key);
    for _ in 0..1 + usize::from(clients.repeat().is_some()) {
        let opened = clients.until_tired(tries, "api", &what, call.clone()).await?;
        if opened.fanout.id != id || first.as_ref().is_some_and(|first| *first != opened.groups) {
            clients.cluster.sim.violate(format!("{what} answered another fan-out: {opened:?}"));
        }
        first = Some(opened.groups);
    }
    let groups = first.unwrap_or_default();
    let items: Vec<ItemId> = expand(id, &groups).collect();
    open_late(clients, what, (id, groups), call);
    if plan.brings {
        if let Some(fanout) = lock(&clients.cluster.sim.model).fanouts.get_mut(&id) {
            fanout.opened = true;
        }
        // Users have nothing to do for them.
        return Some((id, Vec::new()));
    }
    remember(clients, id, &items, plan.items as usize);
    Some((id, items))
}

/// The tasks that a fan-out is opened with. Once its header is written, they must be registered: see `nested::ends`.
fn bring(clients: &Clients, plan: &FanoutPlan, id: Uuid) -> Vec<FanoutTask> {
    let items: Vec<ItemId> = ItemGroup { id, upto: plan.items }.expand(id).collect();
    let tasks: Vec<TaskRequest> = items.iter().map(|item| task(clients, Some(TaskId::Item(*item)))).collect();
    clients.cluster.sim.count("fan-outs opened with tasks");
    let mut model = lock(&clients.cluster.sim.model);
    items.iter().zip(&tasks).for_each(|(item, task)| model.ask(TaskId::Item(*item), task));
    if let Some(fanout) = model.fanouts.get_mut(&id) {
        fanout.brought = items;
    }
    tasks.into_iter().map(|TaskRequest { kind, content, .. }| FanoutTask { kind, content }).collect()
}

/// What a user asks for.
fn request(plan: &FanoutPlan) -> OpenRequest {
    OpenRequest {
        items: plan.items,
        seal: plan.seal == Seal::AtOnce,
        user_key: Some(plan.name.clone()),
        notify: plan.notify.then(|| match plan.webhook {
            Some(url) => Destination::Url(url.to_owned()),
            None => Destination::Queue(NoticesQueue::Notices),
        }),
        notify_on: Some(plan.notify_on.clone()),
        tolerated_failures: plan.tolerated,
        idle_limit: plan.idle_limit,
        parent: plan.parent,
        then: plan.then.clone(),
        ..OpenRequest::default()
    }
}

/// The model knows the fan-out before it is opened: whoever asks may die, and the fan-out is there.
fn expect(clients: &Clients, plan: &FanoutPlan, id: Uuid) {
    let model = FanoutModel {
        user_key: plan.name.clone(),
        notify: plan.notify,
        notify_on: plan.notify_on.clone(),
        sealing: plan.seal == Seal::AtOnce,
        idle_limit: plan.idle_limit,
        tolerated: plan.tolerated,
        ..FanoutModel::default()
    };
    let mut known = lock(&clients.cluster.sim.model);
    known.fanouts.insert(id, model);
    if let Some(then) = &plan.then {
        known.lead_on(id, then);
    }
}

pub(crate) async fn add(
    clients: &Arc<Clients>,
    plan: &FanoutPlan,
    id: Uuid,
    n: usize,
    count: u32,
) -> Option<Vec<ItemGroup>> {
    let what = format!("POST /fanouts/{id}/items {count} ({}-{n})", plan.name);
    let key = format!("{}-{n}", plan.name);
    let may_be_refused = plan.cancel.is_some() || plan.idle_limit.is_some() || plan.tolerated.is_some();
    let call = move |steps: Arc<crate::steps::Steps>| {
        let key = key.clone();
        async move {
            match steps.tracking.add(id, count, Some(&key)).await {
                Err(TrackingError::NotOpen { state, .. }) if state.cut_short() && may_be_refused => Ok(None),
                answer => answer.map(Some),
            }
        }
        .boxed()
    };
    let groups = clients.until_done("api", &what, call.clone()).await??;
    let items: Vec<ItemId> = expand(id, &groups).collect();
    remember(clients, id, &items, count as usize);
    if clients.dice.chance(1_500) {
        clients.spawn(add_others(Arc::clone(clients), id, format!("{}-{n}", plan.name), count));
    }
    if let Some(delay) = clients.repeat() {
        let (clients, first) = (Arc::clone(clients), groups.clone());
        clients.clone().spawn(async move {
            tokio::time::sleep(delay).await;
            if clients.until_done("api", &what, call).await.is_some_and(|again| again != Some(first)) {
                clients.cluster.sim.violate(format!("{what} answered other groups the second time"));
            }
        });
    }
    Some(groups)
}

/// Another number of items under a key that was used: refused, and nothing is added.
async fn add_others(clients: Arc<Clients>, id: Uuid, key: String, count: u32) {
    let other = clients.dice.pick(&[1, count.saturating_sub(1), count + 1, fanfold::limits::GROUP_ITEMS_MAX]).max(1);
    if other == count {
        return;
    }
    let what = format!("POST /fanouts/{id}/items {other} ({key}), used for {count}");
    let call = move |steps: Arc<crate::steps::Steps>| {
        let key = key.clone();
        async move {
            match steps.tracking.add(id, other, Some(&key)).await {
                Err(TrackingError::KeyReused(_)) => Ok(false),
                answer => answer.map(|_| true),
            }
        }
        .boxed()
    };
    if clients.until_done("api", &what, call).await == Some(true) {
        clients.cluster.sim.violate(format!("{what} was accepted"));
    }
}

/// Another user adds while the first one seals: what is accepted counts, what is refused does not.
async fn add_late(clients: Arc<Clients>, plan: FanoutPlan, id: Uuid) {
    let (dice, count) = (&clients.dice, 1 + clients.dice.below(8) as u32);
    tokio::time::sleep(dice.skewed(Duration::from_millis(1), Duration::from_secs(10))).await;
    let key = format!("{}-late", plan.name);
    let what = format!("POST /fanouts/{id}/items {count} ({key})");
    let call = move |steps: Arc<crate::steps::Steps>| {
        let key = key.clone();
        async move {
            match steps.tracking.add(id, count, Some(&key)).await {
                Err(TrackingError::NotOpen { .. }) => Ok(None),
                answer => answer.map(Some),
            }
        }
        .boxed()
    };
    let Some(Some(groups)) = clients.until_done("api", &what, call).await else { return };
    let items: Vec<ItemId> = expand(id, &groups).collect();
    remember(&clients, id, &items, count as usize);
    acks(&clients, &plan, items).await;
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

pub(crate) async fn seal(clients: &Arc<Clients>, plan: &FanoutPlan, id: Uuid) {
    if clients.dice.chance(3_000) {
        clients.spawn(add_late(Arc::clone(clients), plan.clone(), id));
    }
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

/// A user cancels the fan-out, if the plan says so.
pub(crate) async fn cancel(clients: Arc<Clients>, after: Option<Duration>, id: Uuid) {
    let sim = &clients.cluster.sim;
    // Without sweeps, items that no worker has would never be taken for missing.
    let Some(after) = after.filter(|_| !sim.plan.calm) else { return };
    tokio::time::sleep(after).await;
    if let Some(fanout) = lock(&sim.model).fanouts.get_mut(&id) {
        fanout.cancelling = true;
    }
    sim.count("fan-outs to be cancelled");
    let call = move |steps: Arc<crate::steps::Steps>| {
        async move {
            match steps.tracking.cancel(id).await {
                Err(TrackingError::Ended { .. }) => Ok(false),
                answer => answer.map(|_| true),
            }
        }
        .boxed()
    };
    for _ in 0..1 + usize::from(clients.repeat().is_some()) {
        let cancelled = clients.until_done("api", &format!("DELETE /fanouts/{id}"), call).await;
        if let (Some(true), Some(fanout)) = (cancelled, lock(&sim.model).fanouts.get_mut(&id)) {
            fanout.cancelled_at.get_or_insert_with(Instant::now);
        }
    }
}

/// Acks items as users' own workers do, over HTTP or the queue, some of them more than once.
pub(crate) async fn acks(clients: &Arc<Clients>, plan: &FanoutPlan, items: Vec<ItemId>) {
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
    let (items, failed) = (entries(&clients.dice, &succeeded), entries(&clients.dice, &failed));
    let mut request = AckRequest { items, failed, ..AckRequest::default() };
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
pub(crate) async fn stray(clients: &Arc<Clients>, fanout: Uuid) {
    let group = Uuid::from_u64_pair(clients.dice.any(), clients.dice.any());
    let index = clients.dice.below(7_168) as u16;
    let failed = entries(&clients.dice, &[ItemId { fanout, group, index }]);
    let request = AckRequest { failed, ..AckRequest::default() };
    if let Some(answer) = clients.ack_http(request).await
        && (answer.refused.len() != 1 || answer.refused[0].items != [index.to_string()])
    {
        clients.cluster.sim.violate(format!("an ack of an item that does not exist was not refused: {answer:?}"));
    }
}
