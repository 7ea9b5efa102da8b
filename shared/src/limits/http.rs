//! The HTTP API, and what it says of bad requests.

use std::time::Duration;

/// The local HTTP API: how long headers of a request are waited for, and the next request on a connection; hyper's own default.
pub const REQUEST_HEADERS_WAIT: Duration = Duration::from_secs(30);

/// The local HTTP API: how long the whole body of a request is waited for. API Gateway gives a whole request no more.
pub const REQUEST_BODY_WAIT: Duration = Duration::from_secs(30);

/// The local HTTP API: how long it takes what a client still sends after its answer.
pub const REQUEST_DRAIN: Duration = Duration::from_secs(5);

/// Bytes shown of what is wrong with a message: enough for a field, its value and what is allowed.
pub const PROBLEM_BYTES_MAX: usize = 1_024;

/// A problem is never shortened below this many bytes, however many problems share one answer.
pub const PROBLEM_BYTES_MIN: usize = 20;

/// Fields that one answer about a bad request names.
pub const PROBLEM_FIELDS_MAX: usize = 100;

/// Bytes of the response to a stream. Lambda returns at most 6 MB, and a body that is not JSON goes as base64.
pub const STREAM_ANSWER_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Bytes shown of a field's path, which may be nested deep or have a long name.
pub const FIELD_PATH_BYTES_MAX: usize = 120;

/// The latest time that a list of fan-outs may be asked for, in milliseconds since 1970: some day in the year 2286.
pub const LISTED_MILLIS_MAX: u64 = 9_999_999_999_999;

/// Items or members that a page of results looks at.
pub const RESULTS_PER_PAGE_MAX: usize = 500;

/// Batches whose records a page of results has in memory at once: each may be of 400 KB, and the function has 256 MB.
pub const RESULT_BATCHES_AT_ONCE: usize = 16;

/// Bytes of results after which a page of them ends. The last one may exceed it, and as JSON in a Lambda's answer quotes are escaped.
pub const RESULTS_PAGE_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// Characters of a foreign name that a message shows.
pub const NAME_SHOWN_MAX: usize = 120;
