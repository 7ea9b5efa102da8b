//! Users of estimated fan-outs: they count each thing once, whether or not they are answered, some of them by messages, which may come
//! again; they seal and cancel meanwhile.

pub(crate) mod check;
mod plan;

use std::sync::Arc;

use fanfold::aws::StoreError;
use fanfold::ids::derived;
use fanfold::messages::{CountEntry, CountRequest};
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::store::fanouts::{IdleLimit, Mode, Tolerance};
use fanfold::tracking::{OpenRequest, TrackingError};
use futures::FutureExt;
use serde_json::json;
use uuid::Uuid;

pub(crate) use plan::EstimatedPlan;

use crate::clients::Clients;
use crate::lock;

/// An estimated fan-out, as its users know it. What is counted: added, done, failed of these.
#[derive(Clone, Debug, Default)]
pub(crate) struct EstimatedModel {
    pub(crate) user_key: String,
    pub(crate) notify: bool,
    pub(crate) opened: bool,
    pub(crate) sealing: bool,
    pub(crate) cancelling: bool,
    pub(crate) cancelled: bool,
    pub(crate) tolerated: Option<Tolerance>,
    pub(crate) idle_limit: Option<IdleLimit>,
    /// Whether some counts go by messages.
    pub(crate) by_queue: bool,
    /// What was asked to be counted, and what is known to be.
    pub(crate) most: [u64; 3],
    pub(crate) least: [u64; 3],
}

/// One that was asked for, if it was.
fn known<T>(clients: &Clients, id: Uuid, change: impl FnOnce(&mut EstimatedModel) -> T) -> Option<T> {
    lock(&clients.cluster.sim.model).estimated.get_mut(&id).map(change)
}

/// What a request counts, as the header has it.
pub(crate) fn plus(sum: [u64; 3], [add, succeeded, failed]: [u32; 3]) -> [u64; 3] {
    [sum[0] + u64::from(add), sum[1] + u64::from(succeeded) + u64::from(failed), sum[2] + u64::from(failed)]
}

/// What counts this of one fan-out.
pub(crate) fn request(fanout: Uuid, [add, succeeded, failed]: [u32; 3]) -> CountRequest {
    CountRequest { counts: vec![CountEntry { fanout, add, succeeded, failed }] }
}

/// A fan-out's users from beginning to end.
pub(crate) async fn users(clients: Arc<Clients>, plan: EstimatedPlan) {
    tokio::time::sleep(plan.start).await;
    let Some(id) = open(&clients, &plan).await else { return };
    clients.spawn(cancel(Arc::clone(&clients), plan.clone(), id));
    // Several workers count.
    for counts in plan.counts.chunks(plan.counts.len().div_ceil(plan.workers).max(1)) {
        clients.spawn(work(Arc::clone(&clients), plan.clone(), id, counts.to_vec()));
    }
    if let Some(after) = plan.seal {
        tokio::time::sleep(after).await;
        seal(&clients, id).await;
    }
}

async fn open(clients: &Arc<Clients>, plan: &EstimatedPlan) -> Option<Uuid> {
    let request = OpenRequest {
        mode: Mode::Estimated,
        items: plan.items,
        seal: plan.sealed_at_once,
        user_key: Some(plan.name.clone()),
        notify: plan.notify.then(|| match plan.webhook {
            Some(url) => Destination::Url(url.to_owned()),
            None => Destination::Queue(NoticesQueue::Notices),
        }),
        tolerated_failures: plan.tolerated,
        idle_limit: plan.idle_limit,
        ..OpenRequest::default()
    };
    let id = derived::fanout(&plan.name);
    let counted = [u64::from(plan.items), 0, 0];
    let model = EstimatedModel {
        user_key: plan.name.clone(),
        notify: plan.notify,
        sealing: plan.sealed_at_once,
        tolerated: plan.tolerated,
        idle_limit: plan.idle_limit,
        by_queue: plan.by_queue > 0,
        most: counted,
        least: counted,
        ..EstimatedModel::default()
    };
    lock(&clients.cluster.sim.model).estimated.insert(id, model);
    clients.cluster.sim.count("estimated fan-outs");
    let key = plan.name.clone();
    for _ in 0..1 + usize::from(clients.repeat().is_some()) {
        let (request, key) = (request.clone(), key.clone());
        let what = format!("POST /fanouts {key}, estimated: {}", plan.items);
        let call = move |steps: Arc<crate::steps::Steps>| {
            let (request, key) = (request.clone(), key.clone());
            async move { steps.tracking.open(request, Some(&key)).await }.boxed()
        };
        let opened = clients.until_done("api", &what, call).await?;
        if opened.fanout.id != id || !opened.groups.is_empty() || !opened.fanout.estimated() {
            clients.cluster.sim.violate(format!("{what} answered another fan-out: {opened:?}"));
        }
    }
    known(clients, id, |fanout| fanout.opened = true);
    Some(id)
}

