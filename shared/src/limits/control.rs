//! Pausing, draining and cancelling.

use std::time::Duration;

/// How long a switch that lets a scope go on stays at least before a sweep takes it away: until then indexes show what was stored while it
/// was paused. Whatever they show later is found as any lost message is.
pub const SWITCH_SETTLES: Duration = Duration::from_secs(10);

/// Records of an index that a request which lets a scope go on looks at, to wake lanes at once: 100,000 bytes or so. The sweep does the rest.
pub const WAKE_RECORDS_MAX: usize = 10_000;

/// Lanes of a target that such a request wakes without looking whether anything waits there.
pub const WAKE_LANES_MAX: u32 = 64;

/// How often it is noted of a batch that a pause holds it.
pub const HELD_NOTED_EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Records of what waits that a page of a selection, or of the list of lanes, looks at.
pub const LOOKED_AT_MAX: usize = 100;

/// Tasks after which a page of a selection that is cancelled ends: each is read once if it has a key, and API Gateway gives a request
/// 30 s.
pub const CANCELLED_PER_PAGE: usize = 1_000;

/// Batches in flight that the list of lanes names of each.
pub const LANE_BATCHES_NAMED: usize = 10;
