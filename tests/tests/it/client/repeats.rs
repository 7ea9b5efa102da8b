//! Requests that get no good answer at first.

use std::sync::{Arc, Mutex};

use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use fanfold_client::{Count, Fanfold, OpenFanout};
use serde_json::{Value, json};

use super::served;

/// A server that gives these answers, one after the other; and the headers of its requests.
async fn scripted(answers: Vec<(u16, Value)>) -> (Fanfold, Arc<Mutex<Vec<HeaderMap>>>) {
    let (asked, waiting) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(answers)));
    let seen = Arc::clone(&asked);
    let router = Router::new().fallback(move |headers: HeaderMap| {
        seen.lock().unwrap().push(headers);
        let (status, answer) = waiting.lock().unwrap().remove(0);
        async move { (StatusCode::from_u16(status).unwrap(), answer.to_string()) }
    });
    (Fanfold::new(&served(router).await).unwrap(), asked)
}

fn opened() -> Value {
    json!({"id": uuid::Uuid::nil(), "state": "open", "complete": false})
}

#[tokio::test]
async fn a_request_is_repeated_under_its_key() {
    let (fanfold, asked) =
        scripted(vec![(503, json!({})), (500, json!("no problem")), (201, opened()), (201, opened())]).await;
    for _ in 0..2 {
        fanfold.open(&OpenFanout::default()).await.unwrap();
    }
    let keys: Vec<_> = asked.lock().unwrap().iter().map(|headers| headers["idempotency-key"].clone()).collect();
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3], "{keys:?}");
}

#[tokio::test]
async fn a_key_without_room_for_the_number_of_a_part_is_hashed_with_it() {
    // Every client sends the same keys, so any of them can repeat the call.
    let hashed = [
        "part-ea11e85c1397952d6b6b70169e916a3a1b614d00a23fadd387ee705c10b04f42".to_owned(),
        "part-cb7226f1deeaf47e4475bb35509db04ea67b947d1b946f98a2a546c7a284ea0d".to_owned(),
    ];
    let (fits, long) = ("k".repeat(253), "k".repeat(255));
    let numbered = [format!("{fits}-1"), format!("{fits}-2")];
    for (key, parts) in [(fits, numbered), (long, hashed)] {
        let added = (201, json!({"fanout": uuid::Uuid::nil(), "groups": []}));
        let (fanfold, asked) = scripted(vec![added; 3]).await;
        fanfold.add(uuid::Uuid::nil(), 2 * 709_632 + 1, Some(&key)).await.unwrap();
        let asked = asked.lock().unwrap();
        let keys: Vec<_> = asked.iter().map(|headers| headers["idempotency-key"].to_str().unwrap()).collect();
        assert_eq!(keys, [key.as_str(), parts[0].as_str(), parts[1].as_str()]);
    }
}

#[tokio::test]
async fn what_is_refused_is_not_repeated_and_attempts_end() {
    let problem =
        json!({"code": "invalid_body", "detail": "it is", "errors": [{"field": "items", "problem": "too many"}]});
    let (fanfold, asked) = scripted(vec![(422, problem), (503, json!({})), (503, json!({"message": "busy"}))]).await;
    let refused = fanfold.open(&OpenFanout::default()).await.unwrap_err().to_string();
    assert_eq!(refused, "POST /fanouts: 422 invalid_body: it is; items: too many");
    let busy = fanfold.clone().attempts(2).get(uuid::Uuid::nil()).await.unwrap_err().to_string();
    assert!(busy.ends_with("503 : busy"), "{busy}");
    assert_eq!(asked.lock().unwrap().len(), 3);
    let nobody =
        Fanfold::new("http://127.0.0.1:1").unwrap().attempts(2).get(uuid::Uuid::nil()).await.unwrap_err().to_string();
    assert!(nobody.contains("no answer after 2 attempts"), "{nobody}");
}

#[tokio::test]
async fn counts_are_not_repeated_unless_nothing_was_done() {
    let counted = json!({"fanouts": [], "refused": []});
    let (fanfold, asked) =
        scripted(vec![(429, json!({})), (200, counted), (503, json!({"code": "unavailable"}))]).await;
    fanfold.count(&[Count::default()]).await.unwrap();
    assert_eq!(asked.lock().unwrap().len(), 2);
    let lost = fanfold.count(&[Count::default()]).await.unwrap_err();
    assert_eq!((lost.code(), asked.lock().unwrap().len()), (Some("unavailable"), 3));
    let nobody = Fanfold::new("http://127.0.0.1:1").unwrap().count(&[]).await.unwrap_err().to_string();
    assert!(nobody.contains("no answer after 1 attempt:"), "{nobody}");
}

#[tokio::test]
async fn requests_are_signed_where_they_are_to_be() {
    let (fanfold, asked) = scripted(vec![(200, opened()), (200, opened())]).await;
    fanfold.get(uuid::Uuid::nil()).await.unwrap();
    let credentials = Credentials::new("AKIDEXAMPLE", "secret", Some("token".to_owned()), None, "test");
    let config = aws_types::SdkConfig::builder();
    let config = config.credentials_provider(SharedCredentialsProvider::new(credentials));
    let config = config.region(aws_types::region::Region::new("eu-west-1")).build();
    fanfold.clone().signed(&config).unwrap().get(uuid::Uuid::nil()).await.unwrap();
    let asked = asked.lock().unwrap();
    assert!(!asked[0].contains_key("authorization"));
    let authorization = asked[1]["authorization"].to_str().unwrap();
    assert!(authorization.contains("/eu-west-1/execute-api/aws4_request"), "{authorization}");
    assert_eq!(asked[1]["x-amz-security-token"], "token");
    assert!(fanfold.signed(&aws_types::SdkConfig::builder().build()).is_err(), "there are no credentials");
}
