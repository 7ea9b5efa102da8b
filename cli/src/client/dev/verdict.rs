//! What follows from a call of the batch API on this machine. No I/O.

use std::collections::HashMap;
use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::ids::TaskId;
use fanfold::messages::{Posted, PostedOutcome};
use fanfold_batch_api::{Answer, Call, CallError, MemberAnswer, MemberOutcome};

/// How long to wait before a batch API is called again that would refuse every call.
const REFUSED_PAUSE: Duration = Duration::from_secs(3);

/// The longest of such waits that it may ask for.
const REFUSED_PAUSE_MAX: Duration = Duration::from_secs(30);

/// What of the policy decides what follows from a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) max_attempts: u32,
    /// Whether calls wait while every call is refused (`refusals: wait`).
    pub(super) waits: bool,
}

/// What follows from a call.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// These outcomes.
    Outcomes(Vec<PostedOutcome>),
    /// The call failed as a whole, perhaps because of one member: its halves are called.
    Halves,
    /// The batch API would refuse every call, for this reason: the call is made again after this time.
    NotNow(String, Duration),
}

impl Rules {
    pub(super) fn verdict(self, call: &Call, result: Result<Answer, CallError>, now: Timestamp) -> Verdict {
        let (members, problem) = match result {
            Ok(Answer::AllSucceeded) => return Verdict::Outcomes(all(call, Posted::Succeeded, None)),
            Ok(Answer::Members(members)) => (members, None),
            Ok(Answer::Unclear { members, problem }) => (members, Some(problem)),
            Ok(Answer::Later(later)) => (later.members, Some("the outcomes were to come later".to_owned())),
            Err(error) => return self.failed(call, &error, now),
        };
        Verdict::Outcomes(by_member(call, members, problem.as_deref()))
    }

    /// What follows from a call that failed as a whole: the same as in the stack, as far as this call shows it.
    fn failed(self, call: &Call, error: &CallError, now: Timestamp) -> Verdict {
        let asked = error.retry_after.map(|asked| asked.delay(now));
        if self.waits && error.cause.concerns_every_batch() {
            return Verdict::NotNow(error.message.clone(), asked.unwrap_or(REFUSED_PAUSE).min(REFUSED_PAUSE_MAX));
        }
        let used_up = self.max_attempts > 1 && call.attempt >= self.max_attempts;
        if call.members.len() > 1 && error.cause.may_be_one_member() && (!error.retriable || used_up) {
            return Verdict::Halves;
        }
        let outcome = if error.retriable { Posted::Retry } else { Posted::Failed };
        let mut outcomes = all(call, outcome, Some(&error.message));
        for member in &mut outcomes {
            member.code.clone_from(&error.code);
            member.retry_after = asked.filter(|_| error.retriable).map(|asked| asked.as_secs_f64());
        }
        Verdict::Outcomes(outcomes)
    }
}

/// The same outcome for every member.
pub(super) fn all(call: &Call, outcome: Posted, error: Option<&str>) -> Vec<PostedOutcome> {
    call.members.iter().map(|member| posted(member.id, outcome, error)).collect()
}

fn posted(id: TaskId, outcome: Posted, error: Option<&str>) -> PostedOutcome {
    PostedOutcome { id, outcome, error: error.map(str::to_owned), code: None, retry_after: None, result: None }
}

/// An outcome for each member. Those that the answer does not name, or not clearly, are to be called again.
fn by_member(call: &Call, members: Vec<MemberAnswer>, problem: Option<&str>) -> Vec<PostedOutcome> {
    let mut named: HashMap<TaskId, Vec<MemberAnswer>> = HashMap::new();
    for member in members {
        named.entry(member.id).or_default().push(member);
    }
    let missing = problem.map_or_else(
        || "the answer has no outcome for it".to_owned(),
        |problem| format!("the answer has no outcome for it, and {problem}"),
    );
    let outcome = |id: TaskId| match named.remove(&id) {
        None => posted(id, Posted::Retry, Some(&missing)),
        Some(said) if said.iter().any(|other| other.outcome != said[0].outcome) => {
            posted(id, Posted::Retry, Some("the answer has several outcomes for it"))
        }
        Some(said) if said[0].outcome == MemberOutcome::Unnamed => {
            let retry_after = said[0].retry_after.map(|after| after.as_secs_f64());
            PostedOutcome { retry_after, ..posted(id, Posted::Retry, Some(&missing)) }
        }
        Some(mut said) => of_member(said.remove(0)),
    };
    call.members.iter().map(|member| member.id).map(outcome).collect()
}

