//! Calls of batch APIs, and the places that they take.

use std::time::Duration;

use crate::backoff::Backoff;

/// What an attempt has beside its call's own `timeout`, above all to write the outcome, before another worker takes it for
/// lost. With the longest `timeout` this is the time-out of the handle function in template.yaml.
pub const ATTEMPT_MARGIN: Duration = Duration::from_secs(30);

/// An attempt that has begun calls within this time, or not at all. So its call is over, and its connection closed, by its
/// beginning plus this plus `timeout`, however its worker ended.
pub const CALL_WITHIN: Duration = Duration::from_secs(2);

/// Attempts of one batch that may be lost with their workers in a row: it could be the members called that kill them.
pub const LOST_ATTEMPTS_MAX: u32 = 32;

/// How long after its beginning an invocation may still begin calls for further parts of a batch. Then the batch's message is sent
/// again, so that a batch with very many parts does not keep others waiting.
pub const PARTS_WITHIN: Duration = Duration::from_secs(10);

/// Bytes of a batch API's answer.
pub const ANSWER_BYTES_MAX: usize = 6 * 1_024 * 1_024;

/// Bytes shown of an entry of an answer that names no member.
pub const ENTRY_BYTES_MAX: usize = 80;

/// Bytes shown of the body of a request. A Lambda function returns 6 MB at most, and JSON doubles quotation marks.
pub const SHOWN_BODY_BYTES_MAX: usize = 1_024 * 1_024;

/// Bytes shown of a body that is no answer.
pub const EXCERPT_BYTES_MAX: usize = 200;

/// Bytes read of a body that is only shown in part. A connection whose answer was read to its end is used again.
pub const EXCERPT_READ_BYTES_MAX: usize = 64 * 1_024;

/// Bytes of a member's error that are kept: an excerpt, with what was expected instead. With their slots, a batch's errors
/// take at most 56 KiB.
pub const ERROR_BYTES_MAX: usize = 512;

/// Different errors one batch record keeps; further ones are counted together.
pub const ERRORS_PER_BATCH_MAX: usize = 32;

/// Bytes of a member's error code that are kept.
pub const CODE_BYTES_MAX: usize = 64;

/// Different codes one batch record keeps; members with further ones have none. With their slots they take at most 21 KiB.
pub const CODES_PER_BATCH_MAX: usize = 16;

/// Members that an error names of each sort: without an outcome, with several, or unknown.
pub const MEMBERS_NAMED_MAX: usize = 2;

/// Bytes of one member's result, as JSON, that are kept.
pub const RESULT_BYTES_MAX: usize = 256 * 1_024;

/// Bytes of a batch's results, as JSON, that are kept.
pub const RESULTS_PER_BATCH_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// Bytes of results, as JSON, in one record. It holds at least one result, and compressed or not it is smaller than an item of
/// DynamoDB may be (400 KB).
pub const RESULTS_PER_RECORD_BYTES_MAX: usize = 300 * 1_024;

/// How deep a result that is kept may be nested: readers of JSON allow 128 levels, and lists of results add some.
pub const RESULT_DEPTH_MAX: usize = 100;

/// Records of results of a batch: each call that brings some has at least one of its own, of up to [`RESULTS_PER_RECORD_BYTES_MAX`].
/// Their list takes at most 16 KiB of the batch's record.
pub const RESULT_RECORDS_MAX: usize = 2_048;

/// Records of results that are written at once: each takes some 300 write units of a partition of its own.
pub const RESULT_RECORDS_AT_ONCE: usize = 8;

/// Records of results that are read at once: some 2 MiB.
pub const RESULT_RECORDS_PER_READ: usize = 8;

/// The part of all calls of batch APIs at once that no single kind may hold: one in so many, rounded up. An API that hangs
/// leaves it to the other kinds.
pub const OTHER_KINDS_SHARE: u32 = 4;

/// Places in one record: they take 675 bytes, so that a change of it mostly costs one write unit.
pub const PLACES_PER_RECORD: u32 = 15;

/// Places of dead workers that one write takes away: an expression of some 2 KB, DynamoDB allows 4 KB.
pub const DEAD_PLACES_MAX: usize = 32;

