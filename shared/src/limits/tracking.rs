//! Fan-outs, item groups and acks.

use std::time::Duration;

use super::GROUPS_PER_TRANSACTION_MAX;
use crate::backoff::Backoff;

/// Items in one bitfield: 896 bytes, so that a group record without failures stays within 1 KiB, one DynamoDB write unit.
pub const GROUP_ITEMS_MAX: u32 = 7_168;

/// Items one add may bring: what fits one transaction.
pub const ITEMS_PER_ADD_MAX: u32 = GROUP_ITEMS_MAX * GROUPS_PER_TRANSACTION_MAX as u32;

/// Groups in one response of the HTTP API: some 60 KB, far below Lambda's 6 MB.
pub const GROUPS_PER_PAGE_MAX: usize = 1_000;

/// Groups that the answer about a fan-out names at once; it is asked for often.
pub const GROUPS_PER_ANSWER_MAX: usize = 100;

/// Bytes of a fan-out's user key.
pub const USER_KEY_BYTES_MAX: usize = 1_024;

/// Groups and fan-outs that one worker writes at once.
pub const ACKS_AT_ONCE_MAX: usize = 16;

/// Items of one group that are named in the log when their ack is refused.
pub const REFUSED_ITEMS_NAMED_MAX: usize = 20;

/// Pauses of a worker that clears bits, once it was overtaken twice. A read and a write take some 10 ms, in which another
/// worker may write the record: spread over half a second, hundreds get through within [`CONTENTION_TRIES_MAX`](super::CONTENTION_TRIES_MAX). Less than five
/// seconds in all.
pub const OVERTAKEN_PAUSES: Backoff = Backoff { base: Duration::from_millis(10), max: Duration::from_millis(500) };
