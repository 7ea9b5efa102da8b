//! Users who only look: what the HTTP API says of fan-outs, tasks, batches and policies must be so, and stay so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use fanfold::ids::{ItemId, ItemRange, TaskId};
use futures::FutureExt;
use serde_json::Value;
use tokio::time::Instant;
use tower::ServiceExt;
use uuid::Uuid;

use crate::clients::Clients;
use crate::cluster::Pool;
use crate::{estimated, listed, lock};

/// A function behind the HTTP API may take as long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long readers wait for a fan-out's end.
const WAIT: Duration = Duration::from_secs(2);

/// Looks at one thing after the other while faults last.
pub(crate) async fn keep_reading(clients: Arc<Clients>) {
    let sim = Arc::clone(&clients.cluster.sim);
    let most = sim.plan.until.as_millis() as u64 / 8;
    while !sim.healed() {
        tokio::time::sleep(clients.readers.millis(200, most)).await;
        let mut paths = paths(&clients);
        clients.readers.shuffle(&mut paths);
        paths.truncate(3);
        for path in paths {
            read(&clients, &path).await;
        }
    }
}

/// Looks at everything once, when everything is quiet.
pub(crate) async fn read_everything(clients: &Arc<Clients>) {
    for path in paths(clients) {
        if !read(clients, &path).await {
            clients.cluster.sim.violate(format!("GET {path} was not answered although nothing fails"));
        }
    }
}

/// Everything there is to look at, in the same order for the same state.
fn paths(clients: &Clients) -> Vec<String> {
    let model = lock(&clients.cluster.sim.model);
    let mut paths = vec!["/policies".to_owned(), "/health".to_owned()];
    paths.extend(listed::paths(&model));
    paths.extend(model.kinds.keys().map(|kind| format!("/policies/{kind}")));
    for id in model.fanouts.keys() {
        paths.extend([
            format!("/fanouts/{id}"),
            format!("/fanouts/{id}?progress=exact"),
            format!("/fanouts/{id}/groups"),
            format!("/fanouts/{id}?wait={}s", WAIT.as_secs()),
        ]);
        paths.extend(["pending", "succeeded", "failed"].map(|state| format!("/fanouts/{id}/items?state={state}")));
    }
    paths.extend(model.estimated.keys().map(|id| format!("/fanouts/{id}")));
    // Of many, some will do.
    paths.extend(model.tasks.keys().step_by(1 + model.tasks.len() / 20).map(|id| format!("/tasks/{id}")));
    let called = model.called();
    paths.extend(called.iter().step_by(1 + called.len() / 10).map(|id| format!("/batches/{id}")));
    paths
}

/// Makes one request and checks the answer; whether there was one.
async fn read(clients: &Arc<Clients>, path: &str) -> bool {
    let sim = &clients.cluster.sim;
    let opened = fanout_of(path).is_some_and(|id| sim.is_opened(id));
    let task = path.strip_prefix("/tasks/").and_then(|id| id.parse::<TaskId>().ok());
    let answered = task.is_some_and(|id| lock(&sim.model).tasks.get(&id).is_some_and(|task| task.answered));
    let Some(lease) = clients.cluster.lease(Pool::Steps, false).await else { return false };
    let asked = path.to_owned();
    let began = Instant::now();
    let run = clients.cluster.run(lease, "api", TIMEOUT, move |steps| {
        async move {
            let request = Request::get(asked).body(Body::empty()).map_err(|error| error.to_string())?;
            let answer = steps.routes().oneshot(request).await.map_err(|error| error.to_string())?;
            let status = answer.status();
            let body = to_bytes(answer.into_body(), usize::MAX).await.map_err(|error| error.to_string())?;
            Ok::<_, String>((status, serde_json::from_slice::<Value>(&body).unwrap_or_default()))
        }
        .boxed()
    });
    let Some(answer) = run.await else { return false };
    let (status, body) = match answer {
        Ok(answer) => answer,
        Err(problem) => {
            sim.violate(format!("GET {path} could not be made: {problem}"));
            return false;
        }
    };
    let shown = serde_json::to_string(&body).unwrap_or_default();
    sim.trace.line("reader", &format!("GET {path} -> {status} {shown}"));
    match status {
        StatusCode::OK => {
            if path.contains("?wait=") && body["ended"] == false && began.elapsed() < WAIT {
                sim.violate(format!("GET {path} was answered after {:?}: {body}", began.elapsed()));
            }
            check(clients, path, &body);
        }
        // Of a task that is dropped for its key nothing is stored if no user has its id.
        StatusCode::NOT_FOUND if path.starts_with("/tasks/") && !answered => {}
        StatusCode::NOT_FOUND if path.starts_with("/fanouts/") && !opened => {}
        StatusCode::NOT_FOUND if path.starts_with("/policies/") && lock(&sim.model).ever_missing && !sim.rests() => {}
        StatusCode::SERVICE_UNAVAILABLE => return false,
        _ => sim.violate(format!("GET {path} was answered with {status}: {body}")),
    }
    true
}

