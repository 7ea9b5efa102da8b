//! How long records are kept at least. A deployment may keep all but those of lanes and places for longer, by the same time
//! ([`Retention`](crate::retention::Retention)).

use std::time::Duration;

/// How long ended tasks, batches and fan-outs are kept (DynamoDB TTL). A key is remembered as long as the task that
/// has it: unfinished ones keep theirs.
pub const RETENTION: Duration = Duration::from_secs(14 * 24 * 3_600);

/// Days that ended tasks, batches and fan-outs can be kept by a deployment. What is stored is paid for.
pub const RETENTION_DAYS_MAX: u32 = 365;

/// How long a task of a bundle is kept from when it was stored, and a bundle from its last claim. A task that still waits after
/// half of it is kept for longer, so that whatever becomes of it, it stays for [`RETENTION`] from then.
pub const BUNDLED_RETENTION: Duration = Duration::from_secs(2 * RETENTION.as_secs());

/// How long a key's record is kept after it was taken, so that tasks may wait for long. What is remembered is decided by the
/// task that has the key.
pub const KEY_RETENTION: Duration = Duration::from_secs(12 * 7 * 24 * 3_600);

/// How long an item group is kept after it ended, as its fan-out may go on: which of its items failed is known for as long, and a
/// repeated request does not add it again.
pub const GROUP_RETENTION: Duration = KEY_RETENTION;

/// How long it is remembered what `POST /tasks` or `POST /fanouts/open` asked for under an `Idempotency-Key`. Longer than
/// its tasks, unless these wait for more than four weeks.
pub const REQUEST_RETENTION: Duration = Duration::from_secs(6 * 7 * 24 * 3_600);

/// How long an idle lane's lock record is kept.
pub const LANE_RETENTION: Duration = Duration::from_secs(24 * 3_600);

/// How long the record of the places of a receiver of notices is kept after the last one was taken, and each further record of the
/// places of a kind.
pub const PLACES_RETENTION: Duration = Duration::from_secs(24 * 3_600);
