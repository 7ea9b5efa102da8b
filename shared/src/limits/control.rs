//! Pausing, draining and cancelling.

use std::time::Duration;

/// How long the switch of a resumed or draining scope stays at least: by then the indexes show what was stored during the
/// pause. What they show later is found like any lost message.
pub const SWITCH_STAYS_MIN: Duration = Duration::from_secs(10);

/// Records of an index that a request to resume or drain looks at, to wake lanes at once. `sweep` does the rest.
pub const WAKE_RECORDS_MAX: usize = 10_000;

/// Lanes of a target that such a request wakes without a look at what waits there.
pub const WAKE_LANES_MAX: u32 = 64;

/// How often `sweep` notes in a batch that a pause holds it, or that its kind has no policy.
pub const HELD_NOTED_EVERY: Duration = Duration::from_secs(24 * 3_600);

/// Records that wait, or lanes, that a page of the list of lanes or of a cancellation looks at.
pub const LOOKED_AT_MAX: usize = 100;

/// Tasks after which a page of a cancellation ends: each task with a key is read once more, and API Gateway gives a request 30 s.
pub const CANCELLED_PER_PAGE: usize = 1_000;

/// Batches in flight that the list of lanes names per lane.
pub const LANE_BATCHES_NAMED: usize = 10;

/// Dead letters that one request moves back: some seconds of calls for ten each.
pub const REDRIVE_MAX: u64 = 500;

/// How long a dead letter that is being moved back stays invisible.
pub const REDRIVE_VISIBILITY: Duration = Duration::from_secs(60);

/// Records of batches that a page of a reset looks at.
pub const RESET_RECORDS: usize = 500;

/// Tasks that a page of a reset takes, give or take a batch.
pub const RESET_PER_PAGE: u64 = 1_000;

/// How long a task may wait, beside its lane's linger, before `sweep` reports its lane: far longer than it takes to find a lost
/// message.
pub const TASKS_STALE_AFTER: Duration = Duration::from_secs(15 * 60);

/// How long a batch may wait for its outcomes, and a fan-out for its end or notice, before `sweep` reports it.
pub const WORK_STALE_AFTER: Duration = Duration::from_secs(3_600);

/// How long a batch's calls may fail, and how many of its attempts must have ended by then, before `sweep` reports its kind: longer
/// than a restart of a batch API takes, and far shorter than the attempts of a policy last.
pub const CALLS_FAIL_AFTER: Duration = Duration::from_secs(5 * 60);

/// See [`CALLS_FAIL_AFTER`].
pub const CALLS_FAIL_ATTEMPTS: u32 = 3;

/// The oldest findings of each sort that the record of `sweep` names, so that it stays small. All are counted.
pub const FINDINGS_NAMED: usize = 10;

/// Bytes of the name of a finding, and of the error that comes with it: the name of a lane may be long.
pub const FINDING_NAME_BYTES: usize = 200;

/// How old the record of the latest sweep may be before `GET /health` reports that: it runs every minute.
pub const SWEEP_SILENT_AFTER: Duration = Duration::from_secs(5 * 60);
