//! A message of the queue: a call of the batch API.

use fanfold::clock::Timestamp;
use fanfold::headers;
use fanfold::ids::TaskId;
use fanfold_batch_api::{Call, CallMember};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

/// A message as it was received.
#[derive(Debug)]
pub(super) struct Received {
    /// By which it is deleted.
    pub(super) handle: String,
    /// What it says, or why it says nothing.
    pub(super) sent: Result<Sent, String>,
}

/// A call that was sent to this session.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) call: Call,
    /// With which its outcomes are posted.
    pub(super) token: String,
    /// When it was sent.
    pub(super) at: Timestamp,
}

/// The body of a call.
#[derive(Deserialize)]
struct Body {
    batch_id: Uuid,
    kind: String,
    target: String,
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    id: TaskId,
    content: Box<RawValue>,
}

impl Received {
    /// Reads a message as SQS answers it.
    pub(super) fn read(message: &Value) -> Self {
        let handle = message["ReceiptHandle"].as_str().unwrap_or_default().to_owned();
        Self { handle, sent: sent(message) }
    }
}

fn sent(message: &Value) -> Result<Sent, String> {
    let attribute = |name: &str| {
        let value = message["MessageAttributes"][name]["StringValue"].as_str();
        value.ok_or_else(|| format!("the message has no attribute {name}"))
    };
    let body: Body = serde_json::from_str(message["Body"].as_str().unwrap_or_default())
        .map_err(|error| format!("the message is no call: {error}"))?;
    let at = message["Attributes"]["SentTimestamp"].as_str().and_then(|at| at.parse().ok());
    let Body { batch_id, kind, target, members } = body;
    let members = members.into_iter().map(|Member { id, content }| CallMember { id, content }).collect();
    let attempt = attribute(headers::ATTEMPT)?.parse().map_err(|_| "Fanfold-Attempt is no number".to_owned())?;
    Ok(Sent {
        call: Call { batch_id, kind, attempt, target, members },
        token: attribute(headers::TOKEN)?.to_owned(),
        at: Timestamp(at.ok_or("the message has no SentTimestamp")?),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    const BODY: &str = r#"{"batch_id":"01890000-0000-7000-8000-000000000001","kind":"parcel","target":"NY","members":[{"id":"01890000-0000-7000-8000-000000000002","content":{"a":  1}}]}"#;

    fn message(body: &str) -> Value {
        json!({
            "ReceiptHandle": "h", "Body": body, "Attributes": {"SentTimestamp": "1700000000000"},
            "MessageAttributes": {
                "Fanfold-Token": {"StringValue": "3.ab"}, "Fanfold-Attempt": {"StringValue": "3"},
            },
        })
    }

    #[test]
    fn a_call_has_the_bytes_that_the_stack_sent() {
        let sent = Received::read(&message(BODY)).sent.unwrap();
        assert_eq!(serde_json::to_string(&sent.call).unwrap(), BODY);
        assert_eq!((sent.call.attempt, sent.token.as_str(), sent.at), (3, "3.ab", Timestamp(1_700_000_000_000)));
    }

    #[test]
    fn what_is_no_call_says_why() {
        let problem = |message: &Value| Received::read(message).sent.unwrap_err();
        assert!(problem(&message("hello")).starts_with("the message is no call: "));
        let mut other = message(BODY);
        other["MessageAttributes"] = json!({});
        assert_eq!(problem(&other), "the message has no attribute Fanfold-Attempt");
        assert!(Received::read(&json!({})).sent.is_err());
    }
}
