//! Rates: how exactly a call keeps its time.

use std::time::Duration;

/// How late after its time a call may be made at least, before the time is lost. Timers of a busy worker are some milliseconds late; a
/// Lambda function with a part of a processor is not run for up to 20 ms at a time.
pub const CALL_GRACE_MIN: Duration = Duration::from_millis(20);

/// The longest that a call may be late: as for any attempt, it is made within this time or not at all.
pub const CALL_GRACE_MAX: Duration = super::CALL_WITHIN;

/// The part of its own time that a call may be late where a burst has no room for it: one in so many. It is lost.
pub const CALL_GRACE_SHARE: u64 = 25;

/// The part of a burst beyond its own that a call may be late by: one in so many. A burst after a pause is smaller by as much.
pub const CALL_GRACE_BURST_SHARE: u64 = 10;

/// The burst of a rate that does not say one: what comes in this time. A batch that is larger is late by at most a twelfth of it.
pub const BURST_TIME_DEFAULT: Duration = Duration::from_millis(250);

/// The longest that a whole burst may take to come. An idle lane's record is kept as long.
pub const BURST_TIME_MAX: Duration = super::LANE_RETENTION;

/// How long before its call a batch asks for its time: for what is read and written until the call.
pub const CALL_LEAD: Duration = Duration::from_millis(150);

/// So much longer for each member, whose content is read.
pub const CALL_LEAD_PER_MEMBER: Duration = Duration::from_micros(100);

/// The same for a batch that missed its time, with everything read.
pub const CALL_LEAD_AGAIN: Duration = Duration::from_millis(20);

/// How far ahead a time is given. Whose time is later waits, and asks again.
pub const CALL_AHEAD: Duration = Duration::from_millis(100);

/// A batch whose time comes within this waits for it in the worker: SQS delays by whole seconds.
pub const TURN_SHORT: Duration = Duration::from_millis(1_200);

/// A delayed message is to come so long before its batch's time.
pub const TURN_EARLY: Duration = Duration::from_millis(200);

/// How often a worker asks for a time before the batch's message is delayed.
pub const TURN_LOOKS_MAX: u32 = 4;
