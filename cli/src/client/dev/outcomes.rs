//! Posting outcomes to the stack.

use std::time::Duration;

use fanfold::messages::{OutcomesRequest, PostedOutcome};
use fanfold_http_client::{HttpClient, body};
use serde_json::Value;
use uuid::Uuid;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Pauses before a request is sent again.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(9)];

/// Bytes of an answer.
const ANSWER_BYTES: usize = 64 * 1_024;

/// Bytes of outcomes, as JSON, in one request: the API takes 6 MiB, with what is around them.
const REQUEST_BYTES: usize = 4 * 1_024 * 1_024;

/// What became of posted outcomes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// They are recorded, as far as they change something.
    Yes,
    /// The stack takes none of them: repeating them is of no use.
    Refused(String),
    /// The stack cannot be reached.
    NotNow(String),
}

/// Posts outcomes. The token of a call is all that this needs.
#[derive(Debug)]
pub(super) struct Outcomes {
    client: HttpClient,
    endpoint: String,
}

impl Outcomes {
    pub(super) fn new(endpoint: &str) -> Self {
        Self { client: HttpClient::default(), endpoint: endpoint.trim_end_matches('/').to_owned() }
    }

    /// Posts outcomes of a batch, in as many requests as needed. Repeating them does no harm.
    pub(super) async fn post(&self, batch: Uuid, token: &str, members: Vec<PostedOutcome>) -> Recorded {
        for part in parts(members) {
            match self.post_part(batch, token, &OutcomesRequest { members: part }).await {
                Recorded::Yes => {}
                other => return other,
            }
        }
        Recorded::Yes
    }

    async fn post_part(&self, batch: Uuid, token: &str, outcomes: &OutcomesRequest) -> Recorded {
        let mut pauses = PAUSES.iter();
        loop {
            match (self.once(batch, token, outcomes).await, pauses.next()) {
                (Recorded::NotNow(_), Some(pause)) => tokio::time::sleep(*pause).await,
                (recorded, _) => return recorded,
            }
        }
    }

    async fn once(&self, batch: Uuid, token: &str, outcomes: &OutcomesRequest) -> Recorded {
        let url = format!("{}/batches/{batch}/outcomes", self.endpoint);
        let bytes = match serde_json::to_vec(outcomes) {
            Ok(bytes) => bytes,
            Err(error) => return Recorded::Refused(error.to_string()),
        };
        let request = match self.client.post(&url) {
            Ok(request) => request.header("content-type", "application/json").header(fanfold::headers::TOKEN, token),
            Err(error) => return Recorded::NotNow(error.to_string()),
        };
        let mut answer = match request.timeout(TIMEOUT).body(bytes).send().await {
            Ok(answer) => answer,
            Err(error) => {
                let why = fanfold_http_client::innermost(&error).unwrap_or_else(|| error.to_string());
                return Recorded::NotNow(why);
            }
        };
        let status = answer.status().as_u16();
        let said = body(&mut answer, ANSWER_BYTES).await.ok().flatten().unwrap_or_default();
        recorded(status, &said)
    }
}

/// Reads an answer.
fn recorded(status: u16, said: &[u8]) -> Recorded {
    let detail = || {
        let said: Value = serde_json::from_slice(said).unwrap_or_default();
        format!("{status} {}", said["detail"].as_str().or(said["message"].as_str()).unwrap_or_default())
    };
    match status {
        200 => Recorded::Yes,
        408 | 429 | 500.. => Recorded::NotNow(detail()),
        _ => Recorded::Refused(detail()),
    }
}

/// Outcomes in parts that fit into a request: results may be large.
fn parts(members: Vec<PostedOutcome>) -> Vec<Vec<PostedOutcome>> {
    let (mut parts, mut bytes) = (vec![Vec::new()], 0);
    for member in members {
        let own = serde_json::to_vec(&member).map_or(0, |text| text.len() + 1);
        if bytes > 0 && bytes + own > REQUEST_BYTES {
            parts.push(Vec::new());
            bytes = 0;
        }
        bytes += own;
        if let Some(part) = parts.last_mut() {
            part.push(member);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfold::ids::TaskId;
    use fanfold::messages::Posted;

    #[test]
    fn large_results_are_posted_in_parts() {
        let member = |n: u128, bytes: usize| PostedOutcome {
            id: TaskId::Single(Uuid::from_u128(n)),
            outcome: Posted::Succeeded,
            error: None,
            code: None,
            retry_after: None,
            result: Some("x".repeat(bytes).into()),
        };
        let sizes = |members: Vec<PostedOutcome>| parts(members).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes((0..3).map(|n| member(n, 10)).collect()), [3]);
        assert_eq!(sizes((0..5).map(|n| member(n, REQUEST_BYTES / 3)).collect()), [2, 2, 1]);
        assert_eq!(sizes(vec![member(1, REQUEST_BYTES), member(2, 1)]), [1, 1]);
    }

    #[test]
    fn answers_say_whether_to_repeat() {
        assert_eq!(recorded(200, b"{}"), Recorded::Yes);
        let refused = Recorded::Refused("404 there is no batch".to_owned());
        assert_eq!(recorded(404, br#"{"detail": "there is no batch"}"#), refused);
        assert_eq!(recorded(503, b"<html>"), Recorded::NotNow("503 ".to_owned()));
    }
}
