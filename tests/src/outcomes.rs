//! A batch API that answers later posts outcomes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use fanfold::ids::TaskId;
use fanfold::store::batches::Batch;
use serde_json::{Value, json};
use tower::ServiceExt;
use uuid::Uuid;

use crate::queues::{QueueName, whole_seconds};
use crate::stack::TestStack;

/// An entry of posted outcomes.
pub fn outcome(id: TaskId, outcome: &str) -> Value {
    json!({"id": id, "outcome": outcome})
}

/// The same outcome for several members.
pub fn outcomes(ids: &[TaskId], said: &str) -> Vec<Value> {
    ids.iter().map(|id| outcome(*id, said)).collect()
}

impl TestStack {
    /// Posts outcomes once. Returns status and answer.
    pub async fn post_once(&self, batch: Uuid, token: &str, members: &[Value]) -> (u16, Value) {
        let request = Request::post(format!("/batches/{batch}/outcomes")).header("fanfold-token", token);
        let request = request.header("content-type", "application/json");
        let request = request.body(Body::from(json!({ "members": members }).to_string())).unwrap();
        let response = fanfold_handle::router(Arc::clone(&self.handle)).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// Posts outcomes as a batch API does, which repeats what fails. Returns the answer.
    pub async fn post(&self, batch: Uuid, token: &str, members: &[Value]) -> Value {
        loop {
            let (status, answer) = self.post_once(batch, token, members).await;
            self.crash.revive();
            match status {
                200 => return answer,
                status => assert_eq!(status, 503, "{answer}"),
            }
        }
    }

    /// Lets time pass, in which messages are delivered as they are due.
    pub async fn pass_time(&self, time: Duration) {
        let until = tokio::time::Instant::now() + time;
        while tokio::time::Instant::now() < until {
            let mut delivered = 0;
            for queue in QueueName::STEPS {
                delivered += self.deliver(queue).await;
            }
            if delivered == 0 {
                let left = whole_seconds(until.saturating_duration_since(tokio::time::Instant::now()));
                tokio::time::sleep(self.quiet().await.map_or(left, |quiet| quiet.min(left))).await;
            }
        }
    }

    /// The only batch.
    pub async fn only_batch(&self) -> Batch {
        let mut batches = self.all_batches().await;
        assert_eq!(batches.len(), 1, "{batches:?}");
        batches.remove(0)
    }

    /// The token of the latest call.
    pub fn last_token(&self) -> String {
        self.api.seen().last().unwrap().token.clone().unwrap()
    }
}
