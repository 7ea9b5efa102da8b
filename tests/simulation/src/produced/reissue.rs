//! Requests to reissue fan-outs with a producer, several of them at once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::derived;
use fanfold::producing::{ReissueError, ReissueRequest};
use futures::FutureExt;
use futures::future::join_all;
use tokio::time::Instant;
use uuid::Uuid;

use super::again::{AgainPlan, has_ended};
use super::{Produced, ProducedPlan};
use crate::clients::Clients;
use crate::dice::Dice;
use crate::lock;
use crate::model::{FanoutModel, Model};
use crate::steps::Steps;

/// What became of a request to reissue a fan-out.
enum Answer {
    /// It opened this one.
    Opened(Uuid),
    /// There was a reissue, the latest of which is this one.
    Reissued(Uuid),
    /// There is nothing to reissue.
    Nothing,
}

/// Reissues a fan-out that has ended; none if there is nothing to reissue. The request may come twice at once, and
/// another one beside it: of them all one is fulfilled, and nobody cuts that one short meanwhile.
pub(super) async fn reissue(
    clients: &Arc<Clients>,
    plan: &ProducedPlan,
    again: AgainPlan,
    of: Uuid,
    name: &str,
) -> Option<Uuid> {
    if !has_ended(clients, of).await {
        return None;
    }
    let (sim, key) = (&clients.cluster.sim, format!("{} again: {name}", plan.name));
    let dice = Dice::new(sim.seed, &key);
    let mut requests = vec![(Duration::ZERO, key.clone())];
    for other in [key.clone(), format!("{key}, too")] {
        if dice.chance(5_000) {
            requests.push((dice.millis(0, 40), other));
        }
    }
    let requests = requests.into_iter().map(move |(after, key)| async move {
        tokio::time::sleep(after).await;
        request(clients, plan, again, of, key).await
    });
    let opened: BTreeSet<Uuid> = join_all(requests).await.into_iter().flatten().collect();
    if opened.len() > 1 {
        sim.violate(format!("fan-out {of} was reissued more than once: {opened:?}"));
    }
    opened.first().copied()
}

/// Asks for a reissue under a key; none if it was not opened.
async fn request(clients: &Arc<Clients>, plan: &ProducedPlan, again: AgainPlan, of: Uuid, key: String) -> Option<Uuid> {
    let (sim, id) = (&clients.cluster.sim, derived::fanout(&key));
    lock(&sim.model).expect_reissue(plan, of, id);
    let request = ReissueRequest { missing: again.missing, max_batch: again.max_batch, ..ReissueRequest::default() };
    let (what, asked_at) = (format!("POST /fanouts/{of}/reissue ({key}) {again:?}"), Instant::now());
    let call = move |steps: Arc<Steps>| {
        let (request, key) = (request.clone(), key.clone());
        async move {
            let from = (&steps.tracking, &steps.registrar, &steps.tasks);
            match steps.producing.reissue(from, of, &request, Some(&key)).await {
                Err(ReissueError::Nothing { .. }) => Ok(Answer::Nothing),
                Err(ReissueError::Reissued { latest, .. }) => Ok(Answer::Reissued(latest)),
                answer => answer.map(|answer| Answer::Opened(answer.fanout.id)),
            }
        }
        .boxed()
    };
    let mut opened = false;
    for _ in 0..1 + usize::from(clients.repeat().is_some()) {
        opened = match clients.until_done("api", &what, call.clone()).await? {
            Answer::Opened(answered) => answered == id,
            Answer::Reissued(latest) if latest == id => {
                sim.violate(format!("{what} was refused because of the fan-out that it opened"));
                true
            }
            Answer::Reissued(latest) => {
                lock(&sim.model).refused(of, latest, asked_at);
                false
            }
            Answer::Nothing => false,
        };
    }
    if !opened {
        return None;
    }
    sim.count("fan-outs reissued");
    if let Some(fanout) = lock(&sim.model).fanouts.get_mut(&id) {
        fanout.opened = true;
    }
    Some(id)
}

impl Model {
    /// A reissue of a fan-out is about to be opened. The same request may be under way already.
    fn expect_reissue(&mut self, plan: &ProducedPlan, of: Uuid, id: Uuid) {
        self.reissuing.insert(of);
        let (user_key, notify) = (plan.name.clone(), plan.notify);
        let fanout = || FanoutModel { user_key, notify, sealing: true, ..FanoutModel::default() };
        self.fanouts.entry(id).or_insert_with(fanout);
        let max_batch = plan.again.and_then(|again| again.max_batch).map(|most| most as usize);
        let produced = || Produced { partitions: 1, of: Some(of), max_batch, ..Produced::default() };
        self.produced.entry(id).or_insert_with(produced);
    }

    /// A reissue of a fan-out was refused that was asked for then, because of the latest one. If that one was cut short
    /// before, it had taken on all there is.
    fn refused(&mut self, of: Uuid, latest: Uuid, asked_at: Instant) {
        let cut_at = self.fanouts.get(&latest).and_then(|fanout| fanout.cancelled_at);
        if let Some(produced) = self.produced.get_mut(&of) {
            produced.nothing_left |= cut_at.is_some_and(|cut_at| cut_at < asked_at);
        }
    }
}
