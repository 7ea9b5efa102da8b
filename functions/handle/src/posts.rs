//! Outcomes that a batch API posts for a call that it answers later.

use std::time::Duration;

use fanfold::aws::{StoreError, Write};
use fanfold::bits::Bits;
use fanfold::limits::{CONTENTION_TRIES_MAX, OVERTAKEN_PAUSES};
use fanfold::messages::{OutcomesRequest, Posted, PostedOutcome};
use fanfold::policy::{FieldError, Policy};
use fanfold::store::batches::{Batch, BatchStatus};
use uuid::Uuid;

use crate::conclude::count_outcomes;
use crate::posted::{Noted, noted};
use crate::release::freed;
use crate::step::{Afterwards, NextPart};
use crate::{Handle, HandleError};

/// Posted outcomes were not recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PostError {
    #[error("the header Fanfold-Token is not that of a call of batch {0}")]
    WrongToken(Uuid),
    /// Entries that cannot be used.
    #[error("{} entries cannot be used", .0.len())]
    Refused(Vec<FieldError>),
    #[error(transparent)]
    Handle(#[from] HandleError),
}

impl From<StoreError> for PostError {
    fn from(error: StoreError) -> Self {
        Self::Handle(error.into())
    }
}

/// What became of posted outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Entries that say what holds now.
    pub(crate) recorded: usize,
    /// Entries that changed nothing.
    pub(crate) ignored: usize,
    /// Members of the batch without an outcome.
    pub(crate) open: usize,
}

impl Handle {
    /// Records posted outcomes, and does what follows from them. Repeating it does no harm.
    pub(crate) async fn post(&self, id: Uuid, token: &str, request: &OutcomesRequest) -> Result<Taken, PostError> {
        for tries in 1..=CONTENTION_TRIES_MAX {
            let batch = self.batches.get(id).await?.ok_or(HandleError::UnknownBatch(id))?;
            let attempt = batch.attempt_of(token).ok_or(PostError::WrongToken(id))?;
            let policy = self.policies.get(&batch.lane.kind).await?;
            let noted = noted(&batch, attempt, &request.members, self.world.now()).map_err(PostError::Refused)?;
            let Noted { after, results, recorded, ignored } = noted;
            let after = concluded(after, policy.as_deref());
            // A worker that recorded these failures before may have died before it released keys.
            let failed =
                if after.failed == batch.failed { failed_by(&batch, &request.members) } else { Bits::default() };
            let keeps = policy.as_ref().is_some_and(|policy| policy.keep_results);
            let results = if keeps { results } else { Vec::new() };
            if let Write::Done(after) = self.batches.note(&batch, after, results).await? {
                let taken = Taken { recorded, ignored, open: after.unsettled().len() };
                count_outcomes(&batch, &after);
                self.follow_post(&batch, after, policy.as_deref(), &failed).await?;
                return Ok(taken);
            }
            // Another post, or a worker, was faster.
            tokio::time::sleep(OVERTAKEN_PAUSES.after(tries, self.world.random.next())).await;
        }
        Err(StoreError::Contended { what: format!("recording outcomes of batch {id}") }.into())
    }

    /// Does what follows from posted outcomes. Also for those that were known: an earlier worker may have died before it did.
    /// `failed`: the slots whose keys may not be released, although their failure was known.
    async fn follow_post(
        &self,
        before: &Batch,
        after: Batch,
        policy: Option<&Policy>,
        failed: &Bits,
    ) -> Result<(), HandleError> {
        if after.status != BatchStatus::Done && !after.is_answered() {
            self.release(&after, policy, &before.failed.minus(failed)).await?;
            return self.ack_so_far(&after).await;
        }
        match self.continue_from_record(&after, false).await? {
            Afterwards::Done | Afterwards::Waits => Ok(()),
            // A post makes no call.
            Afterwards::NextPart(next) => {
                let NextPart { settled, message, .. } = *next;
                self.come_later(&settled, message, Duration::ZERO).await?;
                self.ack_so_far(&settled).await
            }
        }
    }
}

/// The batch with posted outcomes, and what follows from them if it waits for its next attempt. Only a policy says which keys are
/// free by a failure. So without one a batch is not done: its next attempt, when there is a policy again, makes no call.
fn concluded(after: Batch, policy: Option<&Policy>) -> Batch {
    match policy {
        Some(policy) => Batch { freed: freed(&after, policy), ..after.concluded() },
        None if after.unsettled().is_empty() => after,
        None => after.concluded(),
    }
}

/// The slots that entries say have failed.
fn failed_by(batch: &Batch, members: &[PostedOutcome]) -> Bits {
    let failed = members.iter().filter(|member| member.outcome == Posted::Failed);
    failed.filter_map(|member| batch.members.slot(&member.id)).collect()
}