/// One of those who count.
async fn work(clients: Arc<Clients>, plan: EstimatedPlan, id: Uuid, counts: Vec<[u32; 3]>) {
    for counts in counts {
        tokio::time::sleep(clients.dice.millis(0, plan.pace.as_millis() as u64)).await;
        known(&clients, id, |fanout| fanout.most = plus(fanout.most, counts));
        // A message that adds to what has ended would be a dead letter.
        if counts[0] == 0 && clients.dice.chance(plan.by_queue) {
            clients.send("AckQueue", json!(request(id, counts)).to_string());
        } else {
            over_http(&clients, id, counts).await;
        }
    }
}

/// Counts over HTTP, once, with or without an answer.
async fn over_http(clients: &Arc<Clients>, id: Uuid, counts: [u32; 3]) {
    let what = format!("POST /counts {id} {counts:?}");
    let call = move |steps: Arc<crate::steps::Steps>| {
        let request = request(id, counts);
        async move { Ok::<_, StoreError>(steps.all.ack.count([&request]).await) }.boxed()
    };
    let answer = clients.once("ack http", &what, call).await.and_then(|mut counted| counted.remove(&id));
    let sim = &clients.cluster.sim;
    let Some(asked) = known(clients, id, |fanout| fanout.clone()) else { return };
    match answer {
        // It may count, or not.
        None | Some(Err(TrackingError::Store(_))) => {}
        Some(Ok(fanout)) => {
            if let Some(problem) = check::wrong_end(&asked, &fanout) {
                sim.violate(format!("{what} was answered with {fanout:?}, which {problem}"));
            }
            if check::has_counted(counts, &fanout) {
                known(clients, id, |fanout| fanout.least = plus(fanout.least, counts));
            }
        }
        Some(Err(TrackingError::CountedOut { .. })) if counts[0] > 0 && check::may_be_over(&asked) => {}
        Some(Err(error)) => sim.violate(format!("{what} was refused: {error}")),
    }
}

async fn seal(clients: &Arc<Clients>, id: Uuid) {
    known(clients, id, |fanout| fanout.sealing = true);
    let call = move |steps: Arc<crate::steps::Steps>| async move { steps.tracking.seal(id).await }.boxed();
    for _ in 0..1 + usize::from(clients.repeat().is_some()) {
        clients.until_done("api", &format!("POST /fanouts/{id}/seal"), call).await;
    }
}

/// A user cancels it, if the plan says so.
async fn cancel(clients: Arc<Clients>, plan: EstimatedPlan, id: Uuid) {
    let Some(after) = plan.cancel else { return };
    tokio::time::sleep(after).await;
    known(&clients, id, |fanout| fanout.cancelling = true);
    let call = move |steps: Arc<crate::steps::Steps>| {
        async move {
            match steps.tracking.cancel(id).await {
                Err(TrackingError::Ended { .. }) => Ok(false),
                answer => answer.map(|fanout| fanout.ended()),
            }
        }
        .boxed()
    };
    if clients.until_done("api", &format!("DELETE /fanouts/{id}"), call).await == Some(true) {
        known(&clients, id, |fanout| fanout.cancelled = true);
    }
}
