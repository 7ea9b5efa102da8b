//! Dev sessions, and their queues, which take what is sent to them.

use std::time::Duration;

use fanfold::control::{DevLease, DevSession};
use fanfold::policy::{BatchApi, Span, Way};
use fanfold::store::policies::{DevError, Policies};
use fanfold_batch_api::{Accepted, Answer, CallError, Cause};
use uuid::Uuid;

use crate::api::Seen;
use crate::stack::TestStack;

/// What the ARNs of their queues begin with.
pub const DEV_QUEUES: &str = "arn:aws:sqs:local:000000000000:fanfold-dev-";

/// How long after a call was sent to one its outcomes may come.
pub const DEV_WITHIN: Duration = Duration::from_secs(90);

/// How the name of a queue ends that is deleted.
const GONE: &str = "gone";

/// The queue of a dev session, if a call goes to one.
pub(crate) fn queue(batch_api: &BatchApi) -> Option<String> {
    match &batch_api.way {
        Way::Sqs(queue) if queue.starts_with(DEV_QUEUES) => Some(queue.clone()),
        _ => None,
    }
}

/// What SQS answers.
pub(crate) fn sent(queue: &str) -> Result<Answer, CallError> {
    if queue.ends_with(GONE) {
        return Err(CallError::new(Cause::Status(404), "SQS answered 400 Bad Request: QueueDoesNotExist"));
    }
    Ok(Answer::Later(Accepted::default()))
}

impl TestStack {
    /// Takes or renews the lease of a session on the calls of parcels, once.
    pub async fn take_dev(&self, session: &str) -> Result<Option<DevLease>, DevError> {
        self.take_dev_for(session, DEV_WITHIN).await
    }

    /// The same, where outcomes may come for so long.
    pub async fn take_dev_for(&self, session: &str, within: Duration) -> Result<Option<DevLease>, DevError> {
        let queue = format!("{DEV_QUEUES}{session}");
        let session = DevSession { session: id(session), queue, answers_within: Span(within) };
        let policies = Policies::new(self.surroundings().table("POLICIES_TABLE").unwrap());
        policies.change_dev("parcel", |lease, now| Ok(Some(DevLease::taken(lease, &session, now)?))).await
    }

    /// Gives it back, once.
    pub async fn give_back_dev(&self, session: &str) -> Result<Option<DevLease>, DevError> {
        let policies = Policies::new(self.surroundings().table("POLICIES_TABLE").unwrap());
        policies.change_dev("parcel", |lease, now| Ok(DevLease::given_back(lease, Some(id(session)), now)?)).await
    }

    /// The calls that went to a dev session, and those of the policy's own batch API.
    pub fn seen_by_dev(&self) -> (Vec<Seen>, Vec<Seen>) {
        self.api.seen().into_iter().partition(|seen| seen.dev.is_some())
    }
}

fn id(session: &str) -> Uuid {
    Uuid::from_u128(session.bytes().fold(0, |id, byte| id * 256 + u128::from(byte)))
}
