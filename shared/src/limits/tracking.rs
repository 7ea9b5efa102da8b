//! Fan-outs, item groups and acks.

use std::time::Duration;

use super::GROUPS_PER_TRANSACTION_MAX;
use crate::backoff::Backoff;

/// Items in one bitfield: 896 bytes, so that a group record without failures stays within 1 KiB, one DynamoDB write unit.
pub const GROUP_ITEMS_MAX: u32 = 7_168;

/// Bytes of a mask of a group's items.
pub const MASK_BYTES_MAX: usize = GROUP_ITEMS_MAX as usize / 8;

/// Items one add may bring: what fits one transaction.
pub const ITEMS_PER_ADD_MAX: u32 = GROUP_ITEMS_MAX * GROUPS_PER_TRANSACTION_MAX as u32;

/// Groups in one response of the HTTP API: some 60 KB, far below Lambda's 6 MB.
pub const GROUPS_PER_PAGE_MAX: usize = 1_000;

/// Groups with their bitfields in one response of the HTTP API: one read of their records, some 250 KB.
pub const MASKS_PER_PAGE_MAX: usize = super::KEYS_PER_READ_MAX;

/// Open groups that are read to count exactly what is done: some 11 MB in 100 requests, within a function's 30 s.
pub const GROUPS_COUNTED_MAX: usize = 10_000;

/// How often they are counted again if some of them ended meanwhile.
pub const PROGRESS_TRIES_MAX: u32 = 3;

/// How long nothing must have happened to a group of a fan-out that was cut short before what is in progress there counts as
/// missing: longer than any call (Lambda's 15 minutes), and than most messages are late.
pub const MISSING_AFTER: Duration = Duration::from_secs(15 * 60);

/// Transactions by which a request that cuts a fan-out short closes groups itself: some 1,000 groups. The sweep closes the rest.
pub const REQUEST_CLOSES_MAX: usize = 10;

/// The same for a sweep: some 10,000 groups, within seconds. The next sweep continues.
pub const SWEEP_CLOSES_MAX: usize = 100;

/// For how long nothing may happen to a fan-out that is open, if its user says nothing else: it is forgotten, or its producer
/// is gone.
pub const IDLE_OPEN: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The same for a sealed one, whose workers may be slow.
pub const IDLE_SEALED: Duration = Duration::from_secs(14 * 24 * 3_600);

/// The same where items have tasks: these may wait for so long, for as long as their keys are remembered.
pub const IDLE_WITH_TASKS: Duration = super::KEY_RETENTION;

/// The least and the most that a user may say: sweeps run every minute, and a year is longer than anybody waits.
pub const IDLE_LIMITS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(60)..=Duration::from_secs(365 * 24 * 3_600);

/// Failures that a fan-out may be said to tolerate: the largest whole number that every reader of JSON holds exactly.
pub const TOLERATED_FAILURES_MAX: u64 = (1 << 53) - 1;

/// Shards of the indexes by which sweeps find fan-outs that may be idle, and by which fan-outs are listed. Each is read by
/// every sweep, and takes 1,000 fan-outs per second that are opened or end (DynamoDB: write units of a partition key).
pub const FEW_SHARDS: u64 = 16;

/// Fan-outs of a shard that a sweep looks at, whether they are idle; the next sweep looks at the others.
pub const LOOKS_PER_SHARD_MAX: usize = 100;

/// Ranges of items in one response of the HTTP API, those of its last group aside, which are up to 3,584: some 1 MB, far below
/// Lambda's 6 MB.
pub const RANGES_PER_PAGE_MAX: usize = 8_000;

/// How long `GET /fanouts/{id}` may wait for a fan-out's end: API Gateway gives a request 30 s in all.
pub const WAIT_MAX: Duration = Duration::from_secs(20);

/// Pauses between its looks at the fan-out: some 30 reads in the longest wait.
pub const WAIT_LOOKS: Backoff = Backoff { base: Duration::from_millis(50), max: Duration::from_secs(1) };

/// Bytes of a fan-out's user key.
pub const USER_KEY_BYTES_MAX: usize = 1_024;

/// Bytes of it that an index sorts by: it is stored twice up to here, and more would make each write of a header cost more.
pub const NAMED_BYTES_MAX: usize = 256;

/// Fan-outs in one response of the HTTP API: one read of the table.
pub const FANOUTS_PER_PAGE_MAX: usize = 100;

/// Queries that a list of fan-outs makes at once, of 64: each takes a connection.
pub const LIST_QUERIES_AT_ONCE_MAX: usize = 16;

