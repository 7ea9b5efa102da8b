//! Rates: how exactly a call keeps its time.

use std::time::Duration;

/// How late a call may be after its time, at least, before the time is lost. Timers of a busy worker are some milliseconds
/// late. A Lambda function that has part of a processor may stand still for up to 20 ms at a time.
pub const CALL_GRACE_MIN: Duration = Duration::from_millis(20);

/// How late a call may be at most. As with any attempt, it is made within this time or not at all.
pub const CALL_GRACE_MAX: Duration = super::CALL_WITHIN;

/// If the burst has no room for it, a call may be late by the time that its cost takes to come, divided by this. That time is
/// lost.
pub const CALL_GRACE_SHARE: u64 = 25;

/// A call may be late by the time of the rest of the burst, divided by this. A burst after a pause is smaller by as much.
pub const CALL_GRACE_BURST_SHARE: u64 = 10;

/// The burst of a rate without one: what the rate allows in this time. A larger batch is late by at most a twelfth of it.
pub const BURST_TIME_DEFAULT: Duration = Duration::from_millis(250);

/// The longest that a whole burst may take to come. An idle lane's record is kept as long.
pub const BURST_TIME_MAX: Duration = super::LANE_RETENTION;

/// How long before its call a batch asks for its time: for what is read and written until the call.
pub const CALL_LEAD: Duration = Duration::from_millis(150);

/// How much longer for each member, since its content is read.
pub const CALL_LEAD_PER_MEMBER: Duration = Duration::from_micros(100);

/// The same for a batch that missed its time and has read everything.
pub const CALL_LEAD_AGAIN: Duration = Duration::from_millis(20);

/// How far ahead a time is given. A batch whose time is later waits, and asks again.
pub const CALL_AHEAD: Duration = Duration::from_millis(100);

/// A batch whose time comes within this waits for it in the worker: SQS delays by whole seconds.
pub const TURN_SHORT: Duration = Duration::from_millis(1_200);

/// How long before its batch's time a delayed message is to come.
pub const TURN_EARLY: Duration = Duration::from_millis(200);

/// A batch that asks for its time so long after its turn missed it, perhaps with many others: they were paused, or their kind
/// stood still.
pub const TURN_MISSED_AFTER: Duration = Duration::from_secs(10);

/// How often a worker asks for a time before the batch's message is delayed.
pub const TURN_LOOKS_MAX: u32 = 4;
