//! What a lane's lock may never do.

use aws_smithy_types::base64;
use serde_json::Value;
use uuid::Uuid;

use crate::request::{Record, text};

/// A lane that has a leader, or batches in flight or closing, is in the index of busy lanes, and does not expire.
pub(super) fn is_lost(now: &Value) -> Option<&'static str> {
    let busy = ["holder", "in_flight", "closing"].iter().any(|name| !now[*name].is_null());
    let kept = !now["active"].is_null() && now["ttl"].is_null();
    (busy && !kept).then_some("is busy, and is not in the index of busy lanes, or expires")
}

/// Only the leader's own batch gets in flight, and each leader has an epoch of its own.
pub(super) fn leadership(earlier: &Value, now: &Value) -> Option<String> {
    let leader = binary_id(text(earlier, "holder"));
    let flying = |lock: &Value| lock["in_flight"]["BS"].as_array().cloned().unwrap_or_default();
    let before = flying(earlier);
    if flying(now).iter().any(|batch| !before.contains(batch) && Some(batch) != leader.as_ref()) {
        return Some("has a batch in flight that did not lead".to_owned());
    }
    let epoch = |lock: &Value| lock["epoch"]["N"].as_str().and_then(|epoch| epoch.parse::<u64>().ok()).unwrap_or(0);
    let another = !now["holder"].is_null() && now["holder"] != earlier["holder"];
    (another && epoch(now) <= epoch(earlier)).then(|| "has another leader in an epoch that was before".to_owned())
}

/// The batch that a lock names as its leader, if one write took it away without putting the batch in flight.
pub(crate) fn resigned(record: &Record, earlier: Option<&Option<Value>>, now: Option<&Value>) -> Option<String> {
    let earlier = earlier.and_then(Option::as_ref).filter(|_| record.0 == "LocksTable")?;
    let leader = text(earlier, "holder");
    let gone = !leader.is_empty() && now.is_none_or(|now| text(now, "holder") != leader);
    let flies = binary_id(leader).is_some_and(|id| {
        now.and_then(|now| now["in_flight"]["BS"].as_array()).is_some_and(|flying| flying.contains(&id))
    });
    (gone && !flies).then(|| leader.to_owned())
}

/// An id as a set of binaries holds it.
fn binary_id(id: &str) -> Option<Value> {
    let id: Uuid = id.parse().ok()?;
    Some(Value::from(base64::encode(id.as_bytes())))
}
