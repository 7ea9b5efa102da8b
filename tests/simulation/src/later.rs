//! The batch API answers some calls later: it posts outcomes in parts, some after the deadline, or has the answer when it is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use fanfold::bits::Bits;
use fanfold::ids::TaskId;
use fanfold::policy::Way;
use fanfold_batch_api::{Accepted, Answer, Call, CallError, Cause};
use futures::FutureExt;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use tower::ServiceExt;
use uuid::Uuid;

use crate::api::SimulatedApi;
use crate::check::ByTask;
use crate::clients::{Clients, Passing};
use crate::dice::Dice;
use crate::lock;
use crate::scenario::KindPlan;
use crate::server::Server;

/// Outcomes that are to be posted.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) at: Instant,
    pub(crate) batch: Uuid,
    pub(crate) attempt: u32,
    pub(crate) token: String,
    pub(crate) members: Vec<Value>,
}

/// Calls that are answered later.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaterModel {
    /// The tokens of calls, by batch and attempt.
    pub(crate) tokens: BTreeMap<(Uuid, u32), String>,
    pub(crate) posts: Vec<Post>,
    /// Answers that can be asked for, and since when.
    answers: BTreeMap<(Uuid, u32), (Instant, String)>,
    /// Members of which something was posted.
    pub(crate) posted: BTreeSet<TaskId>,
    /// When the success of a member was known to be recorded.
    pub(crate) recorded: BTreeMap<TaskId, Instant>,
    /// The slots that had an outcome when an attempt began.
    pub(crate) closed: BTreeMap<(Uuid, u32), Bits>,
    /// The members that an attempt called.
    pub(crate) called: BTreeMap<(Uuid, u32), Vec<TaskId>>,
}

impl LaterModel {
    /// Whether a call was made for a member whose outcome was recorded when the attempt began.
    pub(crate) fn closed_was_called(&self, batches: &ByTask) -> Option<String> {
        let has_outcome = |call: &(Uuid, u32), id: &TaskId| {
            let slot = batches.get(id).and_then(|batch| batch.members.slot(id));
            self.closed.get(call).zip(slot).is_some_and(|(closed, slot)| closed.get(slot))
        };
        let mut calls = self.called.iter().flat_map(|(call, members)| members.iter().map(move |id| (call, id)));
        let ((batch, attempt), id) = calls.find(|(call, id)| has_outcome(call, id))?;
        Some(format!("attempt {attempt} of batch {batch} called {id}, whose outcome was recorded when it began"))
    }
}

impl KindPlan {
    /// Draws whether its batch API may answer later.
    pub(crate) fn answer_later(&mut self, dice: &Dice) {
        let within = dice.chance(3_500).then(|| dice.pick(&[20, 60, 300]));
        for (_, policy) in &mut self.versions {
            policy.batch_api.answers_within = within.map(fanfold::policy::Span::from_secs);
        }
    }

    /// Draws whether calls that are answered later are messages of a queue.
    pub(crate) fn queue(&mut self, dice: &Dice) {
        let queued = dice.chance(4_000);
        for (_, policy) in
            self.versions.iter_mut().filter(|(_, policy)| policy.batch_api.answers_within.is_some() && queued)
        {
            policy.batch_api.way = Way::Sqs("arn:aws:sqs:eu-west-1:123456789012:workers".to_owned());
        }
    }
}

impl Server {
    /// Takes a call that is a message of a queue, if its kind's are. It is delivered once or twice, and whoever gets it posts what
    /// became of the members. None: its kind's calls are no messages.
    pub(crate) fn queued(&self, call: &Call) -> Option<Result<Answer, CallError>> {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let kind = lock(&sim.model).kinds.get(&call.kind).map(|kind| (kind.queued, kind.answers_within));
        let Some((true, Some(within))) = kind else { return None };
        let token = lock(&sim.model).later.tokens.get(&(call.batch_id, call.attempt)).cloned()?;
        sim.count("batch API: a message");
        self.post_later(call, within, &token);
        if dice.chance(sim.rate(2_000)) {
            sim.count("batch API: a message came twice");
            self.post_later(call, within, &token);
        }
        if dice.chance(sim.rate(1_500)) {
            sim.count("batch API: a message was sent, and the answer lost");
            return Some(Err(CallError::new(Cause::Silence, "no answer in time")));
        }
        Some(Ok(Answer::Later(Accepted::default())))
    }

    /// Accepts a call of a kind that may be answered later, or does not. The work is done, whenever that is said.
    pub(crate) fn accepts(&self, call: &Call) -> Option<Answer> {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let name = (call.batch_id, call.attempt);
        let within = lock(&sim.model).kinds.get(&call.kind).and_then(|kind| kind.answers_within)?;
        let token = lock(&sim.model).later.tokens.get(&name).cloned()?;
        if !dice.chance(6_000) {
            return None;
        }
        if dice.chance(3_000) {
            sim.count("batch API: is asked for its answer");
            let body = self.outcomes(call);
            let at = self.some_time(within);
            lock(&sim.model).later.answers.insert(name, (at, body));
            let poll = Some("https://a.example/jobs/1".to_owned());
            let after = dice.chance(5_000).then(|| dice.millis(0, 40_000));
            return Some(Answer::Later(Accepted { poll, after, ..Accepted::default() }));
        }
        sim.count("batch API: answers later");
        self.post_later(call, within, &token);
        Some(Answer::Later(Accepted::default()))
    }

