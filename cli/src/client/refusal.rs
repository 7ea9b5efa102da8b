//! Why a stack that was asked did not do it.

use fanfold_client::{ClientError, Problem};

/// Why there is no answer to print.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "nobody answers at {endpoint}: {cause} ({request}, tried {attempts} times); `fanfold serve` starts a stack on this machine, \
         --endpoint or FANFOLD_ENDPOINT names another one"
    )]
    Unreachable { endpoint: String, request: String, attempts: u32, cause: String },
    #[error("{}", said(*.status, .problem))]
    Answered { status: u16, problem: Problem },
    #[error("{place}: {refusal}")]
    Of { place: String, refusal: Box<Refusal> },
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Other(String),
}

impl Refusal {
    pub(super) fn new(error: ClientError, endpoint: &str, attempts: u32) -> Self {
        match error {
            ClientError::Unreachable { request, cause, .. } => {
                Self::Unreachable { endpoint: endpoint.to_owned(), request, attempts, cause }
            }
            ClientError::Api { status, problem, .. } => Self::Answered { status, problem },
            other => Self::Other(other.to_string()),
        }
    }

    /// The same, of what stands at this place.
    pub(super) fn of(self, place: &str) -> Self {
        Self::Of { place: place.to_owned(), refusal: Box::new(self) }
    }

    /// Whether what was given cannot be used, by what is known there.
    pub(crate) fn is_of_what_was_given(&self) -> bool {
        match self {
            Self::Answered { status, .. } => matches!(status, 400 | 404 | 413 | 422),
            Self::Of { refusal, .. } => refusal.is_of_what_was_given(),
            Self::Refused(_) => true,
            Self::Unreachable { .. } | Self::Other(_) => false,
        }
    }
}

fn said(status: u16, problem: &Problem) -> String {
    // What is wrong with a single field is the detail, too.
    let others = problem.errors.iter().filter(|error| !problem.detail.contains(&error.problem)).take(10);
    let fields: String = others.map(|error| format!("; {}: {}", error.field, error.problem)).collect();
    // Something before Fanfold, which has no codes.
    if problem.code.is_empty() {
        return format!("the answer is {status}: {}{fields}", problem.detail);
    }
    format!("{}{fields} ({status} {})", problem.detail, problem.code)
}
