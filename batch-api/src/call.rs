//! Calls of batch APIs.

use std::collections::HashSet;
use std::fmt::Write;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::policy::BatchApi;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{Answer, CallError, Cause, Mapping};

/// Bytes of the hash in an idempotency key.
const KEY_HASH_BYTES: usize = 16;

/// A call that is being made.
pub type Calling<'a> = BoxFuture<'a, Result<Answer, CallError>>;

/// Calls batch APIs.
pub trait Caller: Send + Sync {
    /// Fetches what calls need, such as secrets, so that a call is sent as soon as its moment has come.
    ///
    /// # Errors
    /// It cannot be fetched, so the call need not be made.
    fn prepare<'a>(&'a self, batch_api: &'a BatchApi) -> BoxFuture<'a, Result<(), CallError>> {
        let _ = batch_api;
        ready(Ok(())).boxed()
    }

    /// Makes one call.
    ///
    /// # Errors
    /// There is no answer, or it says that the whole batch was not done.
    fn call<'a>(&'a self, batch_api: &'a BatchApi, request: Request<'a>) -> Calling<'a>;

    /// Asks for the answer to a call that was to be answered later. `url`: the address that the batch API named; `request`: that
    /// of the call.
    ///
    /// # Errors
    /// There is no answer, or it says that the whole batch was not done.
    fn poll<'a>(&'a self, batch_api: &'a BatchApi, url: &'a str, request: Request<'a>) -> Calling<'a> {
        let (_, _, _) = (batch_api, url, request);
        ready(Err(CallError::new(Cause::NotMade, "this batch API cannot be asked for an answer"))).boxed()
    }
}

/// What a call is about.
#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// The batch.
    pub batch_id: Uuid,
    /// The kind of its tasks.
    pub kind: String,
    /// Which call of the batch this is, from 1. It is no part of the body, which stays the same when a call is repeated.
    #[serde(skip)]
    pub attempt: u32,
    /// What its tasks share.
    pub target: String,
    /// The members to be called.
    pub members: Vec<CallMember>,
}

impl Call {
    /// A call without members, of which only what all calls have in common matters.
    #[must_use]
    pub fn of_nobody() -> Self {
        let (kind, target) = (String::new(), String::new());
        Self { batch_id: Uuid::nil(), kind, attempt: 1, target, members: Vec::new() }
    }
}

/// A member of a batch.
#[derive(Clone, Debug, Serialize)]
pub struct CallMember {
    /// The task.
    pub id: TaskId,
    /// Its content, as it was registered.
    pub content: Box<RawValue>,
}

/// A call as it is made: its bytes, and the key that follows from them.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// What it is about.
    pub call: &'a Call,
    /// The body.
    pub body: Vec<u8>,
    /// The `Idempotency-Key`: the batch and a hash of the members' ids, the body and the query, so the same key always comes with
    /// the same bytes. The ids: bodies of different members may be the same. The query, as far as the policy writes it: another policy
    /// may ask for something else with the same body. Not headers and secrets: who calls is no part of what is asked for, and a
    /// call without an answer is repeated under its key although its token was replaced.
    pub key: String,
    /// How long the call may take.
    pub timeout: Duration,
    /// How it is written and its answer read, if not as for any batch API.
    pub mapping: Option<Mapping>,
    /// Whether the outcomes may come later.
    pub later: bool,
    /// The token that they are posted with then.
    pub token: Option<String>,
    /// What the messages of a lane have in common, if calls are messages of a queue that keeps their order.
    pub group: Uuid,
}

impl<'a> Request<'a> {
    /// The request of a call.
    ///
    /// # Errors
    /// It cannot be written, or would be too large.
    pub fn new(batch_api: &BatchApi, call: &'a Call) -> Result<Self, CallError> {
        let mut mapping = Mapping::of(batch_api, call)?;
        let body = match mapping.as_mut().and_then(|mapping| mapping.body.take()) {
            Some(body) => body,
            None => serde_json::to_vec(call).map_err(|error| CallError::new(Cause::NotMade, error.to_string()))?,
        };
        let query = mapping.as_ref().map(Mapping::query_without_secrets).unwrap_or_default();
        let key = idempotency_key(call, &body, &query);
        let later = batch_api.answers_within.is_some();
        Ok(Self { call, body, key, timeout: batch_api.timeout.0, mapping, later, token: None, group: call.batch_id })
    }

    /// The same with the token of its outcomes. It is no part of the body.
    #[must_use]
    pub fn with_token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// The same in the group of its lane.
    #[must_use]
    pub fn in_group(self, group: Uuid) -> Self {
        Self { group, ..self }
    }

    /// The members that are not in the request, because it cannot be written for them.
    #[must_use]
    pub fn unsent(&self) -> HashSet<TaskId> {
        let unfit = self.mapping.iter().flat_map(|mapping| &mapping.unfit);
        unfit.filter_map(|(at, _)| self.call.members.get(*at).map(|member| member.id)).collect()
    }
}

