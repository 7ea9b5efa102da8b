//! Every limit in one place, each with its source.

use std::time::Duration;

use crate::backoff::Backoff;

/// Items in one bitfield: 896 bytes, so that a group record without failures stays within 1 KiB, one DynamoDB write unit.
pub const GROUP_ITEMS: u32 = 7_168;

/// DynamoDB: at most 100 actions in a transaction; one is the fan-out's header.
pub const GROUPS_PER_TRANSACTION: usize = 99;

/// Items one add may bring: what fits one transaction.
pub const ITEMS_PER_ADD: u32 = GROUP_ITEMS * GROUPS_PER_TRANSACTION as u32;

/// DynamoDB: keys in one BatchGetItem.
pub const KEYS_PER_READ: usize = 100;

/// DynamoDB: statements in one BatchExecuteStatement.
pub const STATEMENTS_PER_CALL: usize = 25;

/// Groups in one response of the HTTP API: some 60 KB, far below Lambda's 6 MB.
pub const GROUPS_PER_PAGE: usize = 1_000;

/// Groups that the answer about a fan-out names at once; it is asked for often.
pub const GROUPS_AT_ONCE: usize = 100;

/// SQS: entries in one batch call.
pub const MESSAGES_PER_CALL: usize = 10;

/// Bytes of one message and of one batch call. SQS takes 1 MiB since 2025; the embedded engine and many consumers 256 KiB.
pub const MESSAGE_BYTES: usize = 256 * 1_024 - 4_096;

/// SQS: the longest DelaySeconds.
pub const DELAY_MAX: Duration = Duration::from_secs(900);

/// Members of one batch.
pub const BATCH_MEMBERS: u32 = 10_000;

/// Bytes of a batch's packed members: with their outcomes and errors the record stays well below DynamoDB's 400 KB. Only
/// members of very many item groups take that much.
pub const MEMBERS_BYTES: usize = 250 * 1_024;

/// Task ids one elect or group message names; more are found in the index.
pub const NAMED_TASKS: usize = 2_000;

/// Tasks in one registration.
pub const TASKS_PER_REQUEST: usize = 10_000;

/// Bytes of one task's content as JSON: a task must fit an SQS message and leave room in DynamoDB's 400 KB item.
pub const CONTENT_BYTES: usize = 128 * 1_024;

/// Nesting of a task's content: DynamoDB allows 32 levels, most JSON readers 128.
pub const CONTENT_DEPTH: usize = 32;

/// Bytes of a target or a key. DynamoDB: a partition key holds at most 2,048 bytes, and a lane adds kind and partition.
pub const TARGET_BYTES: usize = 1_024;

/// Bytes of a CEL expression in a policy.
pub const EXPRESSION_BYTES: usize = 1_024;

/// Nesting of brackets in an expression: what the parser takes on a thread of 2 MiB with room to spare.
pub const EXPRESSION_DEPTH: usize = 24;

/// Operator characters in an expression: parsing and evaluating recurse over chains of them.
pub const EXPRESSION_OPERATORS: usize = 64;

/// How many times as large as a task's content an expression may make it while it works: 128 KiB become 8 MiB.
pub const EXPRESSION_GROWTH: usize = 64;

/// Bytes of a kind.
pub const KIND_BYTES: usize = 64;

/// Bytes of a fan-out's user key.
pub const USER_KEY_BYTES: usize = 1_024;

/// Bytes of an `Idempotency-Key`.
pub const IDEMPOTENCY_KEY_BYTES: usize = 255;

/// Bytes of a batch API's URL.
pub const URL_BYTES: usize = 2_048;

/// Lanes one target can be split into.
pub const PARTITIONS: u32 = 1_024;

/// Batches of one lane in flight: their ids live in the lane's lock record.
pub const IN_FLIGHT: u32 = 1_000;

/// Batches of one lane whose failures wait to be told: their ids live in the lane's lock record, too (some 17 KB), and make each
/// write of it dearer. DynamoDB allows 400 KB an item. Beyond that, a notice that is not taken at once is given up.
pub const CLOSING_MAX: usize = 1_000;

