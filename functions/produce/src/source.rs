//! Requests to a source, and its answers.

use std::time::Duration;

use fanfold::clock::Timestamp;
use fanfold::json;
use fanfold::producing::{Given, Source};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// A request to a source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SourceRequest {
    /// The fan-out.
    pub fanout: Uuid,
    /// The partition, from 0.
    pub partition: u32,
    /// Of how many.
    pub of: u32,
    /// Where the page begins, as an earlier answer said; `null`: at the beginning.
    pub cursor: Value,
}

/// A source gave no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// What went wrong, in short.
    pub message: String,
    /// How long it asks to wait.
    pub retry_after: Duration,
    /// Whether asking again would bring the same.
    pub for_good: bool,
}

impl SourceError {
    /// Another try may help.
    #[must_use]
    pub fn again(message: impl ToString) -> Self {
        Self { message: message.to_string(), retry_after: Duration::ZERO, for_good: false }
    }

    /// A user has to look at it.
    #[must_use]
    pub fn for_good(message: impl ToString) -> Self {
        Self { for_good: true, ..Self::again(message) }
    }
}

/// Where rows come from.
pub trait Sources: Send + Sync {
    /// Asks a source for a page.
    fn ask<'a>(&'a self, source: &'a Source, ask: &'a SourceRequest, now: Timestamp) -> Asking<'a>;
}

/// A source is being asked.
pub type Asking<'a> = BoxFuture<'a, Result<SourceAnswer, SourceError>>;

/// A page as a source gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceAnswer {
    /// Its rows.
    pub rows: Vec<Given>,
    /// Where the next page begins; none: there is none.
    pub cursor: Option<Value>,
}

impl SourceAnswer {
    /// Reads the answer to a question: `{tasks, cursor?}`.
    ///
    /// # Errors
    /// It is no such object, or its cursor is that of the question.
    pub fn read(body: &[u8], ask: &SourceRequest) -> Result<Self, SourceError> {
        let PageAnswer { tasks, cursor } = json::read(body)
            .map_err(|error| SourceError::again(format!("the answer is not {{\"tasks\": [...]}}: {error}")))?;
        // It would be read for ever.
        if cursor.as_ref() == Some(&ask.cursor) {
            return Err(SourceError::again("the answer's `cursor` is the one that was asked for"));
        }
        Ok(Self { rows: tasks.into_iter().map(Given::from).collect(), cursor })
    }
}

/// What a source answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageAnswer {
    /// The rows.
    tasks: Vec<Value>,
    /// Where the next page begins; none: there is none.
    #[serde(default)]
    cursor: Option<Value>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(cursor: Value, body: &str) -> Result<SourceAnswer, SourceError> {
        SourceAnswer::read(body.as_bytes(), &SourceRequest { fanout: Uuid::nil(), partition: 0, of: 1, cursor })
    }

    #[test]
    fn an_answer_is_rows_and_a_cursor() {
        let answer =
            read(json!(null), r#"{"tasks": [{"kind": "mail", "content": 7}, 8], "cursor": {"id": 7}}"#).unwrap();
        assert_eq!((answer.rows.len(), answer.cursor), (2, Some(json!({"id": 7}))));
        for last in [r#"{"tasks": []}"#, r#"{"tasks": [], "cursor": null}"#] {
            assert!(read(json!(null), last).unwrap().cursor.is_none());
        }
    }

    #[test]
    fn anything_else_is_none() {
        for body in ["", "[]", "{}", r#"{"tasks": {}}"#, r#"{"tasks": [], "next": 1}"#, "<html>"] {
            let error = read(json!(null), body).unwrap_err();
            assert!(!error.for_good && error.message.starts_with("the answer is not {\"tasks\": [...]}"), "{error}");
        }
        assert!(read(json!(7), r#"{"tasks": [1], "cursor": 7}"#).unwrap_err().message.contains("`cursor`"));
    }
}