/// The fan-out that a path names.
fn fanout_of(path: &str) -> Option<Uuid> {
    path.strip_prefix("/fanouts/")?.get(..36)?.parse().ok()
}

/// What is shown must be possible, and what has ended stays as it ended.
fn check(clients: &Clients, path: &str, body: &Value) {
    let problem = if path.ends_with("/groups") {
        groups(clients, path, body)
    } else if let Some((_, state)) = path.split_once("/items?state=") {
        items(clients, path, state, body)
    } else if path.starts_with("/fanouts/") {
        fanout(clients, body)
    } else if path.starts_with("/fanouts") {
        listed::page(&clients.cluster.sim, path, body)
    } else if let Some(id) = path.strip_prefix("/tasks/") {
        id.parse().ok().and_then(|id| task(clients, &id, body))
    } else if path.starts_with("/batches/") {
        batch(clients, body)
    } else if let Some(kind) = path.strip_prefix("/policies/") {
        (body["kind"] != kind).then(|| "is another policy".to_owned())
    } else if path == "/health" {
        health(body)
    } else {
        let sim = &clients.cluster.sim;
        let (known, ever_missing) = {
            let model = lock(&sim.model);
            (model.kinds.len(), model.ever_missing)
        };
        let missing = ever_missing && !sim.rests();
        let listed = body["policies"].as_array().map_or(usize::MAX, Vec::len);
        let right = listed == known || missing && listed < known;
        (!right).then(|| format!("does not list {known} policies"))
    };
    let problem = problem.or_else(|| ended(path, body).and_then(|end| changed(clients, path, end)));
    if let Some(problem) = problem {
        clients.cluster.sim.violate(format!("GET {path} {problem}: {body}"));
    }
}

/// What is found says what it is, how bad it is, and since when; nothing is found that lies ahead.
fn health(body: &Value) -> Option<String> {
    let findings = body["findings"].as_array().cloned().unwrap_or_default();
    let level = |finding: &Value| ["stale", "error"].iter().position(|level| finding["level"] == *level);
    let worst = findings.iter().map(level).max();
    let said = ["stale", "error"].iter().position(|level| body["status"] == *level);
    let named = |finding: &Value| {
        ["what", "says", "fix"].iter().all(|name| finding[name].as_str().is_some_and(|text| !text.is_empty()))
    };
    let right =
        worst.unwrap_or(None) == said && (said.is_some() || body["status"] == "ok") && findings.iter().all(named);
    (!right).then(|| "says what cannot be".to_owned())
}

/// How a fan-out or task ended, if it did.
fn ended(path: &str, body: &Value) -> Option<String> {
    let status = body["status"]
        .as_str()
        .filter(|status| ["succeeded", "failed", "dropped", "cancelled", "done"].contains(status));
    let counts = ["failed", "duplicates", "missing", "total"].map(|name| body[name].to_string());
    let ended = (body["ended"] == true).then(|| format!("{}: {counts:?}", body["state"]));
    let end = status.map(str::to_owned).or(ended);
    end.filter(|_| !path.starts_with("/policies"))
}

fn changed(clients: &Clients, path: &str, end: String) -> Option<String> {
    let mut model = lock(&clients.cluster.sim.model);
    let first = model.shown.entry(path.to_owned()).or_insert_with(|| end.clone());
    (*first != end).then(|| format!("had ended as {first}"))
}

