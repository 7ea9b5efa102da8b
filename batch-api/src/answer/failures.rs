//! The answer that handlers of SQS messages return: `{"batchItemFailures": [{"itemIdentifier": id}]}`. It means what it means to
//! Lambda: the members that it names are tried again, and all others succeeded. If an entry names no member, it is not known
//! which members failed, so none has an outcome.

use std::collections::HashSet;

use fanfold::ids::TaskId;
use fanfold::limits::ENTRY_BYTES_MAX;
use fanfold::text::beginning;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::read::{id, sort};
use super::{MemberAnswer, MemberOutcome};
use crate::Call;

/// The error of a member that is named.
const NAMED: &str = "the batch API named it in `batchItemFailures`";

/// An entry. Further fields are the batch API's own.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, rename = "itemIdentifier")]
    id: Option<&'a RawValue>,
}

/// The outcomes of all members of a call; `list`: the value of `batchItemFailures`. Null is an empty list.
///
/// # Errors
/// It is something else, or an entry names no member of the call.
pub(super) fn read(list: &RawValue, call: &Call) -> Result<Vec<MemberAnswer>, String> {
    let text = list.get();
    let entries: Vec<&RawValue> = match text {
        "null" => Vec::new(),
        _ if text.starts_with('[') => serde_json::from_str(text)
            .map_err(|error| format!("the answer's `batchItemFailures` cannot be read, {error}"))?,
        _ => return Err(format!("the answer's `batchItemFailures` is {}, a list is expected", sort(text))),
    };
    let members: HashSet<TaskId> = call.members.iter().map(|member| member.id).collect();
    let mut failed = HashSet::with_capacity(entries.len());
    for entry in entries {
        let Some(id) = named(entry.get()).filter(|id| members.contains(id)) else {
            let shown = beginning(entry.get().as_bytes(), ENTRY_BYTES_MAX);
            return Err(format!(
                "the answer's `batchItemFailures` has the entry {shown}, whose `itemIdentifier` is not a member's id, so all \
                 members are tried again"
            ));
        };
        failed.insert(id);
    }
    let outcome = |id: TaskId| match failed.contains(&id) {
        true => MemberAnswer { error: Some(NAMED.to_owned()), ..MemberAnswer::new(id, MemberOutcome::Retry) },
        false => MemberAnswer::new(id, MemberOutcome::Succeeded),
    };
    Ok(call.members.iter().map(|member| outcome(member.id)).collect())
}

/// The task that an entry names.
fn named(entry: &str) -> Option<TaskId> {
    // Only objects: serde would take a list for the fields of one.
    let entry: Entry<'_> = if entry.starts_with('{') { serde_json::from_str(entry).ok()? } else { return None };
    id(&serde_json::from_str::<String>(entry.id?.get()).ok()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::call::testing::call;
    use crate::{Answer, Cause};
    use serde_json::json;

    const A: &str = "0189abcd-0000-7000-8000-000000000001";
    const B: &str = "0189abcd-0000-7000-8000-000000000002";

    fn outcomes(body: &str) -> Vec<MemberOutcome> {
        match Answer::read(body.as_bytes(), &call(&[A, B])).unwrap() {
            Answer::Members(members) => members.into_iter().map(|member| member.outcome).collect(),
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn who_is_named_is_tried_again_and_the_others_succeeded() {
        use MemberOutcome::{Retry, Succeeded};
        let named = |ids: &[&str]| {
            let failures: Vec<_> = ids.iter().map(|id| json!({"itemIdentifier": id, "reason": "no"})).collect();
            outcomes(&json!({"batchItemFailures": failures, "further": 1}).to_string())
        };
        assert_eq!(named(&[B]), [Succeeded, Retry]);
        assert_eq!(named(&[B, B, A]), [Retry, Retry]);
        assert_eq!(named(&[&A.to_uppercase()]), [Retry, Succeeded]);
        assert_eq!(named(&[]), [Succeeded, Succeeded]);
        assert_eq!(outcomes(r#"{"batchItemFailures": null}"#), [Succeeded, Succeeded]);
    }

    #[test]
    fn an_entry_that_names_no_member_leaves_every_outcome_open() {
        let stranger = A.replace('1', "3");
        for entry in [
            json!({"itemIdentifier": ""}),
            json!({"itemIdentifier": null}),
            json!({"itemIdentifier": 7}),
            json!({"itemIdentifier": stranger}),
            json!({"ItemIdentifier": A}),
            json!({}),
            json!([A]),
            json!(A),
            json!(null),
        ] {
            let body = json!({"batchItemFailures": [{"itemIdentifier": B}, &entry]}).to_string();
            let error = Answer::read(body.as_bytes(), &call(&[A, B])).unwrap_err();
            assert_eq!((error.cause, error.retriable), (Cause::BadAnswer, true), "{entry}");
            let shown = format!("has the entry {entry}, whose `itemIdentifier` is not a member's id, so all members");
            assert!(error.message.contains(&shown), "{}", error.message);
        }
    }

    #[test]
    fn a_list_that_is_none_is_shown() {
        for (body, problem) in [
            (r#"{"batchItemFailures": {}}"#, "`batchItemFailures` is an object, a list is expected"),
            (r#"{"batchItemFailures": "x"}"#, "`batchItemFailures` is a text, a list is expected"),
            (r#"{"batchItemFailures": [], "members": []}"#, "it has both `members` and `batchItemFailures`"),
            (r#"{"batchItemFailures": [], "batchItemFailures": []}"#, "duplicate field"),
        ] {
            let error = Answer::read(body.as_bytes(), &call(&[A, B])).unwrap_err();
            assert!(error.message.contains(problem) && error.retriable, "{}", error.message);
        }
    }
}
