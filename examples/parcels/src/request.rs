//! The call that books a truck, and its answer.

use std::collections::{BTreeMap, HashSet};
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::manifest::{self, Manifest};
use crate::name;
use crate::order::{Order, OrderError};
use crate::verdict::{self, Verdict};

/// The body of a call, the parts of it that a truck needs.
#[derive(Deserialize)]
struct Body {
    members: Vec<BodyMember>,
}

#[derive(Deserialize)]
struct BodyMember {
    id: String,
    content: Value,
}

/// A call that was found to be in order.
#[derive(Debug)]
pub(crate) struct Call {
    truck: String,
    attempt: u32,
    ids: Vec<String>,
    orders: Vec<Order>,
}

/// What is wrong with a call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the header Idempotency-Key is missing; it names the truck")]
    NoKey,
    #[error("the Idempotency-Key is {0:?}; 1 to 128 letters, digits and hyphens are allowed")]
    BadKey(String),
    #[error("the header Fanfold-Attempt is {0:?}; it says which call of its batch this is, from 1")]
    BadAttempt(String),
    #[error("the body is not a call: {0}")]
    Json(#[from] serde_json::Error),
    #[error("`members` is empty; a truck takes at least one order")]
    NoMembers,
    #[error("the member {0:?} is there twice")]
    Twice(String),
    #[error(
        "the member {0:?} has a fan-out that cannot name a folder; 1 to 128 letters, digits and hyphens are allowed"
    )]
    BadFanout(String),
    #[error("the member {id:?} is not an order: {error}")]
    Order { id: String, error: OrderError },
}

