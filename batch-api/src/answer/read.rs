//! Reading a batch API's answer: clear entries count, and unclear ones are named.

use fanfold::ids::TaskId;
use fanfold::limits::{ENTRY_BYTES_MAX, ERROR_BYTES_MAX, EXCERPT_BYTES_MAX};
use fanfold::text::{BYTE_ORDER_MARK, beginning};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Answer, MemberAnswer, MemberOutcome, extras, failures, status};
use crate::{Call, CallError, Cause};

/// An answer's body. Further fields are the batch API's own.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    members: Option<&'a RawValue>,
    /// What handlers of SQS messages return. Null differs from no such field.
    #[serde(borrow, default, rename = "batchItemFailures", deserialize_with = "some")]
    failures: Option<&'a RawValue>,
}

/// A value that is there, even if it is null.
fn some<'a, D: Deserializer<'a>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The two lists that an answer may have.
enum Listed<'a> {
    Members(Vec<&'a RawValue>),
    Failures(&'a RawValue),
}

/// What the answer says of one member. Further fields are the batch API's own.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    outcome: Option<&'a RawValue>,
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    retry_after: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

impl Answer {
    /// Reads the answer to a call: nothing (every member succeeded), `{"members": [{"id", "outcome" or "status", "error"?,
    /// "code"?, "retry_after"?, "result"?}]}`, or `{"batchItemFailures": [{"itemIdentifier"}]}`. An unreadable entry of `members` does not affect the others.
    ///
    /// # Errors
    /// It is something else. It has no outcomes, so the members are tried again.
    pub fn read(body: &[u8], call: &Call) -> Result<Self, CallError> {
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches(BYTE_ORDER_MARK).trim();
        if text.is_empty() {
            return Ok(Self::AllSucceeded);
        }
        let bad = |problem: String| {
            let shown = beginning(text.as_bytes(), EXCERPT_BYTES_MAX);
            CallError::new(Cause::BadAnswer, format!("{problem}: {shown}"))
        };
        let entries =
            match listed(text).map_err(|came| bad(format!("the answer is not {{\"members\": [...]}}: {came}")))? {
                Listed::Members(entries) => entries,
                Listed::Failures(list) => return failures::read(list, call).map(Self::Members).map_err(bad),
            };
        let mut members = Vec::with_capacity(entries.len());
        let mut strange = Vec::new();
        for entry in entries {
            match member(entry.get()) {
                Some(member) => members.push(member),
                None => strange.push(entry),
            }
        }
        let Some(first) = strange.first() else { return Ok(Self::Members(members)) };
        let shown = beginning(first.get().as_bytes(), ENTRY_BYTES_MAX);
        let others = if strange.len() > 1 { format!(", nor do {} others", strange.len() - 1) } else { String::new() };
        Ok(Self::Unclear { members, problem: format!("its entry {shown} names no task by its id{others}") })
    }

    /// Reads the body of an answer whose status, 2xx, is a success.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read_success(status: u16, body: &[u8], call: &Call) -> Result<Self, CallError> {
        if status == 207 { Self::read_multi_status(body, call) } else { Self::read(body, call) }
    }

    /// The same for a status 207: it says that members differ, so nothing does not mean that all succeeded.
    ///
    /// # Errors
    /// It is something else, or nothing.
    pub fn read_multi_status(body: &[u8], call: &Call) -> Result<Self, CallError> {
        match Self::read(body, call)? {
            Self::AllSucceeded => {
                let message =
                    "the batch API answered 207 Multi-Status without a body, {\"members\": [...]} is expected";
                Err(CallError::new(Cause::BadAnswer, message))
            }
            answer => Ok(answer),
        }
    }
}