    /// When something is posted: often while somebody looks whether the deadline has passed.
    fn some_time(&self, within: Duration) -> Instant {
        let dice = &self.sim.dice;
        match dice.chance(3_000) {
            true => Instant::now() + within + dice.millis(0, 3_000),
            false => Instant::now() + dice.skewed(Duration::from_millis(10), within * 5 / 4),
        }
    }

    /// Does the work of a call, and posts what became of it, in parts.
    fn post_later(&self, call: &Call, within: Duration, token: &str) {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let body: Value = serde_json::from_str(&self.outcomes(call)).unwrap_or_else(|_| {
            let all = call.members.iter().map(|member| json!({"id": member.id, "outcome": "succeeded"}));
            json!({"members": all.collect::<Vec<_>>()})
        });
        let mut members = body["members"].as_array().cloned().unwrap_or_default();
        // Of two outcomes of a member, each in a post of its own, the one that is not true might count.
        let mut named = BTreeSet::new();
        members.retain(|member| named.insert(member["id"].to_string()));
        let size = 1 + dice.below(members.len().max(1));
        for members in members.chunks(size) {
            let (batch, attempt, token) = (call.batch_id, call.attempt, token.to_owned());
            let post = Post { at: self.some_time(within), batch, attempt, token, members: members.to_vec() };
            lock(&sim.model).later.posts.push(post);
        }
    }
}

impl SimulatedApi {
    /// Gives the answer to a call to who asks for it, once it is there.
    pub(crate) async fn asked(&self, call: &Call) -> Result<Answer, CallError> {
        let sim = &self.server.sim;
        let what = format!("ASK for the answer for {} attempt {}", call.batch_id, call.attempt);
        let answer = async {
            sleep(sim.dice.millis(1, 500)).await;
            let answer = lock(&sim.model).later.answers.get(&(call.batch_id, call.attempt)).cloned();
            match answer {
                Some((at, body)) if at <= Instant::now() => Answer::read(body.as_bytes(), call),
                _ => Ok(Answer::Later(Accepted::default())),
            }
        };
        // Who asked may die over it, and then it may be too late to ask again: the answer binds nobody until it is recorded.
        self.worker.call(sim, "the batch API", &what, answer).await
    }
}

/// Posts what is to be posted, when its time comes.
pub(crate) async fn keep_posting(clients: Arc<Clients>) {
    loop {
        sleep(Duration::from_millis(250)).await;
        let posts = std::mem::take(&mut lock(&clients.cluster.sim.model).later.posts);
        for post in posts {
            clients.spawn(send(Arc::clone(&clients), post));
        }
    }
}

/// A post was not recorded.
#[derive(Debug)]
struct NotPosted {
    status: StatusCode,
    body: Value,
}

impl fmt::Display for NotPosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.body)
    }
}

impl Passing for NotPosted {
    fn passing(&self) -> bool {
        self.status == StatusCode::SERVICE_UNAVAILABLE
    }
}

/// Sends a post until it is answered, and perhaps once more.
async fn send(clients: Arc<Clients>, post: Post) {
    let sim = &clients.cluster.sim;
    sleep_until(post.at).await;
    let ids: Vec<TaskId> = post.members.iter().filter_map(|member| member["id"].as_str()?.parse().ok()).collect();
    {
        let mut model = lock(&sim.model);
        model.later.posted.extend(&ids);
        model.counted_attempts.insert((post.batch, post.attempt));
    }
    loop {
        let Some(answer) = post_once(&clients, &post).await else { return };
        if answer["ignored"] == 0 {
            let now = Instant::now();
            let mut model = lock(&sim.model);
            for (id, _) in ids.iter().zip(&post.members).filter(|(_, member)| member["outcome"] == "succeeded") {
                model.later.recorded.entry(*id).or_insert(now);
            }
        }
        let Some(pause) = clients.repeat() else { return };
        sim.count("posts again");
        sleep(pause).await;
    }
}

/// Posts until there is an answer. None: it was refused, because of a stranger or a member that was named twice.
async fn post_once(clients: &Arc<Clients>, post: &Post) -> Option<Value> {
    let path = format!("/batches/{}/outcomes", post.batch);
    let body = json!({ "members": post.members }).to_string();
    let what = format!("POST {path} of attempt {}: {body}", post.attempt);
    let token = post.token.clone();
    let sent = clients.until_done("handle", &what, move |steps| {
        let (path, body, token) = (path.clone(), body.clone(), token.clone());
        async move {
            let failed = |problem: String| NotPosted { status: StatusCode::BAD_REQUEST, body: Value::from(problem) };
            let request = Request::post(path).header("fanfold-token", token).body(Body::from(body));
            let request = request.map_err(|error| failed(error.to_string()))?;
            let routes = fanfold_handle::router(Arc::clone(&steps.all.handle));
            let answer = routes.oneshot(request).await.map_err(|error| failed(error.to_string()))?;
            let status = answer.status();
            let body = to_bytes(answer.into_body(), usize::MAX).await.map_err(|error| failed(error.to_string()))?;
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            match status {
                StatusCode::OK => Ok(Some(body)),
                StatusCode::UNPROCESSABLE_ENTITY if body["code"] == "invalid_outcomes" => Ok(None),
                status => Err(NotPosted { status, body }),
            }
        }
        .boxed()
    });
    sent.await.flatten()
}
