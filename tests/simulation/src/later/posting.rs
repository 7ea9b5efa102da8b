//! Outcomes are posted when their time comes: some more than once, and some while their lane is paused.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use fanfold::control::Scope;
use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use futures::FutureExt;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use tower::ServiceExt;

use super::Post;
use crate::clients::{Clients, Passing};
use crate::dice::Dice;
use crate::lock;
use crate::model::Model;
use crate::operator;
use crate::paused::KNOWN_WITHIN;

/// For how long outcomes wait for their lane to be paused.
const FOR_A_PAUSE: Duration = Duration::from_secs(300);

/// For how long outcomes that come late wait for the next call.
const FOR_THE_NEXT_CALL: Duration = Duration::from_secs(900);

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
    match post.late {
        true => wait_for_the_next_call(&clients, &post).await,
        false => wait_for_a_pause(&clients, &post).await,
    }
    let ids: Vec<TaskId> = post.members.iter().filter_map(|member| member["id"].as_str()?.parse().ok()).collect();
    {
        let mut model = lock(&sim.model);
        model.later.posted.extend(&ids);
        let retried = ids.iter().zip(&post.members).filter(|(_, member)| member["outcome"] == "retry");
        model.later.retried.extend(retried.map(|(id, _)| *id));
        model.counted_attempts.insert((post.batch, post.attempt));
    }
    loop {
        let stale = stale_retries(&lock(&sim.model), &post);
        let sent = Instant::now();
        let Some(answer) = post_once(&clients, &post).await else { return };
        if answer["ignored"].as_u64().is_some_and(|ignored| ignored < stale) {
            sim.violate(format!("{post:?} came after the end of its attempt, and a retry counts: {answer}"));
        }
        if answer["ignored"] == 0 {
            let now = Instant::now();
            let mut model = lock(&sim.model);
            model.later.asked_to_wait(&ids, &post.members, sent);
            for (id, _) in ids.iter().zip(&post.members).filter(|(_, member)| member["outcome"] == "succeeded") {
                model.later.recorded.entry(*id).or_insert(now);
            }
        }
        let Some(pause) = clients.repeat() else { return };
        sim.count("posts again");
        sleep(pause).await;
    }
}

/// Waits for a while until an attempt has begun after the one that the outcomes are of.
async fn wait_for_the_next_call(clients: &Clients, post: &Post) {
    let sim = &clients.cluster.sim;
    let until = Instant::now() + FOR_THE_NEXT_CALL;
    let has_begun = |model: &Model| {
        let mut later = model.begun.range((post.batch, post.attempt + 1)..=(post.batch, u32::MAX));
        later.next().is_some()
    };
    while !has_begun(&lock(&sim.model)) && Instant::now() < until {
        sleep(Duration::from_millis(250)).await;
    }
}

/// Some outcomes wait for a while until their lane is paused, and everybody must know of it.
async fn wait_for_a_pause(clients: &Clients, post: &Post) {
    let sim = &clients.cluster.sim;
    // Of dice of their own: the parts of one answer wait together. Where no operator pauses lanes all the time, nobody waits for that.
    let dice = Dice::new(sim.seed, &format!("posts in pauses {} {}", post.batch, post.attempt));
    if !operator::pauses(clients) || !dice.chance(sim.rate(4_000)) {
        return;
    }
    let lane: Option<Lane> = lock(&sim.model).lanes.get(&post.batch).and_then(|lane| lane.parse().ok());
    let Some(lane) = lane else { return };
    lock(&sim.model).control.awaited.insert(lane.clone());
    let until = Instant::now() + FOR_A_PAUSE;
    while Instant::now() < until && !sim.healed() {
        if is_paused(&lock(&sim.model), &lane) {
            sim.count("posts in pauses");
            break;
        }
        sleep(Duration::from_secs(1)).await;
    }
    lock(&sim.model).control.awaited.remove(&lane);
}

/// Whether a lane has been paused for so long that everybody must know of it.
fn is_paused(model: &Model, lane: &Lane) -> bool {
    let known = |scope: &Scope| model.control.paused.get(scope).is_some_and(|since| since.elapsed() > KNOWN_WITHIN);
    Scope::of(lane).iter().any(known)
}

/// How many members a post wants to be called again, if its attempt is over: its end was written down before the post
/// is sent, or that of a later one. Whoever takes the post knows that. A lost attempt is over with the one that repeats
/// its call.
fn stale_retries(model: &Model, post: &Post) -> u64 {
    if model.later.ended.get(&post.batch).is_none_or(|ended| post.attempt > *ended) {
        return 0;
    }
    post.members.iter().filter(|member| member["outcome"] == "retry").count() as u64
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
