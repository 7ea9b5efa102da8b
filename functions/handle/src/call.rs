//! The call of an attempt.

use fanfold::clock::Timestamp;
use fanfold::ids::derived::message_group;
use fanfold::metrics::{CALLED_TO_ANSWERED, CALLS, REGISTERED_TO_CALLED};
use fanfold::policy::Policy;
use fanfold::store::batches::Batch;
use fanfold_batch_api::{Answer, Call, CallError, CallMember, Mismatch, Request};

use crate::Handle;

impl Handle {
    /// Calls the batch API. Also returns whether there was a call: not if it would be too large, or if no member can be in a request.
    pub(crate) async fn call(
        &self,
        batch: &Batch,
        policy: &Policy,
        members: Vec<CallMember>,
        registered: &[Timestamp],
    ) -> (Result<Answer, CallError>, bool) {
        let call = call_of(batch, members);
        let request = match Request::new(&policy.batch_api, &call) {
            Ok(request) => request.with_token(batch.token()).in_group(message_group(&batch.lane)),
            Err(error) => return (Err(error), false),
        };
        metrics::counter!(CALLS).increment(1);
        let called = self.world.now();
        if batch.attempts == 1 {
            let waited = metrics::histogram!(REGISTERED_TO_CALLED);
            registered.iter().for_each(|registered| waited.record(called.since(*registered).as_secs_f64()));
        }
        let unsent = request.unsent();
        let result = self.caller.call(&policy.batch_api, request).await;
        let made =
            unsent.len() < call.members.len() && result.as_ref().err().is_none_or(|error| error.cause.is_of_a_call());
        let result = result.and_then(|answer| answer.in_mode(policy.batch_api.mode, &call, &unsent));
        let took = self.world.now().since(called).as_secs_f64();
        metrics::histogram!(CALLED_TO_ANSWERED).record_many(took, registered.len());
        log_answer(batch, &call, &result);
        (result, made)
    }
}

/// Logs what cannot be seen from the outcomes alone.
fn log_answer(batch: &Batch, call: &Call, result: &Result<Answer, CallError>) {
    match result {
        Err(error) => {
            tracing::info!(batch = %batch.id, attempt = batch.attempts, %error, "the call of the batch API failed");
        }
        Ok(Answer::Unclear { problem, .. }) => {
            tracing::warn!(batch = %batch.id, attempt = batch.attempts, %problem, "a part of the answer cannot be read");
        }
        Ok(Answer::Members(members)) => {
            let mismatch = Mismatch::of(call.members.iter().map(|member| member.id), members);
            if !mismatch.is_empty() {
                tracing::warn!(batch = %batch.id, attempt = batch.attempts, "{mismatch}");
            }
        }
        Ok(Answer::AllSucceeded | Answer::Later(_)) => {}
    }
}

/// The latest call of a batch, for these members.
pub(crate) fn call_of(batch: &Batch, members: Vec<CallMember>) -> Call {
    let (kind, target) = (batch.lane.kind.clone(), batch.lane.target.clone());
    Call { batch_id: batch.id, kind, attempt: batch.attempts, target, members }
}
