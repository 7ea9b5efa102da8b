//! The lease on the calls of a kind: taken, renewed and given back over the HTTP API.

use std::time::Duration;

use axum::http::Method;
use fanfold::clock::World;
use fanfold::limits::{CALL_WITHIN, DEV_LEASE, DEV_RENEWAL, DEV_SEND_TIMEOUT};
use fanfold_client::{ClientError, Fanfold};
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

/// Calls that had begun when the lease ended may come for so long.
const STRAGGLERS: Duration = Duration::from_secs(1).saturating_add(CALL_WITHIN).saturating_add(DEV_SEND_TIMEOUT);

/// A lease could not be taken.
#[derive(Debug)]
pub(super) enum LeaseError {
    /// Another session has it.
    Held(String),
    /// The API refused it otherwise, or cannot be reached.
    Api(ClientError),
}

/// What became of a lease that was to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GivenBack {
    /// Whether this session has it no more. Otherwise it ends by itself.
    pub(super) done: bool,
    /// How long messages may still come.
    pub(super) stragglers: Duration,
}

/// The lease of this session.
#[derive(Debug)]
pub(super) struct Lease {
    api: Fanfold,
    path: String,
    session: Uuid,
    body: Value,
}

/// Whether the stack allows sessions, and the lease that holds on a kind, as the API shows them.
pub(in crate::client) async fn dev_session(api: &Fanfold, kind: &str) -> Result<Value, ClientError> {
    api.request(Method::GET, &path(kind), None).await
}

/// Ends whichever session has the calls of a kind.
pub(super) async fn end(api: &Fanfold, kind: &str) -> Result<(), ClientError> {
    api.request(Method::DELETE, &path(kind), None).await.map(drop)
}

/// What the ARNs of queues of dev sessions begin with. None: the stack allows none.
pub(super) async fn allowed(api: &Fanfold, kind: &str) -> Result<Option<String>, ClientError> {
    Ok(dev_session(api, kind).await?["queues"].as_str().map(str::to_owned))
}

fn path(kind: &str) -> String {
    format!("/policies/{kind}/dev")
}

impl Lease {
    pub(super) fn new(api: &Fanfold, kind: &str, queue: &str, within: Duration) -> Self {
        let session = World::system().uuid();
        let within = humantime::format_duration(within).to_string();
        let body = json!({"session": session, "queue": queue, "answers_within": within});
        Self { api: api.clone(), path: path(kind), session, body }
    }

    /// Takes it.
    pub(super) async fn take(&self) -> Result<(), LeaseError> {
        self.put(&self.body).await
    }

    /// Renews it, unless it was given back: a renewal that is late takes nothing.
    async fn renew(&self) -> Result<(), LeaseError> {
        let mut body = self.body.clone();
        body["renew"] = true.into();
        self.put(&body).await
    }

    async fn put(&self, body: &Value) -> Result<(), LeaseError> {
        match self.api.request(Method::PUT, &self.path, Some(body)).await {
            Ok(_) => Ok(()),
            Err(ClientError::Api { problem, .. }) if problem.code == "dev_session_held" => {
                Err(LeaseError::Held(problem.detail))
            }
            Err(error) => Err(LeaseError::Api(error)),
        }
    }

    /// Renews it until that is refused, or it has ended because the API could not be reached. Returns why.
    pub(super) async fn keep(&self) -> String {
        let mut ends = Instant::now() + DEV_LEASE;
        loop {
            tokio::time::sleep(DEV_RENEWAL).await;
            let asked = Instant::now();
            match self.renew().await {
                Ok(()) => ends = asked + DEV_LEASE,
                Err(LeaseError::Held(problem)) => return problem,
                Err(LeaseError::Api(error)) if is_final(&error) || Instant::now() >= ends => return error.to_string(),
                Err(LeaseError::Api(error)) => tracing::warn!(%error, "the lease could not be renewed"),
            }
        }
    }

    /// Gives it back. If that fails, as it does where the API cannot be reached, the lease ends by itself.
    pub(super) async fn give_back(&self) -> GivenBack {
        let path = format!("{}?session={}", self.path, self.session);
        match self.api.request(Method::DELETE, &path, None).await {
            Ok(_) => GivenBack { done: true, stragglers: STRAGGLERS },
            Err(error) if is_gone(&error) => GivenBack { done: true, stragglers: STRAGGLERS },
            Err(error) => {
                crate::say::say(format_args!("fanfold: the lease ends by itself within a minute: {error}"));
                GivenBack { done: false, stragglers: DEV_LEASE + STRAGGLERS }
            }
        }
    }
}

/// Whether a lease is gone anyway: another session has it by now, or the kind has no policy. No call is sent here.
fn is_gone(error: &ClientError) -> bool {
    matches!(error.code(), Some("dev_session_held" | "unknown_policy"))
}

/// Whether asking again is of no use.
fn is_final(error: &ClientError) -> bool {
    matches!(error, ClientError::Api { status, .. } if (400..500).contains(status) && !matches!(status, 408 | 429))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use fanfold_client::Problem;

    use super::*;

    #[tokio::test]
    async fn a_lease_that_nobody_takes_back_is_not_given_back() {
        let api = Fanfold::new("http://127.0.0.1:1").unwrap().attempts(1);
        let given = Lease::new(&api, "row", "arn", DEV_LEASE).give_back().await;
        assert_eq!(given, GivenBack { done: false, stragglers: DEV_LEASE + STRAGGLERS });
    }

    #[test]
    fn a_lease_is_gone_once_another_session_has_it_or_nothing_is_left_to_have() {
        let gone = |status, code: &str| {
            let problem = Problem { code: code.to_owned(), ..Problem::default() };
            is_gone(&ClientError::Api { request: "DELETE /".to_owned(), status, problem })
        };
        assert!(gone(409, "dev_session_held") && gone(404, "unknown_policy"));
        // Credentials have expired, or the address is another one by now.
        assert!(!gone(403, "") && !gone(404, "") && !gone(500, "internal"));
    }
}