/// Attempts of one batch.
pub const ATTEMPTS: u32 = 1_000;

/// The longest a batch API may take.
pub const BATCH_API_TIMEOUT_MAX: Duration = Duration::from_secs(90);

/// What an attempt has beside its call's own `timeout`, above all to write the outcome, before another worker takes it for
/// lost. With the longest `timeout` this is the time-out of the handle function in template.yaml.
pub const ATTEMPT_MARGIN: Duration = Duration::from_secs(30);

/// An attempt that has begun calls within this time, or not at all. So its call is over, and its connection closed, by its
/// beginning plus this plus `timeout`, however its worker ended.
pub const CALL_WITHIN: Duration = Duration::from_secs(2);

/// The part of all calls of batch APIs at once that no single kind may hold: one in so many, rounded up. An API that hangs
/// leaves it to the other kinds.
pub const OTHER_KINDS: u32 = 4;

/// Places of dead workers that one write takes away: an expression of some 2 KB, DynamoDB allows 4 KB.
pub const MOST_DEAD: usize = 32;

/// Calls of a kind in a row that say that the caller is wrong or must wait, before the kind stands still; and at least as
/// many as are at work at once, so that what strikes all of them at one moment counts once.
pub const REFUSALS: u32 = 3;

/// Targets that were refused before a kind stands still for all of them: those of fewer may be one tenant's trouble.
pub const REFUSED_TARGETS: usize = 3;

/// Pauses between probes of a kind that stands still.
pub const PROBES: Backoff = Backoff { base: Duration::from_secs(5), max: Duration::from_secs(120) };

/// The longest pause between probes that a batch API may ask for.
pub const PROBE_ASKED: Duration = Duration::from_secs(15 * 60);

/// How long a batch waits for a batch API that lets nobody in, before its members fail: a long weekend. Well below
/// [`RETENTION`].
pub const REFUSED_MAX: Duration = Duration::from_secs(3 * 24 * 3_600);

/// The longest that a batch, or a notice, waits before it looks for a place again.
pub const PLACE_WAIT_MAX: Duration = Duration::from_secs(30);

/// Lambda: a synchronous invocation takes and gives at most 6 MB.
pub const BODY_BYTES: usize = 6 * 1_024 * 1_024;

/// Attempts of one batch that may be lost with their workers: it could be the batch that kills them.
pub const LOST_ATTEMPTS: u32 = 32;

/// The longest pause between two attempts of a batch, whether a batch API asks for it (`Retry-After`) or a policy
/// (`backoff.max`): what waits longer is better looked at.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Bytes of a batch API's answer.
pub const ANSWER_BYTES: usize = 6 * 1_024 * 1_024;

/// Bytes of the failures in one notice: with its target it fits a message.
pub const NOTICE_FAILURES_BYTES: usize = 200 * 1_024;

/// Bytes shown of a body that is no answer.
pub const EXCERPT_BYTES: usize = 200;

/// Bytes of a member's error that are kept: an excerpt, with what was wanted instead. With their slots, a batch's errors
/// take at most 56 KiB.
pub const ERROR_BYTES: usize = 512;

/// Bytes shown of what is wrong with a message: enough for a field, its value and what is allowed.
pub const PROBLEM_BYTES: usize = 1_024;

/// Different errors one batch record keeps; further ones are counted together.
pub const ERRORS_PER_BATCH: usize = 32;

/// After this the leader's hint is sent again. For liveness only: safety rests on conditions.
pub const LEASE: Duration = Duration::from_secs(60);

/// Age from which `sweep` takes a hint for lost.
pub const HINT_AGE: Duration = Duration::from_secs(120);

/// A batch whose message may only be late is reminded of at once, then after twice its age, then after pauses of this length.
pub const REMINDER_PAUSE: Duration = Duration::from_secs(15 * 60);

/// How long ended tasks, batches, groups and fan-outs are kept (DynamoDB TTL). A key is remembered as long as the task that
/// has it: unfinished ones keep theirs.
pub const RETENTION: Duration = Duration::from_secs(14 * 24 * 3_600);

