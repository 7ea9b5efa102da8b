//! `mode: strict`: a call works for all of its members, or it failed as a whole.

use std::collections::HashSet;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::policy::Mode;

use super::mismatch::Mismatch;
use super::{Answer, MemberAnswer, MemberOutcome};
use crate::{Call, CallError, Cause, RetryAfter};

/// What is said of a member that did not succeed, without a reason.
const NO_REASON: &str = "it did not succeed, without an error message";

impl Answer {
    /// The same as the policy's mode takes it. With `strict`, a member that did not succeed, is missing, or is named twice, and a
    /// task that is no member, fail the call. Members that were not sent do not: the batch API did what it was asked. `unsent`:
    /// these.
    ///
    /// # Errors
    /// The call failed as a whole. It is repeated, unless a member failed for good.
    pub fn in_mode(self, mode: Mode, call: &Call, unsent: &HashSet<TaskId>) -> Result<Self, CallError> {
        let (members, problem) = match (mode, self) {
            (Mode::Slots, answer) => return Ok(answer),
            (Mode::Strict, Self::Later(later)) => return Ok(Self::Later(later)),
            (Mode::Strict, Self::AllSucceeded) => return Ok(Self::AllSucceeded),
            (Mode::Strict, Self::Members(members)) => (members, None),
            (Mode::Strict, Self::Unclear { members, problem }) => (members, Some(problem)),
        };
        let asked = members.iter().filter_map(|member| member.retry_after).max();
        let retry_after = asked.map(|asked: Duration| RetryAfter::Delay(asked));
        let unclear = |problem: String| CallError { retry_after, ..CallError::new(Cause::BadAnswer, problem) };
        if let Some(problem) = problem {
            return Err(unclear(format!("a part of the answer cannot be read: {problem}")));
        }
        let is_bad = |member: &&MemberAnswer| {
            !matches!(member.outcome, MemberOutcome::Succeeded | MemberOutcome::Unnamed) && !unsent.contains(&member.id)
        };
        let bad: Vec<&MemberAnswer> = members.iter().filter(is_bad).collect();
        let with = |outcome| bad.iter().copied().find(|member| member.outcome == outcome);
        // It may have worked for such a member.
        if let Some(member) = with(MemberOutcome::Unclear) {
            return Err(unclear(said(member, bad.len(), call)));
        }
        let mismatch = Mismatch::of(call.members.iter().map(|member| member.id), &members);
        let failed = with(MemberOutcome::Failed);
        let (message, code) = match failed.or_else(|| bad.first().copied()) {
            Some(member) => (said(member, bad.len(), call), member.code.clone().filter(|_| call.members.len() == 1)),
            None if mismatch.is_empty() => return Ok(Self::Members(members)),
            None => (mismatch.to_string(), None),
        };
        Err(CallError { retriable: failed.is_none(), retry_after, code, ..CallError::new(Cause::Members, message) })
    }
}

