//! How notices are delivered: one chain of tries per notice, kept in the record that the notice is about. A worker takes the
//! try by a conditional write before it delivers; so a hundred copies of a message make one call.

mod record;

use uuid::Uuid;

use super::fanouts::ENDING;
use super::shards::shard;
use crate::aws::attributes::{Reader, binary, number, text, time};
use crate::aws::{Change, StoreError, Table};
use crate::clock::Timestamp;
use crate::limits::NOTICE_LEASE;

#[cfg(test)]
pub(super) use self::record::any_notice;
pub use self::record::{Next, NoticeProgress};

/// Attributes to remove when a record is to report another change: the state of the notice of the change before.
pub(super) const ANEW: [&str; 8] = [
    "notice_tries",
    "notice_lease",
    "notice_worker",
    "notice_since",
    "notice_parts",
    "notice_error",
    "notified",
    "undeliverable",
];

/// The same where the next change waits for a try that runs, so that changes are reported in their order.
pub(super) const ANOTHER: [&str; 6] =
    ["notice_tries", "notice_since", "notice_parts", "notice_error", "notified", "undeliverable"];

/// The notices about the records of one table.
#[derive(Clone, Debug)]
pub struct Notices {
    table: Table,
    /// The attribute that is the records' key.
    key: &'static str,
    /// Whether the table has an index of what is to be delivered.
    indexed: bool,
}

/// A try that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeTry {
    /// The record.
    pub key: String,
    /// Which change of it is reported.
    pub change: Option<u64>,
    /// Which try of its notice this is, from 1.
    pub tries: u32,
    /// When the first one began.
    pub since: Timestamp,
    /// When this one began.
    pub began: Timestamp,
    worker: Uuid,
}

impl Notices {
    pub(super) fn new(table: Table, key: &'static str, indexed: bool) -> Self {
        Self { table, key, indexed }
    }

    /// The same, but a delivered record stays in the index: other work is left for it.
    #[must_use]
    pub fn unindexed(self) -> Self {
        Self { indexed: false, ..self }
    }