fn idempotency_key(call: &Call, body: &[u8], query: &str) -> String {
    let mut key = format!("{}-", call.batch_id);
    let mut hash = Sha256::new();
    for member in &call.members {
        // The line break: ids have different lengths.
        hash.update(format!("{}\n", member.id));
    }
    hash.update(body);
    if !query.is_empty() {
        // No body ends like this: line breaks in JSON are followed by more.
        hash.update(format!("\n?{query}"));
    }
    for byte in hash.finalize().iter().take(KEY_HASH_BYTES) {
        // Writing into a text cannot fail.
        let _ = write!(key, "{byte:02x}");
    }
    key
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod testing {
    use super::*;

    /// A call for tasks with these ids.
    pub(crate) fn call(ids: &[&str]) -> Call {
        let content = || RawValue::from_string("{}".to_owned()).unwrap();
        let members = ids.iter().map(|id| CallMember { id: id.parse().unwrap(), content: content() }).collect();
        Call { batch_id: Uuid::nil(), kind: "parcel".to_owned(), attempt: 1, target: "NY".to_owned(), members }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn call(attempt: u32, contents: &[&str]) -> Call {
        let member = |(n, content): (usize, &&str)| CallMember {
            id: TaskId::Single(Uuid::from_u128(n as u128)),
            content: RawValue::from_string((*content).to_owned()).unwrap(),
        };
        let members = contents.iter().enumerate().map(member).collect();
        Call { batch_id: Uuid::from_u128(7), kind: "parcel".to_owned(), attempt, target: "NY".to_owned(), members }
    }

    fn request(call: &Call) -> (String, String) {
        let batch_api = serde_json::from_str(r#"{"command": ["x"]}"#).unwrap();
        let request = Request::new(&batch_api, call).unwrap();
        (request.key, String::from_utf8(request.body).unwrap())
    }

    #[test]
    fn the_same_bytes_have_the_same_key_and_others_another() {
        let first = request(&call(1, &["{\"a\": 1}", "2"]));
        assert_eq!(request(&call(2, &["{\"a\": 1}", "2"])), first, "the attempt is no part of a request");
        for others in [&["{\"a\": 1}"][..], &["2", "{\"a\": 1}"], &["{\"a\":1}", "2"], &["{\"a\": 1}", "2", "3"]] {
            let other = request(&call(1, others));
            assert!(other.0 != first.0 && other.1 != first.1, "{others:?}");
        }
        let other = request(&Call { batch_id: Uuid::from_u128(8), ..call(1, &["{\"a\": 1}", "2"]) });
        assert_ne!(other.0, first.0);
    }

    /// A mapped body may not have the ids: a batch API that remembers its keys would take the second half for the first.
    #[test]
    fn members_with_equal_bodies_have_keys_of_their_own() {
        let api = r#"{"url": "https://example.com/", "request": {"body": {"${members}": "${content}"}}, "response": {"match": "none"}}"#;
        let batch_api = serde_json::from_str(api).unwrap();
        let both = call(1, &["7", "7"]);
        let [first, second] = [0, 1].map(|n| {
            let half = Call { members: vec![both.members[n].clone()], ..both.clone() };
            let request = Request::new(&batch_api, &half).unwrap();
            (request.key, request.body)
        });
        assert_eq!((first.1.as_slice(), &first.1), (&b"[7]"[..], &second.1));
        assert_ne!(first.0, second.0);
    }

    /// The same body with another query may ask for something else; another token asks for the same.
    #[test]
    fn another_query_has_another_key_and_other_headers_have_not() {
        let both = call(1, &["7"]);
        let key = |request: serde_json::Value| {
            let api = serde_json::json!({"url": "https://example.com/", "request": request});
            Request::new(&serde_json::from_value(api).unwrap(), &both).unwrap().key
        };
        let plain = key(serde_json::json!({}));
        let asked = key(serde_json::json!({"query": {"refresh": "true", "token": "${secret.A}"}}));
        assert_ne!(plain, asked);
        assert_ne!(asked, key(serde_json::json!({"query": {"refresh": "false", "token": "${secret.A}"}})));
        assert_eq!(asked, key(serde_json::json!({"query": {"refresh": "true", "token": "${secret.A}"}})));
        assert_eq!(plain, key(serde_json::json!({"headers": {"Authorization": "Bearer ${secret.A}"}})));
    }

    /// A change of either would give a call that is repeated after an upgrade another key.
    #[test]
    fn body_and_key_are_these() {
        let (key, body) = request(&call(3, &["{\"a\":  1}"]));
        let batch = Uuid::from_u128(7);
        let id = Uuid::nil();
        assert_eq!(
            body,
            format!(
                r#"{{"batch_id":"{batch}","kind":"parcel","target":"NY","members":[{{"id":"{id}","content":{{"a":  1}}}}]}}"#
            )
        );
        assert_eq!(key.len(), 36 + 1 + 2 * KEY_HASH_BYTES);
        assert!(key.starts_with(&format!("{batch}-")), "{key}");
        assert!(key.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-'), "{key}");
    }
}
