//! Failures of requests to a stack.

use fanfold_client::{ClientError, Problem};

/// Why there is no result to print.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(
        "no stack answers at {endpoint}: {cause} ({request}, tried {attempts} times); start one with `fanfold up`, or name another \
         one with --endpoint or FANFOLD_ENDPOINT"
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

    /// The same, about what is at this place.
    pub(super) fn of(self, place: &str) -> Self {
        Self::Of { place: place.to_owned(), refusal: Box::new(self) }
    }

    /// Whether the stack refused the arguments.
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
    // The detail repeats the problem of a single field.
    let others = problem.errors.iter().filter(|error| !problem.detail.contains(&error.problem)).take(10);
    let fields: String = others.map(|error| format!("; {}: {}", error.field, error.problem)).collect();
    // Something in front of Fanfold answered, which has no codes.
    if problem.code.is_empty() {
        return format!("the answer is {status}: {}{fields}", problem.detail);
    }
    format!("{}{fields} ({status} {})", problem.detail, problem.code)
}
