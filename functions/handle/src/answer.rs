//! Reading a batch API's answer.

use serde::Deserialize;

use crate::api::{Answer, CallError, Cause, MemberAnswer};

/// An answer's body. Further fields, such as a member's `result`, are the batch API's own.
#[derive(Deserialize)]
struct Body {
    members: Vec<MemberAnswer>,
}

/// Reads an answer: nothing (every member succeeded), or `{"members": [{"id", "outcome", "error"?}]}`.
///
/// # Errors
/// It is something else. It says nothing about the members, so they are tried again.
pub fn parse(body: &[u8]) -> Result<Answer, CallError> {
    if body.trim_ascii().is_empty() {
        return Ok(Answer::AllSucceeded);
    }
    match serde_json::from_slice::<Body>(body) {
        Ok(body) => Ok(Answer::Members(body.members)),
        Err(error) => {
            Err(CallError::new(Cause::BadAnswer, format!("the answer is not {{\"members\": [...]}}: {error}")))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::api::MemberOutcome;
    use fanfold::limits::ERROR_BYTES;
    use proptest::prelude::*;

    #[test]
    fn reads_outcomes() {
        let id = "01890000-0000-7000-8000-000000000001";
        let body = format!(
            r#"{{"members": [{{"id": "{id}", "outcome": "failed", "error": "no", "result": {{"a": 1}}}}], "x": 1}}"#
        );
        let Answer::Members(members) = parse(body.as_bytes()).unwrap() else { panic!("members") };
        assert_eq!((members[0].outcome, members[0].error.as_deref()), (MemberOutcome::Failed, Some("no")));
        assert_eq!(parse(b" \n").unwrap(), Answer::AllSucceeded);
    }

    #[test]
    fn rubbish_is_tried_again() {
        for body in [
            "null",
            "{}",
            "[]",
            "<html>",
            r#"{"members": {}}"#,
            r#"{"members": [{"id": "x", "outcome": "failed"}]}"#,
            "\"\\ud800\"",
        ] {
            assert!(parse(body.as_bytes()).unwrap_err().retriable, "{body}");
        }
        // The answer to one call is told of each of up to 10,000 members.
        let huge = format!(r#"{{"members": [{{"id": "x", "outcome": "{}"}}]}}"#, "x".repeat(1_000_000));
        for huge in [huge.replace("\"id\": \"x\", ", ""), huge, format!("\"{}\"", "x".repeat(1_000_000))] {
            let error = parse(huge.as_bytes()).unwrap_err();
            assert!(error.retriable && error.message.len() <= ERROR_BYTES, "{} bytes", error.message.len());
        }
        assert!(parse("[".repeat(100_000).as_bytes()).unwrap_err().retriable);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&body);
        }
    }
}
