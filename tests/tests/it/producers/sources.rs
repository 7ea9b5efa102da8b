//! Sources over HTTP, asked for real.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Json, Router, routing};
use fanfold::clock::Timestamp;
use fanfold::limits::SOURCE_ANSWER_BYTES_MAX;
use fanfold::producing::Source;
use fanfold_produce::{SourceAnswer, SourceError, SourceRequest, Sources};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use uuid::Uuid;

use super::sources;

async fn serve() -> (String, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&asked);
    let rows = move |Json(ask): Json<Value>| async move {
        seen.fetch_add(1, Ordering::Relaxed);
        Json(json!({"tasks": [], "cursor": ask}))
    };
    let router = Router::new()
        .route("/rows", routing::post(rows))
        .route("/busy", routing::post(|| async { (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "7")], "later") }))
        .route("/long", routing::post(|| async { (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "999999")], "") }))
        .route("/moved", routing::post(|| async { (StatusCode::FOUND, [("location", "/rows")]).into_response() }))
        .route("/large", routing::post(|| async { "x".repeat(SOURCE_ANSWER_BYTES_MAX + 1) }));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, asked)
}

async fn ask(url: &str) -> Result<SourceAnswer, SourceError> {
    let ask = SourceRequest { fanout: Uuid::nil(), partition: 1, of: 3, cursor: json!({"after": 7}) };
    sources().ask(&Source::Url(url.to_owned()), &ask, Timestamp(1_000)).await
}

#[tokio::test]
async fn a_source_gets_fanout_partition_and_cursor() {
    let (url, asked) = serve().await;
    let answer = ask(&format!("{url}/rows")).await.unwrap();
    let wanted = json!({"fanout": Uuid::nil(), "partition": 1, "of": 3, "cursor": {"after": 7}});
    assert_eq!((answer.cursor, asked.load(Ordering::Relaxed)), (Some(wanted), 1));
}

#[tokio::test]
async fn errors_that_another_try_may_mend_are_kept_apart_from_final_ones() {
    let (url, asked) = serve().await;
    let error = async |path: &str| ask(&format!("{url}{path}")).await.unwrap_err();
    let busy = error("/busy").await;
    assert_eq!((busy.retry_after, busy.for_good), (Duration::from_secs(7), false));
    assert_eq!(busy.message, "the source answered 503 Service Unavailable: later");
    assert_eq!(error("/long").await.retry_after, Duration::from_secs(3_600));
    assert!(error("/nowhere").await.message.contains("404"));
    assert!(error("/moved").await.message.contains("302"));
    assert_eq!(asked.load(Ordering::Relaxed), 0, "redirects are not followed");
    assert!(error("/large").await.for_good);
    let gone = ask("http://127.0.0.1:1/").await.unwrap_err();
    assert!(gone.message.starts_with("the source cannot be reached") && !gone.for_good, "{gone}");
}

#[tokio::test]
async fn without_a_region_a_source_of_aws_fails_at_once() {
    for source in [json!({"lambda": "rows"}), json!({"s3": {"bucket": "rows", "key": "a.ndjson"}})] {
        let ask = SourceRequest { fanout: Uuid::nil(), partition: 0, of: 1, cursor: json!(null) };
        let source: Source = serde_json::from_value(source).unwrap();
        let error = sources().ask(&source, &ask, Timestamp(1_000)).await.unwrap_err();
        assert!(error.for_good && error.message == "the environment has no AWS_REGION to call AWS with", "{error}");
    }
}