fn fanout(clients: &Clients, body: &Value) -> Option<String> {
    if body["mode"] == "estimated" {
        return estimated::check::shown(&lock(&clients.cluster.sim.model), body);
    }
    let number = |name: &str| body[name].as_u64().unwrap_or(u64::MAX);
    let (total, done, failed, succeeded) = (number("total"), number("done"), number("failed"), number("succeeded"));
    if done > total
        || succeeded.checked_add(failed).and_then(|some| some.checked_add(number("duplicates"))) != Some(done)
    {
        return Some("does not add up".to_owned());
    }
    let complete = body["complete"] == true;
    if complete && (done != total || body["progress"] != "exact" || body["state"] != "completed") {
        return Some("is complete but not done".to_owned());
    }
    let ended = body["ended"] == true;
    if ended && (done + number("missing") != total || body["progress"] != "exact") {
        return Some("ended but does not add up".to_owned());
    }
    let model = lock(&clients.cluster.sim.model);
    let id: Option<Uuid> = body["id"].as_str().and_then(|id| id.parse().ok());
    let Some(known) = id.and_then(|id| model.fanouts.get(&id)) else {
        return Some("is no fan-out of a user".to_owned());
    };
    if complete && !(known.sealing && known.items.iter().all(|item| model.may_be_done(item))) {
        return Some("is complete too early".to_owned());
    }
    let may_be_done = known.items.iter().filter(|item| model.may_be_done(item)).count() as u64;
    // A user gets the ids of added items after they exist.
    let known_all = known.items.len() as u64 == total;
    (known_all && done > may_be_done).then(|| format!("may have {may_be_done} done"))
}

/// The index may lag, so some groups may not be named yet; but none twice, and none that is not there.
fn groups(clients: &Clients, path: &str, body: &Value) -> Option<String> {
    let groups = body["groups"].as_array().into_iter().flatten();
    let named: BTreeMap<&str, u64> =
        groups.filter_map(|group| Some((group["id"].as_str()?, group["upto"].as_u64()?))).collect();
    let model = lock(&clients.cluster.sim.model);
    let known = model.fanouts.get(&fanout_of(path)?)?;
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    known.items.iter().for_each(|item| *sizes.entry(item.group.to_string()).or_default() += 1);
    // A user gets the groups of added items after they exist.
    let wrong = |(id, upto): (&&str, &u64)| sizes.get(*id).is_some_and(|size| size != upto);
    let twice = Some(named.len()) != body["groups"].as_array().map(Vec::len);
    (twice || named.iter().any(wrong)).then(|| "names groups that are others".to_owned())
}

/// Items are listed once, and not as what they cannot be: what was acked one way, and nobody else works on, did not end the other way.
fn items(clients: &Clients, path: &str, state: &str, body: &Value) -> Option<String> {
    let model = lock(&clients.cluster.sim.model);
    let known = model.fanouts.get(&fanout_of(path)?)?;
    let mut listed = BTreeSet::new();
    for name in body["items"].as_array()? {
        let name = name.as_str()?;
        let item = || name.parse::<ItemId>().map(|first| ItemRange { first, last: first.index });
        let ItemRange { first, last } = name.parse::<ItemRange>().or_else(|_| item()).ok()?;
        for index in first.index..=last {
            let item = ItemId { index, ..first };
            let wrong = match state {
                "failed" => known.acked.get(&item) == Some(&false),
                "succeeded" => known.acked.get(&item) == Some(&true) || !model.may_be_done(&item),
                _ => false,
            };
            if wrong || !listed.insert(item) {
                return Some(format!("lists {item}, which is not {state}, or twice"));
            }
        }
    }
    None
}

fn task(clients: &Clients, id: &TaskId, body: &Value) -> Option<String> {
    let model = lock(&clients.cluster.sim.model);
    let said = model.said.get(id).copied().unwrap_or_default();
    let wrong = match body["status"].as_str() {
        Some("succeeded") => !said.succeeded,
        Some("failed") => body["error"].as_str().is_none_or(str::is_empty),
        Some("created" | "batched" | "in_progress") => false,
        Some("dropped") => !matches!(id, TaskId::Item(item) if model.may_be_missing(item)),
        Some("cancelled") => !model.may_be_cancelled(id),
        Some("duplicate") => body["duplicate_of"].as_str().is_none() || model.rivals(id).len() < 2,
        _ => true,
    };
    wrong.then(|| format!("is not what the batch API said: {said:?}"))
}

fn batch(clients: &Clients, body: &Value) -> Option<String> {
    let members = body["members"].as_array().cloned().unwrap_or_default();
    let pending = members.iter().filter(|member| member["outcome"] == "pending").count();
    let done = body["status"] == "done";
    // Posted outcomes are written first, and the end of their attempt after that.
    let model = lock(&clients.cluster.sim.model);
    let kind = body["kind"].as_str().and_then(|kind| model.kinds.get(kind));
    if !done && kind.is_some_and(|kind| kind.answers_within.is_some()) {
        return None;
    }
    (done != (pending == 0)).then(|| format!("has {pending} members without an outcome"))
}
