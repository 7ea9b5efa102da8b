//! The kinds of problems, each defined here in full: responses and the description of the API use these definitions.

use axum::http::StatusCode;

/// One line per code: status, name, title, and when a route returns it.
macro_rules! codes {
    ($($code:ident: $status:ident, $name:literal, $title:literal, $when:literal;)*) => {
        /// The kind of a problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $(#[doc = $when] $code,)*
        }

        impl Code {
            const fn row(self) -> (StatusCode, &'static str, &'static str, &'static str) {
                match self {
                    $(Self::$code => (StatusCode::$status, $name, $title, $when),)*
                }
            }
        }
    };
}

codes! {
    InvalidId: BAD_REQUEST, "invalid_id", "Invalid id", "the path, or the query parameter `after`, is not an id";
    InvalidParameter: BAD_REQUEST, "invalid_parameter", "Invalid parameter",
        "a query parameter has a value that is not allowed, or is given more than once";
    InvalidIdempotencyKey: BAD_REQUEST, "invalid_idempotency_key", "Invalid idempotency key",
        "the header Idempotency-Key has a value that is not allowed";
    MalformedJson: BAD_REQUEST, "malformed_json", "Malformed JSON", "the body is not JSON";
    UnreadableBody: BAD_REQUEST, "unreadable_body", "Unreadable body", "the body did not arrive in full";
    NotForBrowsers: FORBIDDEN, "not_for_browsers", "Not for browsers", "in the local API only: a web page sent this request";
    WrongToken: FORBIDDEN, "wrong_token", "Wrong token",
        "the header Fanfold-Token is missing, or is not that of a call of the batch";
    UnknownRoute: NOT_FOUND, "unknown_route", "Unknown route", "no route has this path";
    UnknownFanout: NOT_FOUND, "unknown_fanout", "Unknown fan-out", "there is no such fan-out, or it ended long ago";
    NoProducer: CONFLICT, "no_producer", "No producer", "the fan-out has no producer";
    UnknownTask: NOT_FOUND, "unknown_task", "Unknown task", "there is no such task, or it ended long ago";
    UnknownBatch: NOT_FOUND, "unknown_batch", "Unknown batch", "there is no such batch, or it ended long ago";
    UnknownPolicy: NOT_FOUND, "unknown_policy", "Unknown policy", "there is no policy of that kind";
    MethodNotAllowed: METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed",
        "the path does not take this method; the header Allow lists those that it takes";
    FanoutNotOpen: CONFLICT, "fanout_not_open", "Fan-out not open", "the fan-out is sealed, completed, cancelled, failed or expired";
    WrongMode: CONFLICT, "wrong_mode", "Wrong mode",
        "the fan-out is estimated and has no items, or is exact and has no counters";
    FanoutProduced: CONFLICT, "fanout_produced", "Fan-out with a producer", "its producer seals the fan-out";
    FanoutCompleted: CONFLICT, "fanout_completed", "Fan-out completed", "the fan-out is complete";
    FanoutFailed: CONFLICT, "fanout_failed", "Fan-out failed", "more items of the fan-out failed than it tolerates";
    FanoutExpired: CONFLICT, "fanout_expired", "Fan-out expired",
        "the fan-out was without activity for longer than its idle limit";
    FanoutNotEnded: CONFLICT, "fanout_not_ended", "Fan-out not ended", "the fan-out has not ended: more of its items may fail";
    NothingToReissue: CONFLICT, "nothing_to_reissue", "Nothing to reissue", "no item of the fan-out failed";
    FanoutReissued: CONFLICT, "fanout_reissued", "Fan-out reissued",
        "the failed items of the fan-out were reissued before; `again` reissues them nevertheless";
    PolicyInUse: CONFLICT, "policy_in_use", "Policy in use",
        "tasks of the kind wait, or are in a batch that has not ended; `?force=true` deletes the policy nevertheless";
    DevSessionsOff: CONFLICT, "dev_sessions_off", "Dev sessions off",
        "the stack allows no dev sessions: its parameter DevSessions is not `yes`";
    DevSessionHeld: CONFLICT, "dev_session_held", "Dev session held",
        "another dev session has the calls of the kind";
    DevSessionEnded: CONFLICT, "dev_session_ended", "Dev session ended",
        "the lease that is to be renewed was given back";
    TaskNotWaiting: CONFLICT, "task_not_waiting", "Task not waiting",
        "a batch has claimed the task, it is a duplicate, or it is still being registered";
    TaskNotFailed: CONFLICT, "task_not_failed", "Task not failed", "the task has not failed, or is a duplicate";
    TaskIsItem: CONFLICT, "task_is_item", "Task is an item", "the task is an item of a fan-out, which has counted its failure";
    TooManySwitches: CONFLICT, "too_many_switches", "Too many switches",
        "so many targets and lanes of the kind are paused or drain that no other may be";
    TooLarge: PAYLOAD_TOO_LARGE, "too_large", "Body too large", "the body has more than 6 MiB";
    UnsupportedMediaType: UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "Unsupported media type",
        "the header Content-Type names a type that this route does not take";
    InvalidBody: UNPROCESSABLE_ENTITY, "invalid_body", "Invalid body", "the body is JSON, but not in the form that this route takes";
    OutOfRange: UNPROCESSABLE_ENTITY, "out_of_range", "Out of range",
        "a field is above or below what is allowed; `errors` names it";
    InvalidDestination: UNPROCESSABLE_ENTITY, "invalid_destination", "Invalid destination",
        "`notify` or `notify_on` cannot be used";
    InvalidFollow: UNPROCESSABLE_ENTITY, "invalid_follow", "Invalid parent or then",
        "`parent` or `then` cannot be used; `errors` names the field";
    InvalidProducer: UNPROCESSABLE_ENTITY, "invalid_producer", "Invalid producer",
        "`producer` cannot be used; `errors` names the field";
    InvalidReissue: UNPROCESSABLE_ENTITY, "invalid_reissue", "Invalid reissue",
        "the failed items cannot be reissued in this way; `errors` names each field and what is allowed";
    InvalidTasks: UNPROCESSABLE_ENTITY, "invalid_tasks", "Invalid tasks",
        "some tasks cannot be accepted; `errors` names them, and no task was stored";
    InvalidAcks: UNPROCESSABLE_ENTITY, "invalid_acks", "Invalid acks", "none of the items exists";
    InvalidOutcomes: UNPROCESSABLE_ENTITY, "invalid_outcomes", "Invalid outcomes",
        "an entry names no member of the batch, or one that is named twice; `errors` names it, and no outcome was recorded";
    InvalidCounts: UNPROCESSABLE_ENTITY, "invalid_counts", "Invalid counts",
        "nothing was counted: each fan-out is unknown, exact, or has ended";
    InvalidScope: UNPROCESSABLE_ENTITY, "invalid_scope", "Invalid scope",
        "the scope cannot be used: `errors` names the field with what is allowed";
    InvalidDevSession: UNPROCESSABLE_ENTITY, "invalid_dev_session", "Invalid dev session",
        "the dev session cannot be used; `errors` names each field and what is allowed";
    InvalidPolicy: UNPROCESSABLE_ENTITY, "invalid_policy", "Invalid policy",
        "the policy cannot be used; `errors` names each field and what is allowed";
    IdempotencyKeyReused: UNPROCESSABLE_ENTITY, "idempotency_key_reused", "Idempotency key reused",
        "the Idempotency-Key was used before for another request";
    Internal: INTERNAL_SERVER_ERROR, "internal", "Internal error", "an error inside Fanfold; its log has the cause";
    Unavailable: SERVICE_UNAVAILABLE, "unavailable", "Unavailable",
        "a table or queue cannot be reached or is overloaded; repeat the request later";
}

impl Code {
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