fn of_member(member: MemberAnswer) -> PostedOutcome {
    let outcome = match member.outcome {
        MemberOutcome::Succeeded => Posted::Succeeded,
        MemberOutcome::Failed => Posted::Failed,
        MemberOutcome::Retry | MemberOutcome::Unclear | MemberOutcome::Unnamed => Posted::Retry,
    };
    let again = outcome == Posted::Retry;
    PostedOutcome {
        code: member.code,
        retry_after: member.retry_after.filter(|_| again).map(|after| after.as_secs_f64()),
        result: member.result.and_then(|result| serde_json::from_str(&result).ok()),
        ..posted(member.id, outcome, member.error.as_deref().filter(|_| outcome != Posted::Succeeded))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use fanfold_batch_api::{CallMember, Cause, RetryAfter};
    use serde_json::value::RawValue;
    use uuid::Uuid;

    use super::*;

    const RULES: Rules = Rules { max_attempts: 3, waits: true };

    fn id(n: u128) -> TaskId {
        TaskId::Single(Uuid::from_u128(n))
    }

    fn call(members: u128, attempt: u32) -> Call {
        let member = |n| CallMember { id: id(n), content: RawValue::from_string("{}".to_owned()).unwrap() };
        let members = (1..=members).map(member).collect();
        Call { batch_id: Uuid::nil(), kind: "parcel".to_owned(), attempt, target: "NY".to_owned(), members }
    }

    fn verdict(members: u128, attempt: u32, error: CallError) -> Verdict {
        RULES.verdict(&call(members, attempt), Err(error), Timestamp(0))
    }

    fn outcomes(verdict: Verdict) -> Vec<(Posted, Option<String>)> {
        match verdict {
            Verdict::Outcomes(all) => all.into_iter().map(|one| (one.outcome, one.error)).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_member_has_the_outcome_that_the_answer_gives_it() {
        let of = |n, outcome, error: Option<&str>| MemberAnswer {
            error: error.map(str::to_owned),
            result: Some("{\"a\":1}".to_owned()),
            ..MemberAnswer::new(id(n), outcome)
        };
        let members = vec![
            of(1, MemberOutcome::Succeeded, None),
            of(2, MemberOutcome::Failed, Some("bad")),
            of(3, MemberOutcome::Succeeded, None),
            of(3, MemberOutcome::Failed, None),
        ];
        let said = RULES.verdict(&call(4, 1), Ok(Answer::Members(members)), Timestamp(0));
        let Verdict::Outcomes(posted) = &said else { panic!("{said:?}") };
        assert_eq!(posted[0].result, Some(serde_json::json!({"a": 1})));
        let error = |text: &str| Some(text.to_owned());
        assert_eq!(
            outcomes(said),
            [
                (Posted::Succeeded, None),
                (Posted::Failed, error("bad")),
                (Posted::Retry, error("the answer has several outcomes for it")),
                (Posted::Retry, error("the answer has no outcome for it")),
            ]
        );
        let all = outcomes(RULES.verdict(&call(2, 1), Ok(Answer::AllSucceeded), Timestamp(0)));
        assert_eq!(all, [(Posted::Succeeded, None), (Posted::Succeeded, None)]);
    }

    #[test]
    fn a_call_that_failed_as_a_whole_is_split_repeated_or_fails_as_in_the_stack() {
        let error = |status| CallError::new(Cause::Status(status), "no");
        assert_eq!(verdict(2, 1, error(422)), Verdict::Halves);
        assert_eq!(outcomes(verdict(1, 1, error(422))), [(Posted::Failed, Some("no".to_owned()))]);
        assert_eq!(outcomes(verdict(2, 1, error(500)))[0].0, Posted::Retry);
        assert_eq!(verdict(2, 3, error(500)), Verdict::Halves, "its attempts are used up");
        assert_eq!(outcomes(verdict(1, 3, error(500)))[0].0, Posted::Retry, "the stack counts");
        assert_eq!(outcomes(verdict(2, 3, CallError::new(Cause::Silence, "no")))[0].0, Posted::Retry);
        let busy = CallError { retry_after: Some(RetryAfter::Delay(Duration::from_secs(9))), ..error(500) };
        let Verdict::Outcomes(posted) = verdict(1, 1, busy) else { panic!() };
        assert_eq!(posted[0].retry_after, Some(9.0));
    }

    #[test]
    fn a_batch_api_that_is_not_there_is_waited_for() {
        let gone = || CallError::new(Cause::Unreachable, "no");
        assert_eq!(verdict(2, 9, gone()), Verdict::NotNow("no".to_owned(), REFUSED_PAUSE));
        let asks = CallError { retry_after: Some(RetryAfter::Delay(Duration::from_secs(900))), ..gone() };
        assert_eq!(verdict(2, 9, asks), Verdict::NotNow("no".to_owned(), REFUSED_PAUSE_MAX));
        let fails = Rules { waits: false, ..RULES };
        assert_eq!(outcomes(fails.verdict(&call(1, 1), Err(gone()), Timestamp(0)))[0].0, Posted::Retry);
    }
}
