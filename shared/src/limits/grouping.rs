//! Tasks, lanes, leaders, and how batches are formed.

use std::time::Duration;

use crate::backoff::Backoff;

/// Members of one batch.
pub const BATCH_MEMBERS_MAX: u32 = 10_000;

/// Members of one batch, unless the policy or the preset of its batch API says otherwise.
pub const BATCH_MEMBERS_DEFAULT: u32 = 100;

/// How long a batch that is not full waits for more tasks, unless the policy says otherwise.
pub const LINGER_DEFAULT: Duration = Duration::from_secs(1);

/// Bytes of the members of a call, if the policy does not say how many. A Lambda function's HTTP body may have 6 MB, and comes
/// with its quotes escaped.
pub const BATCH_BYTES_DEFAULT: u32 = 4 * 1_024 * 1_024;

/// Bytes of the members of a call: the handle function (512 MiB, template.yaml) holds them some four times.
pub const BATCH_BYTES_MAX: u32 = 32 * 1_024 * 1_024;

/// Bytes that a member takes in a call beside its content: its id, and the names of both.
pub const MEMBER_BYTES: usize = 128;

/// The largest weight of a task, and of a batch.
pub const WEIGHT_MAX: u64 = 1_000_000_000;

/// Bytes of a batch's packed members: with their outcomes, errors, and a part for each member, the record stays below DynamoDB's
/// 400 KB. Only members of very many item groups take that much.
pub const MEMBERS_BYTES_MAX: usize = 200 * 1_024;

/// Records that one elect or group message names, of tasks on their own and of bundles; more are found in the index.
pub const NAMED_RECORDS_MAX: usize = 2_000;

/// Bytes of a bundle's record with its claims. DynamoDB: one write unit.
pub const BUNDLE_BYTES_MAX: usize = 1_024;

/// Bundles that a leader reads at once. A batch seldom takes more of them, and each is charged for.
pub const BUNDLES_PER_READ: usize = 8;

/// A bundle whose tasks are not stored after this time is declared dead. Longer than any function may run.
pub const BUNDLE_FILLING_MAX: Duration = HINT_LOST_AFTER;

/// Tasks in one registration.
pub const TASKS_PER_REQUEST_MAX: usize = 10_000;

/// By when an invocation of `register` expects to be done with the messages that it begins to register. The function's
/// time-out is 30 s (template.yaml): the rest is for requests that are throttled.
pub const REGISTER_TIME_MAX: Duration = Duration::from_secs(25);

/// Bytes of one task's content as JSON: a task must fit an SQS message and leave room in DynamoDB's 400 KB item.
pub const CONTENT_BYTES_MAX: usize = 128 * 1_024;

/// Nesting of a task's content: DynamoDB allows 32 levels, most JSON readers 128.
pub const CONTENT_DEPTH_MAX: usize = 32;

/// Bytes of an `Idempotency-Key`.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;

/// Bytes of a target or a key. DynamoDB: a partition key holds at most 2,048 bytes, and a lane adds kind and partition.
pub const TARGET_BYTES_MAX: usize = 1_024;

/// Batches of one lane in flight: their ids live in the lane's lock record.
pub const IN_FLIGHT_MAX: u32 = 1_000;

/// Batches of one lane whose failures wait to be reported: their ids live in the lane's lock record, too (some 17 KB), and make
/// each write of it dearer. DynamoDB allows 400 KB per item. Beyond that, a notice that is not taken at once is given up.
pub const CLOSING_MAX: usize = 1_000;

/// After this the leader's hint is sent again. For liveness only: safety rests on conditions.
pub const LEADER_LEASE: Duration = Duration::from_secs(60);

/// Age from which `sweep` takes a hint for lost.
pub const HINT_LOST_AFTER: Duration = Duration::from_secs(120);

/// Age from which `sweep` takes a hint for lost although it may be one of those that wait in its queue.
pub const HINT_LATE_MAX: Duration = Duration::from_secs(10 * 60);

/// A message that was sent again is sent once more after twice its age, then after pauses of this length.
pub const WAKE_PAUSE_MAX: Duration = Duration::from_secs(15 * 60);

/// Pauses of a workflow that was not elected.
pub const ELECTION_PAUSES: Backoff = Backoff { base: Duration::from_secs(2), max: Duration::from_secs(120) };

/// A leader whose `quiet` is below a second waits at least this part of the time that it has waited before it looks again.
pub const QUIET_LOOKS: u32 = 32;

/// The least time between two looks of such a leader: the message of a look takes some tens of milliseconds on AWS.
pub const QUIET_LOOKS_APART: Duration = Duration::from_millis(100);

/// Lanes whose leaders a registration makes itself. A request for more lanes is not the single task that a client waits for.
pub const LED_BY_REQUEST_MAX: usize = 8;

/// Elections that one invocation holds at once.
pub const ELECTIONS_AT_ONCE_MAX: usize = 8;

/// Batches that one invocation forms at once.
pub const BATCHES_AT_ONCE_MAX: usize = 8;

/// Items of a sparse index that `sweep` reads at once; it first looks whether there are more. If there is none, that look costs half
/// a read unit per minute.
pub const LITTLE_MAX: usize = 100;

/// Segments in which `sweep` reads a sparse index with much in it, begun anywhere: a sweep that times out favours none. With a
/// million lanes one takes some 20 s of its time-out of 300 s (template.yaml).
pub const SWEEP_SEGMENTS: i32 = 8;

/// Bundles of a segment, of those that have waited for weeks, that one sweep looks after: each may be a write per task. With a sweep
/// per minute, six million bundles have their turn within six days.
pub const OLD_BUNDLES_PER_SEGMENT: usize = 100;

/// Sweeps among which old bundles are shared out at most, a power of two: those of six days, less than half of the time that is left
/// to them.
pub const OLD_BUNDLES_SWEEPS_MAX: usize = 8_192;

/// Locks that `sweep` writes at once.
pub const SWEEP_WRITES_AT_ONCE_MAX: usize = 32;

/// Messages that `sweep` sends together.
pub const SWEEP_MESSAGES_AT_ONCE_MAX: usize = 1_000;

/// Bytes of a small task, as most are. A record keeps the bytes of larger ones only.
pub const SMALL_TASK_BYTES: u32 = 256;

/// Slots of one record: a damaged column takes no more memory.
pub const SLOTS_PER_RECORD_MAX: usize = 65_536;
