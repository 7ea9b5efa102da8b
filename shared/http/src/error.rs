//! Problems for errors of tables, queues and tracking.

use fanfold::aws::{QueueError, StoreError};
use fanfold::json::JsonError;
use fanfold::policy::{FieldError, PolicyError};
use fanfold::producing::{ReissueError, ResumeError};
use fanfold::registering::{RegisterError, TaskFault};
use fanfold::store::fanouts::FanoutState;
use fanfold::tracking::TrackingError;

use crate::{Code, Problem};

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Service { .. } | StoreError::Contended { .. } => Self::unavailable(&error),
            StoreError::Corrupt { .. } | StoreError::Unbuilt { .. } => Self::internal(&error),
        }
    }
}

impl From<QueueError> for Problem {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Service { .. } | QueueError::Entry { .. } => Self::unavailable(&error),
            QueueError::TooLarge { .. } | QueueError::Unbuilt { .. } | QueueError::Json(_) => Self::internal(&error),
        }
    }
}

impl From<TrackingError> for Problem {
    fn from(error: TrackingError) -> Self {
        match error {
            TrackingError::UnknownFanout(_) => Self::new(Code::UnknownFanout, error),
            TrackingError::NotOpen { .. } | TrackingError::CountedOut { .. } => Self::new(Code::FanoutNotOpen, error),
            TrackingError::Estimated(_) | TrackingError::Exact(_) => Self::new(Code::WrongMode, error),
            TrackingError::Ended { state, .. } => Self::new(ended(state), error),
            TrackingError::Produced(_) => Self::new(Code::FanoutProduced, error),
            TrackingError::Producer(PolicyError(errors)) => Self::fields(Code::InvalidProducer, errors),
            TrackingError::OutOfRange { field, value, allowed } => {
                let problem = format!("is {value}, {allowed} is allowed");
                Self::fields(Code::OutOfRange, vec![FieldError { field: field.to_owned(), problem }])
            }
            TrackingError::Follow { field, problem } => {
                Self::fields(Code::InvalidFollow, vec![FieldError { field: field.to_owned(), problem }])
            }
            TrackingError::KeyReused(_) => Self::new(Code::IdempotencyKeyReused, error),
            TrackingError::Store(error) => error.into(),
            TrackingError::Queue(error) => error.into(),
        }
    }
}

impl From<RegisterError> for Problem {
    fn from(error: RegisterError) -> Self {
        match error {
            RegisterError::Refused(faults) => {
                let field_error = |fault: TaskFault| FieldError { field: fault.path(), problem: fault.problem };
                Self::fields(Code::InvalidTasks, faults.into_iter().map(field_error).collect())
            }
            RegisterError::KeyReused { .. } => Self::new(Code::IdempotencyKeyReused, error),
            RegisterError::Store(error) => error.into(),
            RegisterError::Queue(error) => error.into(),
            RegisterError::Tracking(error) => error.into(),
        }
    }
}

impl From<ResumeError> for Problem {
    fn from(error: ResumeError) -> Self {
        match error {
            ResumeError::NoProducer(_) => Self::new(Code::NoProducer, error),
            ResumeError::NotOpen { .. } => Self::new(Code::FanoutNotOpen, error),
            ResumeError::Store(error) => error.into(),
            ResumeError::Queue(error) => error.into(),
        }
    }
}

impl From<ReissueError> for Problem {
    fn from(error: ReissueError) -> Self {
        match error {
            ReissueError::NotEnded { .. } => Self::new(Code::FanoutNotEnded, error),
            ReissueError::Nothing { .. } => Self::new(Code::NothingToReissue, error),
            ReissueError::Reissued { .. } => Self::new(Code::FanoutReissued, error),
            ReissueError::Fields(errors) => Self::fields(Code::InvalidReissue, errors),
            ReissueError::Tracking(error) => error.into(),
            ReissueError::Store(error) => error.into(),
            ReissueError::Queue(error) => error.into(),
        }
    }
}

/// The code of an end.
fn ended(state: FanoutState) -> Code {
    match state {
        FanoutState::Failed => Code::FanoutFailed,
        FanoutState::Expired => Code::FanoutExpired,
        _ => Code::FanoutCompleted,
    }
}

/// A body that is not what a route takes.
impl From<JsonError> for Problem {
    fn from(error: JsonError) -> Self {
        let detail = match &error {
            JsonError::Field(_) => error.to_string(),
            _ => format!("the body {error}"),
        };
        match error {
            JsonError::Empty | JsonError::Malformed(_) => Self::new(Code::MalformedJson, detail),
            JsonError::Shape(_) => Self::new(Code::InvalidBody, detail),
            JsonError::Field(field) => Self::new(Code::InvalidBody, detail).with_errors([field]),
        }
    }
}

/// A policy, or a destination of notices, that cannot be used.
impl From<PolicyError> for Problem {
    fn from(PolicyError(errors): PolicyError) -> Self {
        Self::fields(Code::InvalidPolicy, errors)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn each_error_has_its_code() {
        let service = || StoreError::Service {
            operation: "GetItem",
            table: "secret".to_owned(),
            message: "secret".to_owned(),
            source: "secret".into(),
        };
        let corrupt =
            StoreError::Corrupt { table: "tasks", id: "x".to_owned(), attribute: "lane", problem: String::new() };
        let queue = QueueError::TooLarge { queue: "secret".to_owned(), bytes: 1 };
        let range = TrackingError::OutOfRange { field: "items", value: "0".to_owned(), allowed: "1 to 5".to_owned() };
        let not_open = TrackingError::NotOpen { id: Uuid::nil(), state: FanoutState::Sealed };
        let ended = |state| TrackingError::Ended { id: Uuid::nil(), state };
        let cases: Vec<(Problem, u16, &str)> = vec![
            (service().into(), 503, "unavailable"),
            (StoreError::Contended { what: "secret".to_owned() }.into(), 503, "unavailable"),
            (corrupt.into(), 500, "internal"),
            (queue.into(), 500, "internal"),
            (TrackingError::Store(service()).into(), 503, "unavailable"),
            (TrackingError::UnknownFanout(Uuid::nil()).into(), 404, "unknown_fanout"),
            (ResumeError::NoProducer(Uuid::nil()).into(), 409, "no_producer"),
            (TrackingError::Produced(Uuid::nil()).into(), 409, "fanout_produced"),
            (not_open.into(), 409, "fanout_not_open"),
            (ended(FanoutState::Completed).into(), 409, "fanout_completed"),
            (ended(FanoutState::Failed).into(), 409, "fanout_failed"),
            (ended(FanoutState::Expired).into(), 409, "fanout_expired"),
            (range.into(), 422, "out_of_range"),
            (TrackingError::KeyReused("`items` differs".to_owned()).into(), 422, "idempotency_key_reused"),
        ];
        for (problem, status, code) in cases {
            assert_eq!((problem.code().status().as_u16(), problem.code().name()), (status, code));
            assert!(!problem.detail().contains("secret"), "{}", problem.detail());
        }
    }
}
