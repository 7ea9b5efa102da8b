//! Dev sessions that come and go: they take the lease on a kind, handle some of the calls that are sent to them, and give it back, or are
//! killed. Nobody calls them later, and what they leave is called by the stack.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use fanfold::limits::{CALL_WITHIN, DEV_LEASE, DEV_SEND_TIMEOUT};
use fanfold::policy::{BatchApi, Way};
use fanfold_batch_api::{Accepted, Answer, CallError, Cause, Request};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::clients::Clients;
use crate::dice::{Dice, hash};
use crate::later::Post;
use crate::lock;
use crate::server::{DOOMED, Server};

/// What the ARNs of their queues begin with.
pub(crate) const QUEUES: &str = "arn:aws:sqs:eu-west-1:123456789012:fanfold-dev-";

/// How long outcomes may come. Those that come do so long before.
const WITHIN: &str = "10m";

/// How a session is answered: somebody else may have the kind, or there is none.
const ANSWERS: &[u16] = &[200, 404, 409];

/// A session, by its queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionModel {
    /// From then on its lease does not hold, by a clock that is right.
    ended: Option<Instant>,
    /// Calls that it hands back when it ends.
    held: Vec<Post>,
}

/// The sessions of a run.
pub(crate) type DevModel = BTreeMap<String, SessionModel>;

/// The queue of the session that a call goes to, if it does.
pub(crate) fn queue(batch_api: &BatchApi) -> Option<&str> {
    match &batch_api.way {
        Way::Sqs(queue) if queue.starts_with(QUEUES) => Some(queue),
        _ => None,
    }
}

impl Server {
    /// A call is sent to a session, which posts outcomes soon, keeps it until it ends, or loses it.
    pub(crate) fn to_session(&self, queue: &str, request: &Request<'_>) -> Result<Answer, CallError> {
        let (sim, dice, call) = (&self.sim, &self.sim.dice, request.call);
        let late = CALL_WITHIN + DEV_SEND_TIMEOUT + sim.plan.skew * 2;
        let ended = lock(&sim.model).dev.get(queue).and_then(|session| session.ended);
        if let Some(since) = ended.map(|ended| ended.elapsed()).filter(|since| *since > late) {
            sim.violate(format!("batch {} was sent to a dev session {since:?} after its lease", call.batch_id));
        }
        let Some(token) = request.token.clone() else {
            sim.violate(format!("batch {} was sent to a dev session without a token", call.batch_id));
            return Err(CallError::new(Cause::NotMade, "no token"));
        };
        if dice.chance(sim.rate(1_000)) {
            sim.count("dev session: its queue is gone");
            return Err(CallError::new(Cause::Status(404), "QueueDoesNotExist"));
        }
        let (batch, attempt) = (call.batch_id, call.attempt);
        let post = |at, members| Post { at, batch, attempt, token: token.clone(), members, late: false };
        if ended.is_some() || dice.chance(sim.rate(2_500)) {
            sim.count("dev session: loses a call");
        } else if dice.chance(4_000) {
            let again = call.members.iter().map(|member| json!({"id": member.id, "outcome": "retry", "error": "back"}));
            let held = post(Instant::now(), again.collect());
            lock(&sim.model).dev.entry(queue.to_owned()).or_default().held.push(held);
        } else {
            sim.count("dev session: handles a call");
            let keeps = lock(&sim.model).kinds.get(&call.kind).is_some_and(|kind| kind.keeps);
            let mut members = Vec::new();
            for member in &call.members {
                let doomed = self.is_doomed(member);
                self.say(member.id, !doomed);
                let mut said =
                    json!({"id": member.id, "outcome": if doomed { "failed" } else { "succeeded" }, "error": DOOMED});
                if keeps && !doomed {
                    said["result"] = lock(&sim.model).returns(call, member.id);
                }
                members.push(said);
            }
            let at = Instant::now() + dice.skewed(Duration::from_millis(10), Duration::from_secs(40));
            lock(&sim.model).later.posts.push(post(at, members));
        }
        Ok(Answer::Later(Accepted::default()))
    }
}

/// Has sessions come and go until faults stop.
pub(crate) async fn sessions(clients: Arc<Clients>) {
    let sim = Arc::clone(&clients.cluster.sim);
    let dice = Dice::new(sim.seed, "dev sessions");
    let kinds: Vec<String> = clients.scenario.kinds.iter().map(|plan| plan.versions[0].1.kind.clone()).collect();
    let mut number = 0;
    while !sim.healed() && !kinds.is_empty() {
        sleep(dice.skewed(Duration::from_secs(1), Duration::from_secs(15))).await;
        number += 1;
        session(&clients, &dice, &dice.pick(&kinds), number).await;
    }
}

/// One session.
async fn session(clients: &Clients, dice: &Dice, kind: &str, number: u32) {
    let sim = &clients.cluster.sim;
    let (id, queue) = (hash(sim.seed, &["session", &number.to_string()]), format!("{QUEUES}{number}"));
    let body = |renew: bool| json!({"session": id, "queue": queue, "answers_within": WITHIN, "renew": renew});
    lock(&sim.model).dev.insert(queue.clone(), SessionModel::default());
    let ends = Instant::now() + dice.skewed(Duration::from_secs(20), Duration::from_secs(600));
    let mut holds = None;
    while Instant::now() < ends && !sim.healed() {
        let path = format!("/policies/{kind}/dev");
        match clients.ask(Method::PUT, &path, Some(body(holds.is_some())), ANSWERS).await {
            // It holds from some moment before the answer on.
            Some((200, _)) => holds = Some(Instant::now()),
            _ => break,
        }
        sleep(dice.millis(5_000, 25_000)).await;
    }
    let Some(renewed) = holds else {
        lock(&sim.model).dev.entry(queue).or_default().ended = Some(Instant::now() + DEV_LEASE);
        return;
    };
    if dice.chance(4_000) {
        sim.count("dev sessions killed");
        lock(&sim.model).dev.entry(queue).or_default().ended = Some(renewed + DEV_LEASE);
        return;
    }
    sim.count("dev sessions given back");
    // A renewal that a dead worker had begun may still be written: then the lease ends by itself.
    let path = format!("/policies/{kind}/dev?session={id}");
    let back = clients.ask(Method::DELETE, &path, None, ANSWERS).await;
    let ended = if back.is_some_and(|(status, _)| status == 200) { Instant::now() } else { renewed + DEV_LEASE };
    let mut model = lock(&sim.model);
    let session = model.dev.entry(queue).or_default();
    session.ended = Some(ended);
    let held = std::mem::take(&mut session.held);
    model.later.posts.extend(held);
}

/// Whether there are sessions in a run.
pub(crate) fn may_be(clients: &Clients) -> bool {
    clients.scenario.mood.hangs.is_none() && clients.cluster.sim.seed % 4 == 2
}
