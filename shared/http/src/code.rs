//! The kinds of problems. All that is said of one stands here: the answers and the description of the API have it from here.

use axum::http::StatusCode;

/// The kind of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// The path or a query parameter is no id.
    InvalidId,
    /// The header `Idempotency-Key` cannot be used.
    InvalidIdempotencyKey,
    /// The body is not JSON.
    MalformedJson,
    /// The body did not arrive in full.
    UnreadableBody,
    /// A web page sends the request.
    NotForBrowsers,
    /// No route has this path.
    UnknownRoute,
    /// There is no such fan-out.
    UnknownFanout,
    /// There is no such task.
    UnknownTask,
    /// There is no such batch.
    UnknownBatch,
    /// There is no policy of that kind.
    UnknownPolicy,
    /// The path has no such method.
    MethodNotAllowed,
    /// The fan-out takes no more items.
    FanoutNotOpen,
    /// The body is too large.
    TooLarge,
    /// The body is said not to be JSON.
    UnsupportedMediaType,
    /// The body is not what the route takes.
    InvalidBody,
    /// A number or text is more or less than is allowed.
    OutOfRange,
    /// A destination of notices cannot be used.
    InvalidDestination,
    /// Tasks cannot be accepted.
    InvalidTasks,
    /// No item of the request exists.
    InvalidAcks,
    /// A policy cannot be used.
    InvalidPolicy,
    /// The idempotency key was used before for something else.
    IdempotencyKeyReused,
    /// A fault of Fanfold's own.
    Internal,
    /// A table or queue cannot be used now.
    Unavailable,
}

impl Code {
    /// Status, name, title, and when a route returns it.
    const fn row(self) -> (StatusCode, &'static str, &'static str, &'static str) {
        const BAD: StatusCode = StatusCode::BAD_REQUEST;
        const ABSENT: StatusCode = StatusCode::NOT_FOUND;
        const REFUSED: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;
        match self {
            Self::InvalidId => {
                (BAD, "invalid_id", "Invalid id", "the path, or the query parameter `after`, is not an id")
            }
            Self::InvalidIdempotencyKey => {
                (BAD, "invalid_idempotency_key", "Invalid idempotency key", "the header Idempotency-Key cannot be used")
            }
            Self::MalformedJson => (BAD, "malformed_json", "Malformed JSON", "the body is not JSON"),
            Self::UnreadableBody => (BAD, "unreadable_body", "Unreadable body", "the body did not arrive in full"),
            Self::NotForBrowsers => (
                StatusCode::FORBIDDEN,
                "not_for_browsers",
                "Not for browsers",
                "the local API only: a web page sends this",
            ),
            Self::UnknownRoute => (ABSENT, "unknown_route", "Unknown route", "there is no such path"),
            Self::UnknownFanout => {
                (ABSENT, "unknown_fanout", "Unknown fan-out", "there is no such fan-out, or it ended long ago")
            }
            Self::UnknownTask => {
                (ABSENT, "unknown_task", "Unknown task", "there is no such task, or it ended long ago")
            }
            Self::UnknownBatch => {
                (ABSENT, "unknown_batch", "Unknown batch", "there is no such batch, or it ended long ago")
            }
            Self::UnknownPolicy => (ABSENT, "unknown_policy", "Unknown policy", "there is no policy of that kind"),
            Self::MethodNotAllowed => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "Method not allowed",
                "the path does not take this method; the header Allow says what it takes",
            ),
            Self::FanoutNotOpen => {
                (StatusCode::CONFLICT, "fanout_not_open", "Fan-out not open", "the fan-out is sealed or completed")
            }
            Self::TooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "Body too large", "the body has more than 6 MiB")
            }
            Self::UnsupportedMediaType => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "unsupported_media_type",
                "Unsupported media type",
                "the body is said not to be JSON",
            ),
            Self::InvalidBody => {
                (REFUSED, "invalid_body", "Invalid body", "the body is JSON, but not what this route takes")
            }
            Self::OutOfRange => {
                (REFUSED, "out_of_range", "Out of range", "a field is more or less than is allowed: `errors` names it")
            }
            Self::InvalidDestination => {
                (REFUSED, "invalid_destination", "Invalid destination", "`notify` cannot be used")
            }
            Self::InvalidTasks => (
                REFUSED,
                "invalid_tasks",
                "Invalid tasks",
                "some tasks cannot be accepted: `errors` names them; none was stored",
            ),
            Self::InvalidAcks => (REFUSED, "invalid_acks", "Invalid acks", "none of the items exists"),
            Self::InvalidPolicy => (
                REFUSED,
                "invalid_policy",
                "Invalid policy",
                "the policy cannot be used: `errors` names every field with what is allowed",
            ),
            Self::IdempotencyKeyReused => (
                REFUSED,
                "idempotency_key_reused",
                "Idempotency key reused",
                "the idempotency key was used before with other values",
            ),
            Self::Internal => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "Internal error",
                "something is wrong inside Fanfold; its log says what",
            ),
            Self::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "Unavailable",
                "a table or queue cannot be reached or is overloaded; repeat the request later",
            ),
        }
    }

    /// The HTTP status that it comes with.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.row().0
    }

    /// Its name, which never changes: clients compare it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().1
    }

    /// Its title, for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().2
    }

    /// When a route returns it.
    #[must_use]
    pub const fn when(self) -> &'static str {
        self.row().3
    }
}
