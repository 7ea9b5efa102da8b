//! What a policy may say.

use std::time::Duration;

use crate::backoff::Backoff;

/// Bytes of a CEL expression in a policy.
pub const EXPRESSION_BYTES_MAX: usize = 1_024;

/// Nesting of brackets in an expression: what the parser takes on a thread of 2 MiB with room to spare.
pub const EXPRESSION_DEPTH_MAX: usize = 24;

/// Operator characters in an expression: parsing and evaluating recurse over chains of them.
pub const EXPRESSION_OPERATORS_MAX: usize = 64;

/// How many times as large as a task's content an expression may make it while it works: 128 KiB become 8 MiB.
pub const EXPRESSION_GROWTH_MAX: usize = 64;

/// Bytes of a kind.
pub const KIND_BYTES_MAX: usize = 64;

/// Bytes of a batch API's URL.
pub const URL_BYTES_MAX: usize = 2_048;

/// Lanes one target can be split into.
pub const PARTITIONS_MAX: u32 = 1_024;

/// Attempts of one batch.
pub const ATTEMPTS_MAX: u32 = 1_000;

/// Attempts of one batch, unless the policy says otherwise. With the default pauses these take more than an hour: a batch survives a
/// bad hour of what is behind its batch API.
pub const ATTEMPTS_DEFAULT: u32 = 20;

/// Pauses between attempts, unless the policy says otherwise.
pub const BACKOFF_DEFAULT: Backoff = Backoff { base: Duration::from_secs(1), max: Duration::from_secs(600) };

/// Concurrent calls of a kind, over all its lanes: as many as an event source starts at most (Lambda: MaximumConcurrency).
pub const CALLS_MAX: u32 = 1_000;

/// The longest a batch API may take.
pub const BATCH_API_TIMEOUT_MAX: Duration = Duration::from_secs(90);

/// How long a batch API may take, unless the policy says otherwise.
pub const BATCH_API_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// The longest pause between two attempts of a batch, whether a batch API asks for it (`Retry-After`) or a policy
/// (`backoff.max`): what waits longer is better looked at.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Pages (1 MB each) of an index that are searched for tasks of a kind before its policy is deleted: some 10,000 lanes or
/// bundles each, in a fraction of the 30 s that the API's function has (template.yaml).
pub const POLICY_USE_PAGES_MAX: usize = 50;

/// The longest head start of a task: what was registered earlier by more goes first whatever comes. Half of the time for which a
/// task is kept at least ([`RETENTION`](super::RETENTION)).
pub const HEAD_START_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How long a policy may be served from a worker's memory.
pub const POLICY_CACHE_MAX: Duration = Duration::from_secs(5);

/// Targets and lanes of one kind that may be paused or drain at a time. They are in the policy's record, with up to
/// [`TARGET_BYTES_MAX`](super::TARGET_BYTES_MAX) bytes each. DynamoDB allows 400 KB, and each worker reads it every few seconds.
pub const SWITCHES_PER_KIND_MAX: usize = 300;

/// Bytes of a request's or a response's mapping, as JSON: each worker reads it with its policy every few seconds.
pub const MAPPING_BYTES_MAX: usize = 16 * 1_024;

/// Nesting of a request's template. A content in it may be nested as deep as JSON is read.
pub const MAPPING_DEPTH_MAX: usize = 24;

/// Expressions of a request's mapping, and of a response's.
pub const MAPPING_TERMS_MAX: usize = 64;

/// Headers that a policy adds to a request, and entries of its query.
pub const HEADERS_MAX: usize = 32;

/// Bytes of a header's value as it is written in a policy.
pub const HEADER_BYTES_MAX: usize = 1_024;

/// Lists in which an answer may have its items.
pub const LISTS_MAX: usize = 8;

/// Bytes of a text that an expression of a mapping gives: a content of 128 KiB, made larger as far as other expressions may.
pub const TERM_VALUE_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Bytes of a request's body: the largest batch's (32 MiB), and half as much again for what encoding adds. The function has 512 MB.
pub const REQUEST_BYTES_MAX: u32 = 48 * 1_024 * 1_024;

/// Passes over the members of a call to write its request: one that cannot be written is left out of all lists, so the next pass
/// has other positions.
pub const RENDER_PASSES_MAX: usize = 4;

/// Secrets shorter than this many bytes are not looked for in answers: they would be found everywhere.
pub const SECRET_HIDDEN_BYTES_MIN: usize = 6;

/// How long a secret that AWS keeps is used before it is fetched again: a rotation is noticed within this time.
pub const SECRET_KEPT: Duration = Duration::from_secs(600);

/// A secret that would have to be fetched again within this time is fetched before an attempt begins. Attempts call sooner than that,
/// or not at all.
pub const SECRET_AHEAD: Duration = Duration::from_secs(10);

/// After a 401 or 403, a secret that was fetched so long ago is fetched again before the next call.
pub const SECRET_DOUBTED: Duration = Duration::from_secs(120);

/// How long the value from before is used if a secret cannot be fetched again.
pub const SECRET_AGAIN: Duration = Duration::from_secs(60);

/// How long fetching a secret may take.
pub const SECRET_FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of the answer with a secret: Secrets Manager keeps up to 64 KiB, which escapes make longer.
pub const SECRET_ANSWER_BYTES_MAX: usize = 512 * 1_024;