/// How long a key's record is kept after it was taken, so that tasks may wait for long. What is remembered is decided by the
/// task that has the key.
pub const KEY_RETENTION: Duration = Duration::from_secs(12 * 7 * 24 * 3_600);

/// How long it is remembered what `POST /tasks` asked for under an `Idempotency-Key`. Longer than its tasks, unless these wait
/// for more than four weeks.
pub const REQUEST_RETENTION: Duration = Duration::from_secs(6 * 7 * 24 * 3_600);

/// How long an idle lane's lock record is kept.
pub const LANE_RETENTION: Duration = Duration::from_secs(24 * 3_600);

/// Shards of the sparse index over busy lanes. DynamoDB: 1,000 write units per second for one partition key.
pub const LANE_SHARDS: u64 = 16;

/// Tries of a compare-and-set or a transaction before the message is left to redelivery.
pub const CONTENTION_TRIES: u32 = 16;

/// Pauses before DynamoDB is asked again for what it throttled, left out of a batch call, or gave up for another transaction,
/// which the SDK does not repeat by itself. DynamoDB wants exponential pauses. Short at first, for a conflict is over in
/// milliseconds; throttling may last.
pub const STORE_PAUSES: Backoff = Backoff { base: Duration::from_millis(20), max: Duration::from_secs(2) };

/// Pauses of a worker that clears bits, once it was overtaken twice. A read and a write take some 10 ms, in which another
/// worker may write the record: spread over half a second, hundreds get through within [`CONTENTION_TRIES`]. Less than five
/// seconds in all.
pub const OVERTAKEN_PAUSES: Backoff = Backoff { base: Duration::from_millis(10), max: Duration::from_millis(500) };

/// How long a policy may be served from a worker's memory.
pub const POLICY_CACHE: Duration = Duration::from_secs(5);

/// How long the record of the places of a receiver of notices is kept after the last one was taken. Those of kinds are kept.
pub const PLACES_RETENTION: Duration = Duration::from_secs(24 * 3_600);

/// The local HTTP API: how long headers of a request are waited for, and the next request on a connection; hyper's own default.
pub const REQUEST_HEADERS_WAIT: Duration = Duration::from_secs(30);

/// The local HTTP API: how long the whole body of a request is waited for. API Gateway gives a whole request no more.
pub const REQUEST_BODY_WAIT: Duration = Duration::from_secs(30);

/// The local HTTP API: how long it takes what a client still sends after its answer.
pub const REQUEST_DRAIN: Duration = Duration::from_secs(5);

/// How long one try to deliver a notice may last before another worker takes it for lost: the time-out of the notify function in
/// template.yaml.
pub const NOTICE_LEASE: Duration = Duration::from_secs(60);

/// How long a receiver of notices may take.
pub const NOTICE_TIMEOUT: Duration = Duration::from_secs(15);

/// How long one try goes on to the next part of a notice that is delivered in several: with one more time-out it stays below the
/// lease.
pub const NOTICE_TURN: Duration = Duration::from_secs(30);

/// Pause after the first try to deliver a notice, and the longest one: each is twice the one before. Jitter may halve them.
pub const NOTICE_RETRY: Duration = Duration::from_secs(4);

/// See [`NOTICE_RETRY`].
pub const NOTICE_RETRY_MAX: Duration = Duration::from_secs(3_600);

/// The longest a receiver of notices may ask to wait by `Retry-After`.
pub const NOTICE_RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A try that fails so long after the first one is the last. Well below what DynamoDB and the dead-letter queue keep.
pub const NOTICE_GIVE_UP: Duration = Duration::from_secs(3 * 24 * 3_600);

/// A kind that stops and goes on again and again is told of at most once in this time.
pub const KIND_NOTICES: Duration = Duration::from_secs(30);

/// One receiver of notices holds at most one in so many of the invocations of notify.
pub const RECEIVER_SHARE: u32 = 4;

/// The first pause of a notice whose receiver holds its share already; the longest is [`PLACE_WAIT_MAX`].
pub const PLACE_WAIT: Duration = Duration::from_secs(2);
