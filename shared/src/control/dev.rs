//! Dev sessions: while its lease holds, one session has the calls of a kind, at a queue of its own. No I/O.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::limits::{DEV_LEASE, DEV_SEND_TIMEOUT, QUEUE_NAME_MAX};
use crate::policy::{BatchApi, Policy, Span, Way};

/// The lease of a dev session on the calls of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevLease {
    /// The session.
    pub session: Uuid,
    /// The ARN of its queue.
    pub queue: String,
    /// When the lease ends by itself.
    pub until: Timestamp,
    /// How long after a call was sent its outcomes may come.
    pub answers_within: Span,
}

/// What a session asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevSession {
    /// The session.
    pub session: Uuid,
    /// The ARN of its queue.
    pub queue: String,
    /// How long after a call was sent its outcomes may come.
    pub answers_within: Span,
}

/// A session cannot have the lease, or does not have it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotHeld {
    /// Another session has it.
    #[error(transparent)]
    Another(#[from] HeldByAnother),
    /// It was given back, or another session has had it since.
    #[error("the lease of dev session {0} was given back")]
    Ended(Uuid),
}

/// Another session has the calls of the kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("dev session {} has the calls of the kind until {}, or longer if it renews its lease", .0.session, .0.until.rfc3339_seconds())]
pub struct HeldByAnother(pub DevLease);

impl DevLease {
    /// Whether it holds at this moment.
    #[must_use]
    pub fn holds(&self, now: Timestamp) -> bool {
        now < self.until
    }

    /// The lease that a session takes, if no other session's holds.
    ///
    /// # Errors
    /// Another session's holds.
    pub fn taken(before: Option<&Self>, by: &DevSession, now: Timestamp) -> Result<Self, HeldByAnother> {
        if let Some(other) = before.filter(|lease| lease.session != by.session && lease.holds(now)) {
            return Err(HeldByAnother(other.clone()));
        }
        let DevSession { session, queue, answers_within } = by.clone();
        Ok(Self { session, queue, until: now.plus(DEV_LEASE), answers_within })
    }

    /// The lease that a session renews. It must be its own, even if it has passed: a renewal that comes after the end takes nothing.
    ///
    /// # Errors
    /// Another session's holds, or it was given back.
    pub fn renewed(before: Option<&Self>, by: &DevSession, now: Timestamp) -> Result<Self, NotHeld> {
        let renewed = Self::taken(before, by, now)?;
        match before {
            Some(lease) if lease.session == by.session => Ok(renewed),
            _ => Err(NotHeld::Ended(by.session)),
        }
    }

    /// What is left when a session gives its lease back, or an operator ends any. One that has passed, or was given back before, is
    /// no error.
    ///
    /// # Errors
    /// Another session's holds.
    pub fn given_back(
        before: Option<&Self>,
        session: Option<Uuid>,
        now: Timestamp,
    ) -> Result<Option<Self>, HeldByAnother> {
        match before {
            Some(lease) if session.is_none_or(|session| lease.session == session) => Ok(None),
            Some(lease) if lease.holds(now) => Err(HeldByAnother(lease.clone())),
            other => Ok(other.cloned()),
        }
    }

    /// The policy by which calls are made while the lease holds: they are messages of the session's queue, and all else is as it was.
    #[must_use]
    pub fn terms(&self, policy: &Policy) -> Policy {
        let way = Way::Sqs(self.queue.clone());
        let answers_within = Some(self.answers_within);
        let batch_api = BatchApi { answers_within, ..BatchApi::new(way, Span(DEV_SEND_TIMEOUT)) };
        Policy { batch_api, ..policy.clone() }
    }

    pub(crate) fn encode(&self) -> Result<String, serde_json::Error> {
        let Self { session, queue, until, answers_within } = self.clone();
        serde_json::to_string(&Row { session, queue, until: until.0, answers_within })
    }

    pub(crate) fn decode(text: &str) -> Result<Self, serde_json::Error> {
        let Row { session, queue, until, answers_within } = serde_json::from_str(text)?;
        Ok(Self { session, queue, until: Timestamp(until), answers_within })
    }
}

/// A lease as it is stored.
#[derive(Serialize, Deserialize)]
struct Row {
    session: Uuid,
    queue: String,
    until: u64,
    answers_within: Span,
}

/// The queues that dev sessions of this stack may have: those whose ARNs begin like this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevQueues(String);

impl DevQueues {
    /// Queues whose ARNs begin with `prefix`.
    #[must_use]
    pub fn new(prefix: String) -> Self {
        Self(prefix)
    }

    /// Whether this is the ARN of such a queue: a standard queue of the stack's account and region.
    #[must_use]
    pub fn allow(&self, queue: &str) -> bool {
        let rest = queue.strip_prefix(&self.0).unwrap_or_default();
        let name = queue.rsplit(':').next().unwrap_or_default();
        let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        !rest.is_empty() && rest.bytes().all(fits) && name.len() <= QUEUE_NAME_MAX
    }
}

