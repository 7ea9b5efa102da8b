//! Notices, and whom they are sent to.

use std::time::Duration;

use super::{PLACE_PAUSE_MAX, PLACE_PAUSE_MIN};
use crate::backoff::Backoff;

/// How long one try to deliver a notice may last before another worker takes it for lost: the time-out of the notify function in
/// template.yaml.
pub const NOTICE_LEASE: Duration = Duration::from_secs(60);

/// How long a receiver of notices may take.
pub const NOTICE_TIMEOUT: Duration = Duration::from_secs(15);

/// How long one try begins further parts of a notice that is delivered in several: with one more time-out it stays below the
/// lease.
pub const NOTICE_TRY_MAX: Duration = Duration::from_secs(30);

/// Pauses between tries to deliver a notice.
pub const NOTICE_PAUSES: Backoff = Backoff { base: Duration::from_secs(4), max: Duration::from_secs(3_600) };

/// The longest a receiver of notices may ask to wait by `Retry-After`.
pub const NOTICE_RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);

/// A try that fails so long after the first one is the last. Well below what DynamoDB and the dead-letter queue keep.
pub const NOTICE_GIVE_UP: Duration = Duration::from_secs(3 * 24 * 3_600);

/// Bytes of the failures in one notice: with its target it fits a message.
pub const NOTICE_FAILURES_BYTES_MAX: usize = 200 * 1_024;

/// Notices that one invocation looks at, or delivers to one receiver, at once.
pub const NOTICES_AT_ONCE_MAX: usize = 10;

/// The notices of one kind that stops and resumes again and again are at least this far apart.
pub const KIND_NOTICES: Duration = Duration::from_secs(30);

/// Percentages of its items at which a fan-out's progress may be reported: each takes some three writes of the header, which also
/// holds the list.
pub const PROGRESS_PERCENTAGES_MAX: usize = 20;

/// Ranges of missing items that the notice of an end names: some 9 KB, and 5 KB in the header.
pub const MISSING_RANGES_NAMED_MAX: usize = 100;

/// One receiver of notices holds at most one in so many of the invocations of notify.
pub const RECEIVER_SHARE: u32 = 4;

/// Pauses of a notice whose receiver holds its share already.
pub const PLACE_PAUSES: Backoff = Backoff { base: PLACE_PAUSE_MIN, max: PLACE_PAUSE_MAX };

/// Bytes of a secret that webhooks are signed with, as Standard Webhooks allows them.
pub const WEBHOOK_SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Bytes of an event bus's name or ARN (`PutEvents`; its own ARNs are shorter).
pub const EVENT_BUS_BYTES_MAX: usize = 1_600;

/// Bytes of a Step Functions task token (`SendTaskSuccess`).
pub const TASK_TOKEN_BYTES_MAX: usize = 2_048;

/// Bytes of the id of a durable function's callback (`SendDurableExecutionCallbackSuccess`).
pub const CALLBACK_ID_BYTES_MAX: usize = 1_024;
