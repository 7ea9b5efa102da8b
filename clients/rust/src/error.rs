//! Errors.

use serde::Deserialize;

use crate::models::{Fanout, Refused};

/// A problem document (RFC 9457).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The problem's name; codes never change. Empty if something in front of Fanfold answered.
    pub code: String,
    /// What went wrong this time.
    #[serde(alias = "message")]
    pub detail: String,
    /// The fields that cannot be used.
    pub errors: Vec<FieldProblem>,
}

/// A field that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FieldProblem {
    /// Its path.
    pub field: String,
    /// Its value, and what is allowed.
    pub problem: String,
}

/// A request to the HTTP API failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The API returned a problem.
    #[error("{request}: {status} {}: {}{}", problem.code, problem.detail, fields(problem))]
    Api {
        /// Method and path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The problem.
        problem: Problem,
    },
    /// The request got no answer, retries included (counts are not retried). It may have been carried out.
    #[error("{request}: no answer after {attempts} attempt{}: {cause}", if *attempts > 1 { "s" } else { "" })]
    Unreachable {
        /// Method and path.
        request: String,
        /// How often it was sent.
        attempts: u32,
        /// Why the last attempt had no answer.
        cause: String,
    },
    /// The answer is not in a form that this client knows.
    #[error("{request}: the answer cannot be read: {cause}")]
    Answer {
        /// Method and path.
        request: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A setting cannot be used; nothing was sent.
    #[error("{0}")]
    Setting(String),
    /// The request could not be signed; it was not sent.
    #[error("the request cannot be signed: {0}")]
    Signing(String),
    /// The fan-out had not ended when the time was up. This is its last known state.
    #[error("fan-out {} has not ended: {:?}, {} of {} done", .0.id, .0.state, .0.done, .0.total)]
    NotEnded(Box<Fanout>),
}

impl ClientError {
    /// The code of the problem that the API returned.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Api { problem, .. } => Some(&problem.code),
            _ => None,
        }
    }
}

fn fields(problem: &Problem) -> String {
    problem.errors.iter().take(10).map(|error| format!("; {}: {}", error.field, error.problem)).collect()
}

/// Some acks were not sent, or were refused.
#[derive(Debug, thiserror::Error)]
pub enum AckError {
    /// Some could not be sent. The buffer keeps them: flush it again.
    #[error("{items} acks could not be sent: {}", causes.join("; "))]
    NotSent {
        /// How many acks the buffer holds.
        items: usize,
        /// Why.
        causes: Vec<String>,
        /// Acks that were sent but refused.
        refused: Vec<Refused>,
    },
    /// Some name items that do not exist. All others were applied. Repeating these changes nothing, so the buffer dropped them.
    #[error("{}", refused.iter().map(|one| one.problem.as_str()).collect::<Vec<_>>().join("; "))]
    Refused {
        /// The items, and why.
        refused: Vec<Refused>,
    },
}
