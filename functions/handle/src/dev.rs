//! Dev sessions: while the lease of one holds, the calls of its kind are messages of its queue.

use std::sync::Arc;

use fanfold::aws::StoreError;
use fanfold::clock::Timestamp;
use fanfold::control::DevLease;
use fanfold::policy::{Policy, no_policy};
use fanfold::store::batches::Batch;
use fanfold_batch_api::{Answer, CallError, Cause};
use uuid::Uuid;

use crate::Handle;

/// Which batch API is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// That of the dev session that has the calls of the kind. Without a session, that of the policy.
    Session,
    /// That of the policy.
    Policy,
}

/// The policy by which a call is made, and the dev session that it is sent to.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The policy, with the queue of the dev session as batch API if there is one.
    pub(crate) policy: Arc<Policy>,
    /// The lease of that session.
    pub(crate) lease: Option<Arc<DevLease>>,
}

impl Handle {
    /// The terms by which a batch is called now. None: its kind has no policy, and it waits.
    pub(crate) async fn terms(&self, batch: &Batch, whose: Whose) -> Result<Option<Terms>, StoreError> {
        let kind = &batch.lane.kind;
        let Some(policy) = self.policies.get(kind).await? else {
            tracing::warn!(batch = %batch.id, "{}; the batch waits, and is found by the sweep", no_policy(kind));
            return Ok(None);
        };
        let lease = if whose == Whose::Session { self.lease(kind).await? } else { None };
        let policy = lease.as_ref().map_or(policy.clone(), |lease| Arc::new(lease.terms(&policy)));
        Ok(Some(Terms { policy, lease }))
    }

    /// The lease that holds on the calls of a kind, if the stack allows dev sessions.
    async fn lease(&self, kind: &str) -> Result<Option<Arc<DevLease>>, StoreError> {
        let Some(queues) = &self.dev_queues else { return Ok(None) };
        Ok(self.policies.dev(kind).await?.filter(|lease| queues.allow(&lease.queue)))
    }

    /// Whether a session has the calls of a kind now.
    async fn is_sessions(&self, kind: &str, session: Uuid) -> Result<bool, StoreError> {
        Ok(self.lease(kind).await?.is_some_and(|lease| lease.session == session))
    }

    /// Whether the session that a call is to be sent to still has the calls of the kind. What is sent later than this says
    /// would find nobody.
    pub(crate) async fn still_holds(&self, batch: &Batch, terms: &Terms) -> Result<bool, StoreError> {
        match &terms.lease {
            Some(lease) => self.is_sessions(&batch.lane.kind, lease.session).await,
            None => Ok(true),
        }
    }

    /// For an attempt whose call went to a dev session: when the batch may be called again, if the attempt does not count. It does
    /// not if the session said nothing, or handed members back after its lease: a batch must not fail because a laptop was closed.
    pub(crate) async fn handed_back(
        &self,
        batch: &Batch,
        result: &Result<Answer, CallError>,
    ) -> Result<Option<Timestamp>, StoreError> {
        let Some(session) = batch.dev_session else { return Ok(None) };
        let back = result.is_err() || (!batch.again.is_zero() && !self.is_sessions(&batch.lane.kind, session).await?);
        Ok(back.then(|| self.world.now()))
    }
}

/// A call was not sent to a dev session, or perhaps it was. As with a session that says nothing, for the batch nothing was called.
pub(crate) fn unsent(error: &CallError) -> CallError {
    CallError::new(Cause::Unreachable, format!("the call was not sent to the dev session: {}", error.message))
}

/// No outcome came from a dev session. This counts as if there had been no call: the policy's own batch API, which may be called
/// next, has done nothing for the batch yet.
pub(crate) fn silent_session() -> CallError {
    CallError::new(Cause::Unreachable, "no outcome came from the dev session in time")
}
