//! Every counter, gauge and histogram, in one place. Steps count through the `metrics` facade; without a recorder that costs
//! nothing. Deployed functions write them into their log for CloudWatch; `fanfold up` shows them under `/metrics`.

/// Defines names of metrics, and [`ALL`] of them with what they say.
macro_rules! metrics {
    ($($(#[doc = $says:literal])+ $constant:ident = $name:literal;)+) => {
        $($(#[doc = $says])+ pub const $constant: &str = $name;)+

        /// Every metric's name, with what it says.
        pub const ALL: &[(&str, &str)] = &[$(($name, concat!($($says),+))),+];
    };
}

/// Whether the values of a metric are seconds. Others count something.
#[must_use]
pub fn in_seconds(name: &str) -> bool {
    name.ends_with("_seconds")
}

metrics! {
    /// Tasks stored.
    TASKS_REGISTERED = "fanfold_tasks_registered";
    /// Rows that producers read, those dropped included.
    ROWS_READ = "fanfold_rows_read";
    /// Rows that producers dropped, because they are in another share.
    ROWS_DROPPED = "fanfold_rows_dropped";
    /// Tries to read a page from a source that failed.
    SOURCE_TRIES_FAILED = "fanfold_source_tries_failed";
    /// Partitions of producers that failed.
    PARTITIONS_FAILED = "fanfold_partitions_failed";
    /// Tasks that are duplicates: another has their key.
    TASKS_DUPLICATE = "fanfold_tasks_duplicate";
    /// Tasks that became members of a formed batch.
    TASKS_BATCHED = "fanfold_tasks_batched";
    /// Batches formed.
    BATCHES_FORMED = "fanfold_batches_formed";
    /// Calls of batch APIs.
    CALLS = "fanfold_calls";
    /// Members that succeeded.
    MEMBERS_SUCCEEDED = "fanfold_members_succeeded";
    /// Members that failed for good.
    MEMBERS_FAILED = "fanfold_members_failed";
    /// Members that were not called, or not any more, because their fan-outs were cut short.
    MEMBERS_DROPPED = "fanfold_members_dropped";
    /// Attempts after which another one is due.
    RETRIES = "fanfold_retries";
    /// Calls that failed as a whole, after which their members were called in halves.
    CALLS_SPLIT = "fanfold_calls_split";
    /// Items whose bit was cleared.
    ITEMS_ACKED = "fanfold_items_acked";
    /// Items whose ack was refused: they do not exist, or not any more.
    ITEMS_REFUSED = "fanfold_items_refused";
    /// Notices delivered.
    NOTICES_DELIVERED = "fanfold_notices_delivered";
    /// Tries to deliver a notice that failed.
    NOTICE_TRIES_FAILED = "fanfold_notice_tries_failed";
    /// Notices given up.
    NOTICES_GIVEN_UP = "fanfold_notices_given_up";
    /// Calls whose answer says that the caller is wrong or must wait, and that used up no attempt.
    CALLS_REFUSED = "fanfold_calls_refused";
    /// Kinds that came to stand still.
    KINDS_STOPPED = "fanfold_kinds_stopped";
    /// Kinds that resume after they stood still.
    KINDS_RESUMED = "fanfold_kinds_resumed";
    /// Seconds from the registration of a task to the first call of its batch: a histogram, counted by member.
    REGISTERED_TO_CALLED = "fanfold_registered_to_called_seconds";
    /// Seconds that a call takes: a histogram, counted by member.
    CALLED_TO_ANSWERED = "fanfold_called_to_answered_seconds";
    /// Seconds from the beginning of a batch's latest call to its acks being applied: a histogram, counted by member.
    CALLED_TO_ACKED = "fanfold_called_to_acked_seconds";
    /// Seconds from the last outcome of a batch to its acks being applied: a histogram, counted by member.
    ANSWERED_TO_ACKED = "fanfold_answered_to_acked_seconds";
    /// Members of a formed batch: a histogram.
    BATCH_SIZE = "fanfold_batch_size";
    /// Conditional writes that were refused: another worker was first, or a step was repeated.
    CONFLICTS = "fanfold_conflicts";
    /// Fan-outs opened.
    FANOUTS_OPENED = "fanfold_fanouts_opened";
    /// Fan-outs that completed.
    FANOUTS_COMPLETED = "fanfold_fanouts_completed";
    /// Fan-outs that failed: more items failed than they tolerate.
    FANOUTS_FAILED = "fanfold_fanouts_failed";
    /// Fan-outs that were cancelled.
    FANOUTS_CANCELLED = "fanfold_fanouts_cancelled";
    /// Fan-outs that expired.
    FANOUTS_EXPIRED = "fanfold_fanouts_expired";
    /// Messages that `sweep` sent again, and other work that it finished for a worker that died.
    HEALED = "fanfold_healed";
    /// Sweeps that went through everything.
    SWEEPS = "fanfold_sweeps";
    /// Seconds for which the oldest task waits that is in no batch, paused lanes left out: a gauge that `sweep` sets.
    OLDEST_WAITING = "fanfold_oldest_waiting_seconds";
    /// Seconds for which the oldest batch waits that is not done, paused lanes left out: a gauge that `sweep` sets.
    OLDEST_BATCH = "fanfold_oldest_batch_seconds";
    /// What `sweep` found stale or in error, as `GET /health` lists it: a gauge that `sweep` sets.
    FINDINGS = "fanfold_findings";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_name_of_its_own_and_says_what_it_is() {
        let names: std::collections::BTreeSet<&str> = ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), ALL.len());
        for (name, says) in ALL {
            assert!(name.starts_with("fanfold_") && says.ends_with('.'), "{name}: {says}");
        }
        assert!(in_seconds(OLDEST_WAITING) && !in_seconds(BATCH_SIZE));
    }
}