impl fmt::Display for DevQueues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn session(n: u128) -> DevSession {
        let queue = format!("arn:aws:sqs:eu-west-1:123456789012:shop-dev-parcel-{n}");
        DevSession { session: Uuid::from_u128(n), queue, answers_within: Span::from_secs(300) }
    }

    #[test]
    fn one_session_at_a_time_has_the_calls() {
        let (one, other) = (session(1), session(2));
        let start = Timestamp(1_000_000);
        let lease = DevLease::taken(None, &one, start).unwrap();
        assert_eq!((lease.session, lease.until), (one.session, start.plus(DEV_LEASE)));
        let refused = DevLease::taken(Some(&lease), &other, start.plus(DEV_LEASE / 2)).unwrap_err();
        assert_eq!(refused, HeldByAnother(lease.clone()));
        assert!(refused.to_string().contains("until 1970-01-01T00:17:40Z, or longer"), "{refused}");
        let half = start.plus(DEV_LEASE / 2);
        let renewed = DevLease::renewed(Some(&lease), &one, half).unwrap();
        assert_eq!(renewed, DevLease::taken(Some(&lease), &one, half).unwrap(), "taking it again is no error");
        assert_eq!(DevLease::renewed(Some(&lease), &other, half), Err(NotHeld::Another(HeldByAnother(lease))));
        assert_eq!(renewed.until, half.plus(DEV_LEASE));
        let end = renewed.until;
        assert!(renewed.holds(Timestamp(end.0 - 1)) && !renewed.holds(end));
        assert_eq!(DevLease::renewed(Some(&renewed), &one, end).unwrap().session, one.session, "nobody took it since");
        assert_eq!(DevLease::renewed(Some(&renewed), &other, end), Err(NotHeld::Ended(other.session)));
        assert_eq!(DevLease::renewed(None, &one, end), Err(NotHeld::Ended(one.session)), "it was given back");
        assert_eq!(DevLease::taken(Some(&renewed), &other, end).unwrap().session, other.session, "it has passed");
        assert_eq!(DevLease::taken(Some(&renewed), &one, end.plus(DEV_LEASE)).unwrap().session, one.session);
    }

    #[test]
    fn a_lease_is_given_back_by_its_session_and_as_often_as_it_likes() {
        let (one, other) = (session(1), session(2));
        let now = Timestamp(1_000_000);
        let lease = DevLease::taken(None, &one, now).unwrap();
        let back = |before, by: &DevSession, now| DevLease::given_back(before, Some(by.session), now);
        assert_eq!(DevLease::given_back(Some(&lease), None, now), Ok(None), "an operator");
        assert_eq!(back(Some(&lease), &one, now), Ok(None));
        assert_eq!(back(None, &one, now), Ok(None), "again");
        assert_eq!(back(Some(&lease), &other, now), Err(HeldByAnother(lease.clone())));
        assert_eq!(back(Some(&lease), &other, lease.until), Ok(Some(lease.clone())), "nobody has the calls");
    }

    #[test]
    fn only_how_calls_are_made_differs() {
        let policy = json!({
            "kind": "parcel", "target": "kind", "max_in_flight": 3, "max_attempts": 7, "keep_results": true,
            "batch_api": {"url": "https://example.com/", "timeout": "40s", "mode": "strict", "use": "elasticsearch"},
        });
        let policy: Policy = serde_json::from_value(policy).unwrap();
        let lease = DevLease::taken(None, &session(1), Timestamp(0)).unwrap();
        let terms = lease.terms(&policy);
        let sent = json!({"sqs": lease.queue, "timeout": "5s", "answers_within": "5m"});
        assert_eq!(serde_json::to_value(&terms.batch_api).unwrap(), sent);
        assert_eq!(Policy { batch_api: policy.batch_api.clone(), ..terms }, policy);
        assert_eq!(DevLease::decode(&lease.encode().unwrap()).unwrap(), lease);
    }

    #[test]
    fn only_queues_of_sessions_of_this_stack_are_allowed() {
        let queues = DevQueues::new("arn:aws:sqs:eu-west-1:123456789012:shop-dev-".to_owned());
        assert!(queues.allow("arn:aws:sqs:eu-west-1:123456789012:shop-dev-parcel-0a1b"));
        let long = format!("arn:aws:sqs:eu-west-1:123456789012:shop-dev-{}", "x".repeat(80));
        for other in [
            "",
            "arn:aws:sqs:eu-west-1:123456789012:shop-dev-",
            "arn:aws:sqs:eu-west-1:123456789012:shop-AckQueue-1",
            "arn:aws:sqs:eu-west-1:123456789012:shop2-dev-parcel",
            "arn:aws:sqs:eu-west-1:210987654321:shop-dev-parcel",
            "arn:aws:sqs:us-east-1:123456789012:shop-dev-parcel",
            "arn:aws:sqs:eu-west-1:123456789012:shop-dev-parcel.fifo",
            "arn:aws:sqs:eu-west-1:123456789012:shop-dev-par:cel",
            "arn:aws:sqs:eu-west-1:123456789012:shop-dev-par cel",
            "https://sqs.eu-west-1.amazonaws.com/123456789012/shop-dev-parcel",
            &long,
        ] {
            assert!(!queues.allow(other), "{other}");
        }
    }
}