/// The answer: one entry a member, in their order.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Answer {
    members: Vec<Entry>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Entry {
    id: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Booking>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Booking {
    truck: String,
}

impl Call {
    /// Checks a call before anything is done.
    pub(crate) fn read(key: Option<&str>, attempt: Option<&str>, body: &[u8]) -> Result<Self, CallError> {
        let truck = key.ok_or(CallError::NoKey)?;
        if !name::is_safe(truck) {
            return Err(CallError::BadKey(truck.to_owned()));
        }
        let attempt = attempt.unwrap_or("1");
        let attempt = attempt.parse().map_err(|_| CallError::BadAttempt(attempt.to_owned()))?;
        let body: Body = serde_json::from_slice(body)?;
        if body.members.is_empty() {
            return Err(CallError::NoMembers);
        }
        let mut seen = HashSet::new();
        let mut orders = Vec::with_capacity(body.members.len());
        for BodyMember { id, content } in &body.members {
            if !seen.insert(id) {
                return Err(CallError::Twice(id.clone()));
            }
            if !name::is_safe(name::fanout_of(id)) {
                return Err(CallError::BadFanout(id.clone()));
            }
            let order = Order::read(content).map_err(|error| CallError::Order { id: id.clone(), error })?;
            orders.push(order);
        }
        let ids = body.members.into_iter().map(|member| member.id).collect();
        Ok(Self { truck: truck.to_owned(), attempt, ids, orders })
    }

    /// Whether this call is turned away for now.
    pub(crate) fn is_turned_away(&self) -> bool {
        verdict::is_busy(&self.truck, self.attempt)
    }

    /// Books the truck: the answer, and the manifests to write before it is given. Orders of several fan-outs may share
    /// a truck; each fan-out gets its own manifest of it. A truck without orders has none.
    pub(crate) fn book(self) -> io::Result<(Answer, Vec<Manifest>)> {
        let verdicts = verdict::judge(&self.truck, &self.orders);
        let mut loads: BTreeMap<&str, Vec<&Order>> = BTreeMap::new();
        for ((id, order), verdict) in self.ids.iter().zip(&self.orders).zip(&verdicts) {
            if *verdict == Verdict::Loaded {
                loads.entry(name::fanout_of(id)).or_default().push(order);
            }
        }
        let manifests = loads
            .into_iter()
            .map(|(fanout, orders)| {
                let text = manifest::text(&self.truck, orders)?;
                Ok(Manifest { fanout: fanout.to_owned(), truck: self.truck.clone(), text })
            })
            .collect::<io::Result<_>>()?;
        let members = self.ids.into_iter().zip(verdicts).map(|(id, verdict)| entry(id, verdict, &self.truck)).collect();
        Ok((Answer { members }, manifests))
    }
}

fn entry(id: String, verdict: Verdict, truck: &str) -> Entry {
    let (outcome, error, result) = match verdict {
        Verdict::Loaded => ("succeeded", None, Some(Booking { truck: truck.to_owned() })),
        Verdict::Refused(reason) => ("failed", Some(reason), None),
        Verdict::Again(reason) => ("retry", Some(reason), None),
    };
    Entry { id, outcome, error, result }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn member(id: &str, weight: &str) -> Value {
        json!({"id": id, "content": {"order": format!("ORD-{id}"), "depot": "117", "state": "NY", "zip_code": "11742",
               "city": "Holtsville", "weight_kg": weight}})
    }

    fn read(key: &str, members: &[Value]) -> Result<Call, CallError> {
        let body = json!({"batch_id": "b", "kind": "parcel", "target": "NY/117", "members": members});
        Call::read(Some(key), None, body.to_string().as_bytes())
    }

    #[test]
    fn the_refused_are_answered_and_not_on_the_manifest() {
        let members = [member("f1:g:0", "3.0"), member("f1:g:1", "30.0"), member("f2:g:0", "1.5"), member("x", "2")];
        let (answer, manifests) = read("b", &members).unwrap().book().unwrap();
        assert_eq!(
            serde_json::to_value(&answer).unwrap(),
            json!({"members": [
                {"id": "f1:g:0", "outcome": "succeeded", "result": {"truck": "b"}},
                {"id": "f1:g:1", "outcome": "failed", "error": "parcel heavier than 29.9 kg"},
                {"id": "f2:g:0", "outcome": "succeeded", "result": {"truck": "b"}},
                {"id": "x", "outcome": "succeeded", "result": {"truck": "b"}},
            ]})
        );
        let files: Vec<_> = manifests.iter().map(|file| (file.fanout.as_str(), file.text.lines().count())).collect();
        assert_eq!(files, [("f1", 2), ("f2", 2), ("single", 2)]);
        assert_eq!(read("b", &members).unwrap().book().unwrap(), (answer, manifests));
    }

    #[test]
    fn a_truck_without_orders_has_no_manifest() {
        let (_, manifests) = read("b", &[member("f:g:0", "30.0")]).unwrap().book().unwrap();
        assert_eq!(manifests, []);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |key: &str, members: &[Value]| read(key, members).unwrap_err().to_string();
        let good = member("f:g:0", "1");
        assert!(error("../b", std::slice::from_ref(&good)).contains("\"../b\""));
        assert!(error("b", &[]).contains("`members` is empty"));
        assert!(error("b", &[good.clone(), good.clone()]).contains("\"f:g:0\" is there twice"));
        assert!(error("b", &[member("../x:g:0", "1")]).contains("fan-out"));
        let mut lacking = member("f:g:7", "1");
        lacking["content"].as_object_mut().unwrap().remove("depot");
        assert!(error("b", &[good, lacking]).ends_with("\"f:g:7\" is not an order: the column `depot` is missing"));
        assert!(Call::read(None, None, b"{}").unwrap_err().to_string().contains("Idempotency-Key is missing"));
        assert!(Call::read(Some("b"), None, b"{").unwrap_err().to_string().contains("line 1"));
        let text = Call::read(Some("b"), None, b"{}").unwrap_err().to_string();
        assert!(text.contains("missing field `members`"), "{text}");
        let text = Call::read(Some("b"), Some("first"), b"{}").unwrap_err().to_string();
        assert!(text.contains("Fanfold-Attempt is \"first\""), "{text}");
    }
}
