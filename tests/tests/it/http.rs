//! The HTTP faces, merged into one server as the local runner does, over a whole stack.

mod ack_shapes;
mod acks;
mod again;
mod batch_request;
mod control;
mod counts;
mod description;
mod dev;
mod duplicates;
mod fanouts;
mod follow;
mod gather;
mod groups;
mod health;
mod hostile;
mod item_states;
mod listed;
mod named;
mod notify_on;
mod policies;
mod problems;
mod producers;
mod reference;
mod results;
mod reused;
mod shapes;
mod streams;
mod tasks;
mod unknown_items;
mod waiting;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use fanfold_ack::Ack;
use fanfold_api::Api;
use fanfold_register::Register;
use fanfold_tests::{Crash, NOBODY, ScriptedApi, TestStack, changed};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A stack and a server over it.
struct Server {
    stack: TestStack,
    router: Router,
    /// Where it listens; requests go straight to its routes if it does not.
    listens: Option<SocketAddr>,
}

/// An answer.
#[derive(Debug)]
struct HttpAnswer {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

/// A fan-out that was opened.
struct Opened {
    fanout: String,
    path: String,
    /// The ids of its groups.
    groups: Vec<String>,
    /// The ids of its items.
    items: Vec<String>,
}

impl Server {
    async fn start() -> Self {
        Self::over(TestStack::new(parcel(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await)
    }

    fn over(stack: TestStack) -> Self {
        let api = Arc::new(Api::from_environment(stack.surroundings()).unwrap());
        let router = routes(&stack, api);
        Self { stack, router, listens: None }
    }

    /// The same as `fanfold up` serves it, on a port: for tests on real time.
    async fn listening() -> Self {
        let server = Self::start().await;
        let listens = Some(wire::serve(server.router.clone()).await);
        Self { listens, ..server }
    }

    /// The same server, but commands may be called.
    fn with_commands(self) -> Self {
        let api = Api::from_environment(self.stack.surroundings()).unwrap().allow_commands(true);
        Self { router: routes(&self.stack, Arc::new(api)), ..self }
    }

    /// The answer of a request, which is one of those described.
    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> HttpAnswer {
        let reply = self.call(method, path, headers, body).await;
        description::check(method, path, &reply);
        reply
    }

    async fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> HttpAnswer {
        if let Some(address) = self.listens {
            return wire::call(address, method, path, headers, body.into()).await;
        }
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        HttpAnswer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    async fn get(&self, path: &str) -> HttpAnswer {
        self.send("GET", path, &[], Body::empty()).await
    }

    /// The items that a list has, of all its pages, and how many pages there were.
    async fn pages(&self, path: &str, name: &str) -> (Vec<Value>, usize) {
        let (mut found, mut pages, mut next) = (Vec::new(), 0, Some(path.to_owned()));
        while let Some(path) = next {
            let page = self.get(&path).await.ok(200);
            found.extend(page[name].as_array().unwrap().clone());
            pages += 1;
            next = page["next"].as_str().map(str::to_owned);
        }
        (found, pages)
    }

    async fn put(&self, path: &str, body: Value) -> HttpAnswer {
        self.send("PUT", path, &[("content-type", "application/json")], body.to_string()).await
    }

    async fn post(&self, path: &str, body: Value) -> HttpAnswer {
        self.send("POST", path, &[("content-type", "application/json")], body.to_string()).await
    }

    /// Sends a stream to `POST /tasks`. Returns the results of its lines.
    async fn stream(&self, key: Option<&str>, body: impl Into<Body>) -> Result<Vec<Value>, HttpAnswer> {
        let mut request = Request::post("/tasks").header("content-type", "application/x-ndjson");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        if parts.status != 202 {
            let body = serde_json::from_slice(&bytes).unwrap();
            let reply = HttpAnswer { status: parts.status.as_u16(), headers: parts.headers, body };
            description::check("POST", "/tasks", &reply);
            return Err(reply);
        }
        assert_eq!(parts.headers["content-type"], "application/x-ndjson");
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Ok(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    /// Opens a fan-out.
    async fn open(&self, body: Value) -> Opened {
        let opened = self.post("/fanouts", body).await.ok(201);
        let fanout = opened["id"].as_str().unwrap().to_owned();
        let groups = opened["groups"].as_array().unwrap().iter();
        let groups = groups.map(|group| group["id"].as_str().unwrap().to_owned()).collect();
        let items = item_ids(&fanout, &opened["groups"]);
        Opened { path: format!("/fanouts/{fanout}"), fanout, groups, items }
    }

    async fn delete(&self, path: &str) -> HttpAnswer {
        self.send("DELETE", path, &[], Body::empty()).await
    }

    async fn post_once(&self, path: &str, key: &str, body: Value) -> HttpAnswer {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        self.send("POST", path, &headers, body.to_string()).await
    }
}

impl HttpAnswer {
    /// The body of a success.
    #[track_caller]
    fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/json");
        self.body
    }

    /// Checks that this is a problem with that status and code, and answers its detail and the fields it names.
    #[track_caller]
    fn problem(&self, status: u16, code: &str) -> (String, Vec<String>) {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{}", self.body);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["status"], status);
        assert_eq!(self.body["type"], format!("urn:fanfold:problem:{code}"));
        assert!(self.body["title"].is_string());
        let errors = self.body["errors"].as_array().cloned().unwrap_or_default();
        let fields = errors.iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect();
        (self.body["detail"].as_str().unwrap().to_owned(), fields)
    }
}

fn routes(stack: &TestStack, api: Arc<Api>) -> Router {
    let register = Arc::new(Register::from_environment(stack.surroundings()).unwrap());
    let ack = Arc::new(Ack::from_environment(stack.surroundings()).unwrap());
    let routes = fanfold_api::router(api).merge(fanfold_register::router(register)).merge(fanfold_ack::router(ack));
    fanfold_http::with_fallbacks(routes.merge(fanfold_handle::router(Arc::clone(&stack.handle))))
}

/// The ids of the items of groups, as opening and adding answer them.
fn item_ids(fanout: &str, groups: &Value) -> Vec<String> {
    let ids = |group: &Value| {
        let id = group["id"].as_str().unwrap().to_owned();
        (0..group["upto"].as_u64().unwrap()).map(move |index| format!("{id}:{index}"))
    };
    groups.as_array().unwrap().iter().flat_map(ids).map(|item| format!("{fanout}:{item}")).collect()
}

/// The ids of fan-outs, as a list has them.
fn ids(fanouts: &[Value]) -> Vec<String> {
    fanouts.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

/// The policy of parcels, changed.
fn parcel(changes: Value) -> Value {
    let policy =
        json!({"kind": "parcel", "target": "content.depot", "max_attempts": 1, "batch_api": {"command": ["truck"]}});
    changed(policy, changes)
}
