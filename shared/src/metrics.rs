//! Every counter and histogram, in one place. Steps count through the `metrics` facade; without a recorder that costs nothing.

/// Tasks stored.
pub const TASKS_REGISTERED: &str = "fanfold_tasks_registered";
/// Rows that producers read, those dropped included.
pub const ROWS_READ: &str = "fanfold_rows_read";
/// Rows that producers dropped, because they are in another share.
pub const ROWS_DROPPED: &str = "fanfold_rows_dropped";
/// Tries to read a page from a source that failed.
pub const SOURCE_TRIES_FAILED: &str = "fanfold_source_tries_failed";
/// Partitions of producers that failed.
pub const PARTITIONS_FAILED: &str = "fanfold_partitions_failed";
/// Tasks that are duplicates: another has their key.
pub const TASKS_DUPLICATE: &str = "fanfold_tasks_duplicate";
/// Tasks that became members of a formed batch.
pub const TASKS_BATCHED: &str = "fanfold_tasks_batched";
/// Batches formed.
pub const BATCHES_FORMED: &str = "fanfold_batches_formed";
/// Calls of batch APIs.
pub const CALLS: &str = "fanfold_calls";
/// Members that succeeded.
pub const MEMBERS_SUCCEEDED: &str = "fanfold_members_succeeded";
/// Members that failed for good.
pub const MEMBERS_FAILED: &str = "fanfold_members_failed";
/// Members that were not called, or not any more, because their fan-outs were cut short.
pub const MEMBERS_DROPPED: &str = "fanfold_members_dropped";
/// Attempts after which another one is due.
pub const RETRIES: &str = "fanfold_retries";
/// Calls that failed as a whole, after which their members were called in halves.
pub const CALLS_SPLIT: &str = "fanfold_calls_split";
/// Items whose bit was cleared.
pub const ITEMS_ACKED: &str = "fanfold_items_acked";
/// Items whose ack was refused: they do not exist, or not any more.
pub const ITEMS_REFUSED: &str = "fanfold_items_refused";
/// Notices delivered.
pub const NOTICES_DELIVERED: &str = "fanfold_notices_delivered";
/// Tries to deliver a notice that failed.
pub const NOTICE_TRIES_FAILED: &str = "fanfold_notice_tries_failed";
/// Notices given up.
pub const NOTICES_GIVEN_UP: &str = "fanfold_notices_given_up";
/// Calls whose answer says that the caller is wrong or must wait, and that used up no attempt.
pub const CALLS_REFUSED: &str = "fanfold_calls_refused";
/// Kinds that came to stand still.
pub const KINDS_STOPPED: &str = "fanfold_kinds_stopped";
/// Kinds that resume after they stood still.
pub const KINDS_RESUMED: &str = "fanfold_kinds_resumed";
/// Seconds from the registration of a task to the first call of its batch: a histogram, counted by member.
pub const REGISTERED_TO_CALLED: &str = "fanfold_registered_to_called_seconds";
/// Seconds that a call takes: a histogram, counted by member.
pub const CALLED_TO_ANSWERED: &str = "fanfold_called_to_answered_seconds";
/// Seconds from the last outcome of a batch to its acks being applied: a histogram, counted by member.
pub const ANSWERED_TO_ACKED: &str = "fanfold_answered_to_acked_seconds";