/// The list of an answer, or the start of another answer.
fn listed(text: &str) -> Result<Listed<'_>, String> {
    // Only for objects: serde would take a list for the fields of one.
    if !text.starts_with('{') {
        return Err(format!("it is {}", sort(text)));
    }
    let body: Body<'_> = serde_json::from_str(text).map_err(|error| format!("it cannot be read, {error}"))?;
    let members = match (body.members, body.failures) {
        (Some(members), None) => members.get(),
        (None, Some(failures)) => return Ok(Listed::Failures(failures)),
        (None, None) => return Err("it has no field `members`".to_owned()),
        (Some(_), Some(_)) => return Err("it has both `members` and `batchItemFailures`".to_owned()),
    };
    if !members.starts_with('[') {
        return Err(format!("its `members` is {}, a list is expected", sort(members)));
    }
    let members = serde_json::from_str(members).map_err(|error| format!("its `members` cannot be read, {error}"))?;
    Ok(Listed::Members(members))
}

/// What an entry says of a member, if it names one. An invalid outcome leaves the member without one.
fn member(entry: &str) -> Option<MemberAnswer> {
    let entry: Entry<'_> = if entry.starts_with('{') { serde_json::from_str(entry).ok()? } else { return None };
    let id = id(&serde_json::from_str::<String>(entry.id?.get()).ok()?)?;
    let (outcome, error) = match entry.outcome.map(|outcome| (outcome, serde_json::from_str(outcome.get()))) {
        Some((_, Ok(outcome))) => (outcome, entry.error.map(error)),
        Some((outcome, Err(_))) => {
            let outcome = beginning(outcome.get().as_bytes(), ENTRY_BYTES_MAX);
            let problem = format!("the answer's outcome for it is {outcome}, succeeded, failed or retry is expected");
            (MemberOutcome::Unclear, Some(problem))
        }
        None => match entry.status {
            Some(status) => {
                let (outcome, problem) = status::outcome(status.get());
                (outcome, entry.error.map(error).or(problem))
            }
            None => (MemberOutcome::Unclear, Some("the answer's entry for it has no `outcome`".to_owned())),
        },
    };
    Some(with_extras(MemberAnswer { error, ..MemberAnswer::new(id, outcome) }, &entry))
}

/// An outcome with what its entry has beside it, as far as that belongs to the outcome.
fn with_extras(member: MemberAnswer, entry: &Entry<'_>) -> MemberAnswer {
    if member.outcome == MemberOutcome::Succeeded {
        return MemberAnswer { result: entry.result.map(|result| extras::result(result.get())), ..member };
    }
    let code = entry.code.and_then(|code| extras::code(code.get()));
    let asked = entry.retry_after.filter(|_| member.outcome == MemberOutcome::Retry);
    let (retry_after, problem) = match asked.map(|asked| extras::retry_after(asked.get())) {
        None => (None, None),
        Some(Ok(delay)) => (Some(delay), None),
        Some(Err(problem)) => (None, Some(problem)),
    };
    let error = match (member.error, problem) {
        (Some(error), Some(problem)) => Some(format!("{error}; {problem}")),
        (error, problem) => error.or(problem),
    };
    MemberAnswer { error, code, retry_after, ..member }
}

/// An id, in lower case or not: some libraries write UUIDs in upper case.
pub(super) fn id(text: &str) -> Option<TaskId> {
    text.parse().or_else(|_| text.to_ascii_lowercase().parse()).ok()
}

/// An error: a text, or any other JSON as it is written.
fn error(error: &RawValue) -> String {
    serde_json::from_str(error.get()).unwrap_or_else(|_| beginning(error.get().as_bytes(), ERROR_BYTES_MAX))
}

/// The sort of a JSON value, by its first character.
pub(super) fn sort(text: &str) -> &'static str {
    match text.bytes().next() {
        Some(b'{') => "an object",
        Some(b'[') => "a bare list",
        Some(b'"') => "a text",
        Some(b'<') => "HTML or XML",
        Some(b'-' | b'0'..=b'9') => "a number",
        _ => match text {
            "null" => "null",
            "true" | "false" => "a boolean",
            _ => "not JSON",
        },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
