//! An operator who deletes policies, whether or not tasks of their kinds wait, and stores them again after a while: nothing is lost.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use fanfold::control::Scope;
use futures::FutureExt;
use tokio::time::{Instant, sleep};

use crate::clients::Clients;
use crate::dice::Dice;
use crate::faults::LATE_MAX;
use crate::lock;
use crate::operator;
use crate::scenario::KindPlan;
use crate::steps::Steps;

/// Whether policies are deleted in this run: not where rows of a source would be bad ones without a policy, and mostly not at all.
pub(crate) fn may_be(clients: &Clients) -> bool {
    let scenario = &clients.scenario;
    scenario.produced.is_empty() && scenario.mood.hangs.is_none() && clients.cluster.sim.seed % 3 == 1
}

/// Deletes policies and stores them again until faults stop, some while their kinds are paused. Leaves policies with a
/// `notify` alone: failures that are recorded without a policy are not reported.
pub(crate) async fn delete_policies(clients: Arc<Clients>) {
    let sim = Arc::clone(&clients.cluster.sim);
    let (dice, pauses) = (Dice::new(sim.seed, "deleted policies"), Dice::new(sim.seed, "deleted and paused"));
    let silent = |plan: &&KindPlan| plan.versions.iter().all(|(_, policy)| policy.notify.is_none());
    let plans: Vec<KindPlan> = clients.scenario.kinds.iter().filter(silent).cloned().collect();
    while !sim.healed() && !plans.is_empty() {
        sleep(dice.skewed(Duration::from_secs(5), Duration::from_secs(300))).await;
        let plan = dice.pick(&plans);
        let kind = plan.versions[0].1.kind.clone();
        lock(&sim.model).ever_missing = true;
        let paused = pauses.chance(4_000).then(|| Scope::Kind(kind.clone()));
        if let Some(scope) = &paused {
            operator::pause(&clients, scope).await;
        }
        let forced = dice.chance(6_000);
        let before = clients.cluster.waiting_of(&kind).await;
        // By then every index shows them.
        sleep(if forced { Duration::ZERO } else { sim.plan.index_lag }).await;
        let shown = clients.cluster.waiting_of(&kind).await;
        let deleted = delete(&clients, &kind, forced).await;
        let after = clients.cluster.waiting_of(&kind).await;
        let waited: Vec<&String> = before.iter().filter(|id| shown.contains(*id) && after.contains(*id)).collect();
        if !forced && deleted == Some(200) && !waited.is_empty() {
            sim.violate(format!("the policy of {kind} was deleted, although these wait: {waited:?}"));
        }
        sim.count(if deleted == Some(200) { "policies deleted" } else { "policies that are in use" });
        let until = Instant::now() + dice.skewed(Duration::from_secs(1), Duration::from_secs(900));
        while Instant::now() < until && !sim.healed() {
            sleep(Duration::from_secs(1)).await;
        }
        // A deletion whose answer was lost may be applied after its end.
        sleep(LATE_MAX).await;
        // The version that counts by now, so that none is put in place of a later one.
        let now = Instant::now();
        let versions = plan.versions.iter().rev();
        let current = versions.map(|(at, policy)| (sim.start + *at, policy)).find(|(at, _)| *at <= now);
        if let Some((_, policy)) = current {
            clients.put_policy(policy.clone()).await;
        }
        if let Some(scope) = &paused {
            stays_paused(&clients, scope).await;
            operator::resume(&clients, scope).await;
        }
    }
}

/// A pause ends only when somebody ends it, whatever became of the policy.
async fn stays_paused(clients: &Clients, scope: &Scope) {
    let read = |steps: Arc<Steps>| async move { steps.control.switchboard().await }.boxed();
    if let Some(board) = clients.until_done("api", "GET /switches", read).await
        && !board.pausing(scope).any(|pausing| pausing == scope)
    {
        clients.cluster.sim.violate(format!("{scope} was paused, and is not any more: {board:?}"));
    }
}

/// The status of the answer: 200, 404 if an earlier try did it, or 409.
async fn delete(clients: &Clients, kind: &str, forced: bool) -> Option<u16> {
    let path = format!("/policies/{kind}{}", if forced { "?force=true" } else { "" });
    let answer = clients.ask(Method::DELETE, &path, None, &[200, 404, 409]).await;
    answer.map(|(status, _)| status)
}
