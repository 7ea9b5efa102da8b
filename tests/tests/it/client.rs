//! The client for Rust, over a whole stack that is served over HTTP, and its own SQS.

mod acks;
mod consumers;
mod fanouts;
mod ids;
mod readme;
mod repeats;

use std::sync::Arc;

use axum::Router;
use fanfold_ack::Ack;
use fanfold_api::Api;
use fanfold_client::Fanfold;
use fanfold_local::http::{Timeouts, serve};
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use serde_json::json;
use tokio::net::TcpListener;

/// A stack, and a client of its HTTP API.
async fn stack() -> (TestStack, Fanfold) {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), Crash::never()).await;
    let api = fanfold_api::router(Arc::new(Api::from_environment(stack.surroundings()).unwrap()));
    let ack = fanfold_ack::router(Arc::new(Ack::from_environment(stack.surroundings()).unwrap()));
    let client = Fanfold::new(&served(fanfold_http::with_fallbacks(api.merge(ack))).await).unwrap();
    (stack, client)
}

/// Serves routes; answers where.
async fn served(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, router, Timeouts::default()));
    format!("http://{address}")
}
