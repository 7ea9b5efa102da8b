//! Says why calls bring no outcomes. Until the attempts of a batch are used up no task has failed, so nothing else would show it.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use fanfold::ids::TaskId;
use fanfold::policy::{BatchApi, Mode, Policy, Refusals};
use fanfold_batch_api::{Answer, Call, CallError, Caller, Calling, MemberAnswer, MemberOutcome, Mismatch, Request};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::client::shown;
use crate::say::say;

/// Different reasons that are said: each may have a time or an id of its own in it.
const REASONS: usize = 5;

/// The call of its batch from which on a reason is said: what passes after one call is not worth a line.
const WORTH_SAYING: u32 = 2;

/// Calls batch APIs, and says why calls of one kind bring no outcomes.
pub(super) struct Repeated {
    caller: Arc<dyn Caller>,
    policy: Policy,
    said: Mutex<BTreeSet<String>>,
}

impl Repeated {
    pub(super) fn new(caller: Arc<dyn Caller>, policy: Policy) -> Self {
        Self { caller, policy, said: Mutex::default() }
    }

    fn hear(&self, mode: Mode, call: &Call, unsent: &HashSet<TaskId>, result: &Result<Answer, CallError>) {
        if call.kind != self.policy.kind || call.attempt < WORTH_SAYING {
            return;
        }
        let result = result.clone().and_then(|answer| answer.in_mode(mode, call, unsent));
        let Some(reason) = self.reason(call, result) else { return };
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < REASONS && said.insert(reason.clone()) {
            let (reason, most) = (shown(&reason), self.policy.max_attempts);
            say(format_args!("fanfold: calls bring no outcomes (`max_attempts` is {most}): {reason}"));
        }
    }

    /// Why a call brought no outcome. What stops the whole kind is said when it stands still.
    fn reason(&self, call: &Call, result: Result<Answer, CallError>) -> Option<String> {
        let stops = |error: &CallError| self.policy.refusals == Refusals::Wait && error.cause.concerns_every_batch();
        match result {
            Err(error) if error.retriable && !stops(&error) => Some(error.message),
            Ok(Answer::Unclear { members, problem }) if brings_nothing(call, &members) => {
                Some(format!("a part of the answer cannot be read: {problem}"))
            }
            Ok(Answer::Members(members)) if brings_nothing(call, &members) => {
                let mismatch = Mismatch::of(call.members.iter().map(|member| member.id), &members);
                if !mismatch.unknown.is_empty() {
                    return Some(mismatch.to_string());
                }
                let error = members.into_iter().find_map(|member| member.error);
                Some(error.unwrap_or_else(|| "the answer has no final outcome for any member".to_owned()))
            }
            _ => None,
        }
    }
}

/// Whether no member of the call has its outcome by this answer.
fn brings_nothing(call: &Call, answered: &[MemberAnswer]) -> bool {
    let ends = |member: &&MemberAnswer| matches!(member.outcome, MemberOutcome::Succeeded | MemberOutcome::Failed);
    let ended: HashSet<TaskId> = answered.iter().filter(ends).map(|member| member.id).collect();
    !call.members.iter().any(|member| ended.contains(&member.id))
}

impl Caller for Repeated {
    fn prepare<'a>(&'a self, batch_api: &'a BatchApi) -> BoxFuture<'a, Result<(), CallError>> {
        self.caller.prepare(batch_api)
    }

    fn call<'a>(&'a self, batch_api: &'a BatchApi, request: Request<'a>) -> Calling<'a> {
        async move {
            let (call, unsent) = (request.call, request.unsent());
            let result = self.caller.call(batch_api, request).await;
            self.hear(batch_api.mode, call, &unsent, &result);
            result
        }
        .boxed()
    }

    fn poll<'a>(&'a self, batch_api: &'a BatchApi, url: &'a str, request: Request<'a>) -> Calling<'a> {
        async move {
            let (call, unsent) = (request.call, request.unsent());
            let result = self.caller.poll(batch_api, url, request).await;
            self.hear(batch_api.mode, call, &unsent, &result);
            result
        }
        .boxed()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use fanfold_batch_api::{CallMember, Cause};
    use futures::future::ready;
    use serde_json::json;
    use serde_json::value::RawValue;
    use uuid::Uuid;

    use super::*;

    /// Answers each call in one way.
    struct Answers(Result<Answer, CallError>);

    impl Caller for Answers {
        fn call<'a>(&'a self, _: &'a BatchApi, _: Request<'a>) -> Calling<'a> {
            ready(self.0.clone()).boxed()
        }
    }

    /// What is said once a call of a batch was answered in this way.
    async fn said(result: Result<Answer, CallError>, attempt: u32, mode: &str) -> Vec<String> {
        let batch_api = json!({"url": "http://localhost:1/", "mode": mode});
        let policy = json!({"kind": "row", "target": "kind", "batch_api": batch_api});
        let policy: Policy = serde_json::from_value(policy).unwrap();
        let batch_api = policy.batch_api.clone();
        let repeated = Repeated::new(Arc::new(Answers(result)), policy);
        let content = RawValue::from_string("1".to_owned()).unwrap();
        let members = vec![CallMember { id: TaskId::Single(Uuid::from_u128(1)), content }];
        let call = Call { kind: "row".to_owned(), attempt, members, ..Call::of_nobody() };
        for _ in 0..2 {
            let _ = repeated.call(&batch_api, Request::new(&batch_api, &call).unwrap()).await;
        }
        let said = repeated.said.lock().unwrap();
        said.iter().cloned().collect()
    }

    #[tokio::test]
    async fn calls_without_outcomes_are_said_with_their_reason_once_they_are_repeated() {
        let failed = |cause| Err(CallError::new(cause, "why"));
        for (cause, expected) in [
            (Cause::BadAnswer, &["why"][..]),
            (Cause::Silence, &["why"]),
            (Cause::Status(500), &["why"]),
            (Cause::Status(503), &[]),
            (Cause::Status(422), &[]),
        ] {
            assert_eq!(said(failed(cause), 2, "slots").await, expected, "{cause:?}");
        }
        assert!(said(failed(Cause::Silence), 1, "slots").await.is_empty(), "it may pass");
    }

    #[tokio::test]
    async fn members_that_have_their_outcomes_show_that_calls_work() {
        let member = |outcome| MemberAnswer {
            error: Some("busy".to_owned()),
            ..MemberAnswer::new(TaskId::Single(Uuid::from_u128(1)), outcome)
        };
        let again = Answer::Members(vec![member(MemberOutcome::Retry)]);
        assert_eq!(said(Ok(again), 2, "slots").await, ["busy"]);
        let some = Answer::Members(vec![member(MemberOutcome::Retry), member(MemberOutcome::Failed)]);
        assert!(said(Ok(some), 2, "slots").await.is_empty());
        assert_eq!(said(Ok(Answer::Members(Vec::new())), 2, "slots").await.len(), 1);
        assert!(said(Ok(Answer::AllSucceeded), 2, "slots").await.is_empty());
        let one = Answer::Members(vec![member(MemberOutcome::Retry), member(MemberOutcome::Succeeded)]);
        assert!(said(Ok(one.clone()), 2, "slots").await.is_empty());
        assert_eq!(said(Ok(one), 2, "strict").await.len(), 1, "the call failed as a whole");
        let stranger = MemberAnswer::new(TaskId::Single(Uuid::from_u128(2)), MemberOutcome::Succeeded);
        let reasons = said(Ok(Answer::Members(vec![stranger])), 2, "slots").await;
        assert!(matches!(&reasons[..], [one] if one.contains("tasks that are no members")), "{reasons:?}");
    }
}