/// The shortest upper bound of a batch's pause before it looks for a place again; jitter may halve it, and SQS delays by whole
/// seconds.
pub const PLACE_PAUSE_MIN: Duration = Duration::from_secs(2);

/// The longest that a batch, or a notice, waits before it looks for a place again.
pub const PLACE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// A place is waited for on the spot while no call of its kind has been running for longer: others could use the worker.
pub const SHORT_CALL_MAX: Duration = Duration::from_secs(2);

/// The pause between two such looks for a place; jitter may halve it.
pub const PLACE_LOOK_PAUSE: Backoff = Backoff { base: Duration::from_millis(100), max: Duration::from_millis(100) };

/// Such looks for a place.
pub const PLACE_LOOKS_MAX: u32 = 4;

/// Calls of a kind in a row that say that the caller is wrong or must wait, before the kind stands still; and at least as
/// many as are at work at once, so that what strikes all of them at one moment counts once.
pub const REFUSALS_MIN: u32 = 3;

/// Targets that were refused before a kind stands still for all of them: those of fewer may be one tenant's trouble.
pub const REFUSED_TARGETS_MIN: usize = 3;

/// Pauses between probes of a kind that stands still.
pub const PROBE_PAUSES: Backoff = Backoff { base: Duration::from_secs(5), max: Duration::from_secs(120) };

/// The longest pause between probes that a batch API may ask for.
pub const PROBE_PAUSE_MAX: Duration = Duration::from_secs(15 * 60);

/// How long a batch waits for the probe of another target.
pub const OTHER_PROBE_WAIT: Duration = Duration::from_secs(5);

/// For how many days a batch API refuses every call, or a kind stands still, before members fail: a long weekend. Well below
/// [`RETENTION`](super::RETENTION).
pub const REFUSED_DAYS_MAX: u64 = 3;

/// The same as a time.
pub const REFUSED_MAX: Duration = Duration::from_secs(REFUSED_DAYS_MAX * 24 * 3_600);

/// The longest that a batch API that answers later may take: a day. Below [`REFUSED_MAX`], and so below what tasks are kept for.
pub const ANSWERS_WITHIN_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The least that it may have.
pub const ANSWERS_WITHIN_MIN: Duration = Duration::from_secs(1);

/// The pause before the address of an answer is asked again, if the batch API names none: at first, and at most. Between these it
/// grows with the time that the call has been open.
pub const POLL_PAUSES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// Fan-outs that the lines of the log about a batch name.
pub const FANOUTS_LOGGED: usize = 3;

/// Lambda: bytes of the event of a synchronous invocation.
pub const EVENT_BYTES_MAX: usize = 6 * 1_024 * 1_024;

/// SQS: bytes of a message with its attributes (1 MiB since August 2025; API reference of `SendMessage`). A queue may allow less.
pub const SENT_BYTES_MAX: u32 = 1_024 * 1_024;

/// Bytes of the contents of a batch that is sent as a message, unless the policy says otherwise: what is around them has room.
pub const SENT_BYTES_DEFAULT: u32 = 900_000;

/// How long the lease of a dev session holds unless it is renewed.
pub const DEV_LEASE: Duration = Duration::from_secs(60);

/// How often a session renews its lease: two renewals may fail.
pub const DEV_RENEWAL: Duration = Duration::from_secs(20);

/// How long sending a call to the queue of a dev session may take. Together with [`CALL_WITHIN`] it bounds how late a call may come
/// after the lease was given back.
pub const DEV_SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest that the outcomes of a call to a dev session may take: a batch is held up so long if its session was killed.
pub const DEV_ANSWERS_WITHIN_MAX: Duration = Duration::from_secs(3_600);

/// How long they may take, unless the session says otherwise.
pub const DEV_ANSWERS_WITHIN_DEFAULT: Duration = Duration::from_secs(5 * 60);

/// Bytes of the contents of a call to a dev session, and of what is around each: they fit into one message. Larger calls are made to
/// the policy's own batch API.
pub const DEV_CALL_BYTES_MAX: usize = 900_000;

/// Bytes around a member's content in a call, at most.
pub const DEV_MEMBER_BYTES: usize = 128;