/// Why a call failed because of a member, and how many others are like it. A member alone has its own error.
fn said(member: &MemberAnswer, bad: usize, call: &Call) -> String {
    let error = member.error.as_deref().filter(|error| !error.trim().is_empty()).unwrap_or(NO_REASON);
    match call.members.len() {
        1 => error.to_owned(),
        all => format!("{bad} of {all} members did not succeed, so the call failed as a whole; {}: {error}", member.id),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::call::testing::call;

    const A: &str = "0189abcd-0000-7000-8000-000000000001";
    const B: &str = "0189abcd-0000-7000-8000-000000000002";

    fn member(id: &str, outcome: MemberOutcome) -> MemberAnswer {
        MemberAnswer::new(id.parse().unwrap(), outcome)
    }

    fn strictly(members: Vec<MemberAnswer>) -> Result<Answer, CallError> {
        Answer::Members(members).in_mode(Mode::Strict, &call(&[A, B]), &HashSet::new())
    }

    #[test]
    fn a_call_that_worked_for_all_is_taken_as_it_is() {
        let all = vec![member(A, MemberOutcome::Succeeded), member(B, MemberOutcome::Succeeded)];
        assert_eq!(strictly(all.clone()), Ok(Answer::Members(all)));
        assert_eq!(
            Answer::AllSucceeded.in_mode(Mode::Strict, &call(&[A, B]), &HashSet::new()),
            Ok(Answer::AllSucceeded)
        );
        let one = Answer::Members(vec![member(A, MemberOutcome::Failed)]);
        assert_eq!(one.clone().in_mode(Mode::Slots, &call(&[A, B]), &HashSet::new()), Ok(one));
    }

    #[test]
    fn one_bad_member_fails_the_call_and_is_named() {
        use MemberOutcome::{Failed, Retry, Succeeded, Unclear};
        for (outcome, cause, retriable) in
            [(Failed, Cause::Members, false), (Retry, Cause::Members, true), (Unclear, Cause::BadAnswer, true)]
        {
            let bad = MemberAnswer { error: Some("too heavy".to_owned()), ..member(B, outcome) };
            let error = strictly(vec![member(A, Succeeded), bad]).unwrap_err();
            assert_eq!((error.cause, error.retriable), (cause, retriable), "{outcome:?}");
            let shown = format!("1 of 2 members did not succeed, so the call failed as a whole; {B}: too heavy");
            assert_eq!((error.message, error.code), (shown, None));
        }
    }

    #[test]
    fn members_that_are_missing_repeated_or_strange_fail_the_call() {
        let [a, b] = [A, B].map(|id| member(id, MemberOutcome::Succeeded));
        let stranger = member(&A.replace('1', "3"), MemberOutcome::Succeeded);
        for (members, shown) in [
            (vec![a.clone()], format!("no outcome for {B}")),
            (vec![a.clone(), b.clone(), b.clone()], format!("several outcomes for {B}")),
            (vec![a, b, stranger.clone()], format!("no members: {}", stranger.id)),
        ] {
            let error = strictly(members).unwrap_err();
            assert!(error.retriable && error.cause == Cause::Members && error.message.contains(&shown), "{error}");
        }
    }

    #[test]
    fn a_member_alone_keeps_its_error_its_code_and_the_delay_it_asks_for() {
        let alone = |outcome| MemberAnswer {
            error: Some("busy".to_owned()),
            code: Some("E7".to_owned()),
            retry_after: Some(Duration::from_secs(9)),
            ..member(A, outcome)
        };
        let error = Answer::Members(vec![alone(MemberOutcome::Retry)])
            .in_mode(Mode::Strict, &call(&[A]), &HashSet::new())
            .unwrap_err();
        assert_eq!((error.message.as_str(), error.code.as_deref()), ("busy", Some("E7")));
        assert_eq!(error.retry_after, Some(RetryAfter::Delay(Duration::from_secs(9))));
    }

    #[test]
    fn whatever_fails_a_call_its_delay_holds() {
        let delay = Some(Duration::from_secs(60));
        let call = call(&[A, B]);
        for answer in [
            Answer::Members(vec![member(A, MemberOutcome::Succeeded)]),
            Answer::Members(vec![member(A, MemberOutcome::Succeeded), member(B, MemberOutcome::Unclear)]),
            Answer::Unclear { members: vec![member(A, MemberOutcome::Retry)], problem: "7".to_owned() },
        ] {
            let error = answer.asking_for(delay, &call).in_mode(Mode::Strict, &call, &HashSet::new()).unwrap_err();
            assert_eq!(error.retry_after, Some(RetryAfter::Delay(Duration::from_secs(60))), "{error}");
        }
        let missing = Answer::Members(vec![member(A, MemberOutcome::Succeeded)]).asking_for(delay, &call);
        let error = missing.in_mode(Mode::Strict, &call, &HashSet::new()).unwrap_err();
        assert!(error.message.contains(&format!("no outcome for {B}")), "{error}");
    }

    #[test]
    fn a_member_that_was_not_sent_fails_alone() {
        let members = vec![member(A, MemberOutcome::Succeeded), member(B, MemberOutcome::Failed)];
        let [a, b] = [A, B].map(|id| HashSet::from([id.parse().unwrap()]));
        let strictly = |unsent| Answer::Members(members.clone()).in_mode(Mode::Strict, &call(&[A, B]), unsent);
        assert_eq!(strictly(&b), Ok(Answer::Members(members.clone())));
        assert_eq!(strictly(&a).unwrap_err().cause, Cause::Members, "the one that was sent failed");
    }
}