    /// A write of the record, on condition that it still reports `change`.
    fn change(&self, key: &str, change: Option<u64>) -> Change<'_> {
        let update = self.table.change(self.key, key).when_present(self.key);
        match change {
            None => update,
            Some(change) => update.when_is("changes", number(change)),
        }
    }

    /// The same, on condition that the notice is neither delivered nor given up.
    fn change_open(&self, key: &str, change: Option<u64>) -> Change<'_> {
        self.change(key, change).when_absent("notified").when_absent("undeliverable")
    }

    /// A write that ends a try, on condition that it is still the one that runs, and that the notice was not delivered meanwhile.
    fn end_try(&self, running: &NoticeTry, parts: u32, error: Option<&str>) -> Change<'_> {
        self.change(&running.key, running.change)
            .when_absent("notified")
            .when_is("notice_worker", binary(running.worker.as_bytes()))
            .set("notice_parts", number(parts))
            .set_some("notice_error", error.map(text))
            .remove(["notice_lease", "notice_worker"])
    }

    /// The attribute by which the index shows what is to be delivered, if there is one.
    fn index(&self) -> Option<&'static str> {
        self.indexed.then_some(ENDING)
    }

    /// Takes the next try, if the notice is still as in `before`, the try is due, and none runs. None: another
    /// worker took it, or it is not free.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn begin(&self, key: &str, before: &NoticeProgress) -> Result<Option<NoticeTry>, StoreError> {
        let (now, worker) = (self.table.world.now(), self.table.world.uuid());
        let tries = before.tries.saturating_add(1);
        let begun = self
            .change_open(key, before.change)
            .when_same("notice_due", before.due.map(time))
            .when("attribute_not_exists(notice_due) OR notice_due <= :now", [(":now", time(now))])
            .when("attribute_not_exists(notice_lease) OR notice_lease <= :now", [])
            .set("notice_tries", number(tries))
            .set("notice_lease", time(now.plus(NOTICE_LEASE)))
            .set("notice_worker", binary(worker.as_bytes()))
            .set_first("notice_since", time(now))
            .send()
            .await?;
        // If the answer to this write was lost, its repetition comes back as a failed condition.
        let mine = begun.counts(|item| {
            Reader::new("notices", self.key, item).bytes("notice_worker").is_ok_and(|by| by == worker.as_bytes())
        });
        Ok(mine.then(|| NoticeTry {
            key: key.to_owned(),
            change: before.change,
            tries,
            since: before.since.unwrap_or(now),
            began: now,
            worker,
        }))
    }

    /// The try failed, or delivered only some parts; the next one is due at `due`. False: a later try overtook this one, so
    /// nothing was written.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn again(
        &self,
        running: &NoticeTry,
        due: Timestamp,
        parts: u32,
        error: Option<&str>,
    ) -> Result<bool, StoreError> {
        let change = self.end_try(running, parts, error).set("notice_due", time(due));
        self.counts(running, change, |stands| stands.tries == running.tries && stands.due == Some(due)).await
    }

    /// The last try failed: no further one follows by itself. False: a later try overtook this one.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn give_up(&self, running: &NoticeTry, parts: u32, error: &str) -> Result<bool, StoreError> {
        let change = self.end_try(running, parts, Some(error)).set("undeliverable", time(self.table.world.now()));
        let change = change.remove(self.index());
        self.counts(running, change, |stands| stands.tries == running.tries && stands.given_up.is_some()).await
    }

    /// Whether a write of a try counts: it was applied, now or before (then its answer was lost, and `done` recognizes it).
    async fn counts(
        &self,
        running: &NoticeTry,
        change: Change<'_>,
        done: impl FnOnce(&NoticeProgress) -> bool,
    ) -> Result<bool, StoreError> {
        let decode = |item: &_| NoticeProgress::decode(&Reader::new("notices", self.key, item));
        let written = change.send().await?.decode_refused(decode)?;
        Ok(written.counts(|stands| stands.change == running.change && stands.lease_until.is_none() && done(stands)))
    }

    /// Marks the notice as delivered, even if another try has begun since. False: the record reports another change by now.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn delivered(&self, running: &NoticeTry) -> Result<bool, StoreError> {
        let change = self
            .change(&running.key, running.change)
            .when_absent("notified")
            .set("notified", time(self.table.world.now()))
            .remove(["notice_due", "notice_lease", "notice_worker", "notice_error", "undeliverable"])
            .remove(self.index());
        self.counts(running, change, |stands| stands.delivered.is_some()).await
    }

    /// The try is over, and another change followed its own meanwhile: the notice of that change need not wait for the try any
    /// longer. Returns how far that notice is. None: it does not wait for this try.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn leave(&self, running: &NoticeTry) -> Result<Option<NoticeProgress>, StoreError> {
        let change = self.table.change(self.key, &running.key).remove(["notice_lease", "notice_worker"]);
        let change = change.when_is("notice_worker", binary(running.worker.as_bytes()));
        let left = change.send_for_new().await?;
        let decode = |item: &_| NoticeProgress::decode(&Reader::new("notices", self.key, item));
        Ok(left.decode(decode)?.done())
    }

    /// Takes the message of a try that is long due for lost, and names another, which is due now. None: another worker
    /// continued the notice.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn note_woken(&self, key: &str, before: &NoticeProgress) -> Result<Option<Timestamp>, StoreError> {
        let now = self.table.world.now();
        let change = self
            .change_open(key, before.change)
            .when_same("notice_due", before.due.map(time))
            .when_same("notice_lease", before.lease_until.map(time))
            .set("notice_due", time(now))
            .remove(["notice_lease", "notice_worker"]);
        Ok(change.send().await?.is_done().then_some(now))
    }

    /// A user asks for a notice that was given up to be tried anew. Returns when the next try is due. None: it was not given
    /// up, or is no longer.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn revive(&self, key: &str, change: Option<u64>) -> Result<Option<Timestamp>, StoreError> {
        let now = self.table.world.now();
        let mut revived = self
            .change(key, change)
            .when_present("undeliverable")
            .when_absent("notified")
            .set("notice_due", time(now))
            .set("notice_since", time(now))
            .remove(["undeliverable"]);
        if let Some(index) = self.index() {
            revived = revived.set(index, shard(key));
        }
        Ok(revived.send().await?.is_done().then_some(now))
    }
}
