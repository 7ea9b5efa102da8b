//! Notices over real HTTP: CloudEvents, signed so that the library of the Standard Webhooks scheme accepts them.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use fanfold::clock::World;
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::notice::{NOTICE_MEDIA_TYPE, Notice};
use fanfold_http_client::Guard;
use fanfold_local::Engine;
use fanfold_notify::{HttpWebhooks, Webhooks};
use serde_json::Value;
use standardwebhooks::Webhook;

use super::*;

const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What posts notices, with these secrets.
fn http(secrets: &'static str) -> Result<HttpWebhooks, ConfigError> {
    let engine = Engine::memory().unwrap();
    let lookup = move |name: &str| (name == variables::WEBHOOK_SECRETS).then(|| secrets.to_owned());
    let surroundings = Surroundings::new(engine.dynamodb(), engine.sqs(), World::system(), lookup);
    HttpWebhooks::from_environment(&surroundings, Guard::local(|_| None))
}

/// The notice of a fan-out's end.
async fn notice() -> Notice {
    let stack = stack().await;
    let fanout = completed(&stack, URL).await;
    Notice::ended(&stack.header(fanout).await)
}

/// Posts a notice to a receiver, and returns what came there.
async fn posted(secrets: &'static str, notice: &Notice) -> (HeaderMap, Bytes) {
    let heard = Arc::new(Mutex::new(None));
    let hear = Arc::clone(&heard);
    let receiver = Router::new().route(
        "/hook",
        post(async move |headers: HeaderMap, body: Bytes| {
            *hear.lock().unwrap() = Some((headers, body));
        }),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, receiver).await });
    http(secrets).unwrap().post(&url, notice, World::system().now()).await.unwrap();
    serving.abort();
    let heard = heard.lock().unwrap().take();
    heard.unwrap()
}

#[tokio::test]
async fn the_schemes_own_library_accepts_them_with_the_old_secret_and_with_the_new_one() {
    let (headers, body) = posted(format!("{NEW} {OLD}").leak(), &notice().await).await;
    for secret in [OLD, NEW] {
        Webhook::new(secret).unwrap().verify(&body, &headers).unwrap();
    }
    let stranger = Webhook::from_bytes(vec![7; 24]).unwrap();
    stranger.verify(&body, &headers).unwrap_err();
    let changed = String::from_utf8(body.to_vec()).unwrap().replace("\"total\":2", "\"total\":3");
    assert_ne!(changed.as_bytes(), body);
    Webhook::new(OLD).unwrap().verify(changed.as_bytes(), &headers).unwrap_err();
}

#[tokio::test]
async fn a_notice_is_a_cloud_event() {
    let notice = notice().await;
    let (headers, body) = posted("", &notice).await;
    assert_eq!(headers["content-type"], NOTICE_MEDIA_TYPE);
    assert_eq!(headers["webhook-id"].to_str().unwrap(), notice.id.to_string());
    assert!(headers.get("webhook-signature").is_none(), "there is no secret");
    let event: Value = serde_json::from_slice(&body).unwrap();
    for (attribute, is) in [("specversion", "1.0"), ("type", "fanout.completed")] {
        assert_eq!(event[attribute], is);
    }
    let fanout = event["data"]["fanout"].as_str().unwrap();
    assert_eq!(event["source"], format!("/fanouts/{fanout}"));
    assert_eq!(event["id"], notice.id.to_string());
    let ended_at = event["data"]["ended_at"].as_u64().unwrap();
    assert_eq!(event["time"], fanfold::clock::Timestamp(ended_at).rfc3339());
    assert_eq!(serde_json::from_slice::<Notice>(&body).unwrap(), notice);
}

#[test]
fn a_secret_that_cannot_be_used_is_refused_and_not_shown() {
    for secrets in [
        "C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
        "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD whsec_c2hvcnQ=",
        "whsec_C2FVsBQIhrscChlQIMV-b5sSYspob7oD",
    ] {
        let error = http(secrets).unwrap_err().to_string();
        assert!(error.starts_with("environment variable WEBHOOK_SECRETS is `… (secret "), "{error}");
        assert!(error.contains("24 to 64 random bytes") && !error.contains("C2FV"), "{error}");
    }
}
