//! What can go wrong.

use serde::Deserialize;

use crate::models::{Fanout, Refused};

/// A problem document (RFC 9457).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// Names the kind of problem; it never changes. Empty if something before Fanfold answered.
    pub code: String,
    /// What went wrong this time.
    #[serde(alias = "message")]
    pub detail: String,
    /// The fields that are wrong.
    pub errors: Vec<FieldProblem>,
}

/// A field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FieldProblem {
    /// Its path.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A request of the HTTP API did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The API answered with a problem.
    #[error("{request}: {status} {}: {}{}", problem.code, problem.detail, fields(problem))]
    Api {
        /// Method and path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// What it said.
        problem: Problem,
    },
    /// No answer came, however often the request was repeated (counts are not). It may have been carried out.
    #[error("{request}: no answer after {attempts} attempt{}: {cause}", if *attempts > 1 { "s" } else { "" })]
    Unreachable {
        /// Method and path.
        request: String,
        /// How often it was sent.
        attempts: u32,
        /// Why the last attempt had no answer.
        cause: String,
    },
    /// The answer is not what this client knows.
    #[error("{request}: the answer cannot be read: {cause}")]
    Answer {
        /// Method and path.
        request: String,
        /// What is wrong with it.
        cause: String,
    },
    /// A setting is wrong; nothing was sent.
    #[error("{0}")]
    Setting(String),
    /// The request could not be signed; it was not sent.
    #[error("the request cannot be signed: {0}")]
    Signing(String),
    /// The time is up, and the fan-out has not ended. It is as it was last seen.
    #[error("fan-out {} has not ended: {:?}, {} of {} done", .0.id, .0.state, .0.done, .0.total)]
    NotEnded(Box<Fanout>),
}

impl ClientError {
    /// The code of the problem that the API answered.
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

/// Acks did not all get through.
#[derive(Debug, thiserror::Error)]
pub enum AckError {
    /// Some could not be sent. They are still in the buffer: flush it again.
    #[error("{items} acks could not be sent: {}", causes.join("; "))]
    NotSent {
        /// How many wait in the buffer.
        items: usize,
        /// Why.
        causes: Vec<String>,
        /// Acks that were sent, but refused.
        refused: Vec<Refused>,
    },
    /// Some name items that do not exist. All others were sent. Repeating them changes nothing, so that they are no longer in the buffer.
    #[error("{}", refused.iter().map(|one| one.problem.as_str()).collect::<Vec<_>>().join("; "))]
    Refused {
        /// Which, and why.
        refused: Vec<Refused>,
    },
}