/// Bytes of the content of the task that follows a fan-out's end, as JSON. It stands in the header, and DynamoDB charges each
/// write of the header by the KiB.
pub const THEN_BYTES_MAX: usize = 2_048;

/// Tasks that a fan-out may be opened with. It is a small set of different work, such as the parts of one report; more are registered by
/// `POST /tasks`, or read by a producer.
pub const TASKS_PER_FANOUT_MAX: usize = 100;

/// Bytes of these tasks, compressed. They stand in the header until they are registered, and each write of it costs by the KiB.
pub const OPENED_TASKS_BYTES_MAX: usize = 64 * 1_024;

/// Fan-outs that one request may open: each is two writes of some 10 ms, and [`ACKS_AT_ONCE_MAX`] are made at a time.
pub const FANOUTS_PER_REQUEST_MAX: usize = 1_000;

/// Items whose results the task that follows a fan-out's end may be sent.
pub const THEN_RESULTS_MAX: usize = 100;

/// Bytes of these results as JSON: with its own content and the end they stay below [`CONTENT_BYTES_MAX`](super::CONTENT_BYTES_MAX).
pub const THEN_RESULTS_BYTES_MAX: usize = 96 * 1_024;

/// How many reissues of reissues are followed back to find the results of all parts: each takes three reads.
pub const REISSUES_FOLLOWED_MAX: usize = 20;

/// Pages of a reissue in which its items are looked for: each has one at least, but for those in which it waited for the index.
pub const REISSUE_PAGES_LOOKED_AT: u64 = 2 * THEN_RESULTS_MAX as u64;

/// The longest pause before the task that follows a fan-out's end is sent again, as long as it is not found stored: one that cannot
/// be registered is a dead letter each time, until the header is forgotten.
pub const FOLLOW_PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// Groups and fan-outs that one worker writes at once.
pub const ACKS_AT_ONCE_MAX: usize = 16;

/// Groups that are read before the first of them is written: some 7 MB of records. What one invocation may bring would not fit the
/// memory of `ack`.
pub const ACKED_TOGETHER_MAX: usize = 2_000;

/// Bytes of an invocation's messages from which on it may send acks on: half of what it takes ([`BODY_BYTES_MAX`](super::BODY_BYTES_MAX)). So much comes
/// at once only where more is waiting, which the next invocation gathers with it.
pub const GATHERED_BYTES_MIN: usize = super::BODY_BYTES_MAX / 2;

/// Bytes that Lambda adds to a message of SQS, about: ids, the receipt, attributes.
pub const ENVELOPE_BYTES: usize = 1_024;

/// Groups that are sent on, at least: fewer are written. A message of them costs as much as some five writes.
pub const GATHERED_GROUPS_MIN: usize = 64;

/// Items of a group that are worth a write: an item then costs at most a hundredth of a write unit.
pub const GATHERED_ITEMS_MIN: u64 = 96;

/// Items of each group that an invocation has on average, at least, if it sends them on. Where it has fewer, two invocations
/// hardly meet in a group.
pub const GATHERED_SPREAD_MIN: u64 = 2;

/// How often an ack is sent on. Each time costs it a second or two, which it would have waited in the queue before.
pub const GATHERED_TIMES_MAX: u32 = 32;

/// Item groups that one `POST /acks` may name: as many as fit a message of the ack queue one item each, and with their
/// fan-outs' user keys and [`REFUSED_RANGES_NAMED_MAX`] ranges each within Lambda's answer of 6 MB, unless they are all in use.
pub const GROUPS_PER_ACK_MAX: usize = 3_500;

/// Entries of one `POST /counts`: each fan-out is a write of its own, some 10 ms, and a worker makes [`ACKS_AT_ONCE_MAX`] of
/// them at a time. The answer has a user key for each.
pub const COUNTS_PER_REQUEST_MAX: usize = 1_000;

/// Ranges of a group's items that the answer names when their acks are refused: some 1 KB.
pub const REFUSED_RANGES_NAMED_MAX: usize = 100;

/// Items of one group that are named in the log when their ack is refused.
pub const REFUSED_ITEMS_NAMED_MAX: usize = 20;

/// Pauses of a worker that clears bits, once it was overtaken twice, or that records posted outcomes. A read and a write take
/// some 10 ms, in which another worker may write the record: spread over half a second, hundreds get through within
/// [`CONTENTION_TRIES_MAX`](super::CONTENTION_TRIES_MAX). Less than five seconds in all.
pub const OVERTAKEN_PAUSES: Backoff = Backoff { base: Duration::from_millis(10), max: Duration::from_millis(500) };
