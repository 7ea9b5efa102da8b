//! The outcome of a member whose entry has an HTTP status in place of an outcome.

use fanfold::limits::ENTRY_BYTES_MAX;
use fanfold::text::beginning;

use super::MemberOutcome;
use crate::Cause;

/// What the status of an entry says, and why if the member did not succeed: the same as the status of a whole call. `json`: a
/// number, or a text with one.
pub(super) fn outcome(json: &str) -> (MemberOutcome, Option<String>) {
    let number = json.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(json);
    let known = number.parse::<u16>().ok().filter(|status| (200..=599).contains(status));
    let Some(status) = known else {
        let shown = beginning(json.as_bytes(), ENTRY_BYTES_MAX);
        let problem = format!("the answer's status for it is {shown}, a number from 200 to 599 is expected");
        return (MemberOutcome::Unclear, Some(problem));
    };
    let cause = Cause::Status(status);
    let outcome = match status {
        200..=299 => return (MemberOutcome::Succeeded, None),
        _ if !cause.retriable() => MemberOutcome::Failed,
        _ if cause.answered() => MemberOutcome::Retry,
        _ => MemberOutcome::Unclear,
    };
    (outcome, Some(format!("the answer's status for it is {status}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_means_what_it_means_for_a_call() {
        use MemberOutcome::{Failed, Retry, Succeeded, Unclear};
        for (statuses, expected) in [
            (&["200", "201", "204", "\"201\"", "299"][..], Succeeded),
            (&["300", "304", "400", "401", "404", "410", "422", "\"422\""], Failed),
            (&["408", "409", "425", "429", "500", "503", "\"503\""], Retry),
            // A gateway got no answer: the member may have worked.
            (&["502", "504"], Unclear),
            (&["100", "600", "0", "-1", "200.0", "null", "true", "\"\"", "\"ok\"", "\"", "{}", "70000"], Unclear),
        ] {
            for status in statuses {
                let (outcome, problem) = outcome(status);
                assert_eq!((outcome, problem.is_none()), (expected, expected == Succeeded), "{status}");
            }
        }
        assert_eq!(outcome("422").1.as_deref(), Some("the answer's status for it is 422"));
    }
}
