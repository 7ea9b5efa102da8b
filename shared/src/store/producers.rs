//! Producers: one record per partition, which shows how far it has come, and one per page whose source may answer otherwise later,
//! which keeps the page until it is registered; of a reissue also one with corrected contents, and one
//! with the keys by which rows are shared out among partitions, if policies say that.

mod corrected;
mod page;
mod partition;
mod shared_by;

use aws_sdk_dynamodb::types::TransactWriteItem;
use uuid::Uuid;

use crate::aws::attributes::{Reader, expiry, number, time};
use crate::aws::{Change, Extent, Segment, StoreError, Table, Write};
use crate::clock::Timestamp;
use crate::limits::{PAGE_RETENTION, PARTITION_RETENTION};

pub use self::corrected::CorrectedContents;
pub(crate) use self::page::compress;
pub use self::page::{KeptPage, Page, PageError, decompress};
pub use self::partition::{Partition, PartitionState};
use self::partition::{UNFINISHED, key};
pub use self::shared_by::KeysOfKinds;

/// The partitions and pages of producers.
#[derive(Clone, Debug)]
pub struct Producers {
    table: Table,
}

impl Producers {
    /// Those in `table`.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// One partition, strongly consistent.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self, fanout: Uuid, number: u32) -> Result<Option<Partition>, StoreError> {
        self.table.get("id", key(fanout, number), true).await?.as_ref().map(Partition::decode).transpose()
    }

    /// The partitions of a fan-out, strongly consistent and in their order.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn all(&self, fanout: Uuid, of: u32) -> Result<Vec<Partition>, StoreError> {
        self.get_many(&(0..of).map(|number| (fanout, number)).collect::<Vec<_>>()).await
    }

    /// Several partitions, strongly consistent and in their order; unknown ones are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, names: &[(Uuid, u32)]) -> Result<Vec<Partition>, StoreError> {
        let keys: Vec<String> = names.iter().map(|(fanout, number)| key(*fanout, *number)).collect();
        let found = self.table.get_many("id", &keys, &[], true).await?;
        let mut partitions = found.iter().map(Partition::decode).collect::<Result<Vec<_>, _>>()?;
        partitions.sort_by_key(|partition| (partition.fanout, partition.number));
        Ok(partitions)
    }

    /// The insertion of a new fan-out's partitions, for the transaction with its header.
    pub(crate) fn insert_actions(&self, fanout: Uuid, of: u32) -> Result<Vec<TransactWriteItem>, StoreError> {
        let now = self.table.world.now();
        let action =
            |number| self.table.insert_action("id", Partition::new(fanout, number, now).encode(self.table.retention));
        (0..of).map(action).collect()
    }

    /// The insertion of corrected contents for a new fan-out, for the transaction with its header.
    pub(crate) fn correct_action(
        &self,
        fanout: Uuid,
        contents: &CorrectedContents,
    ) -> Result<TransactWriteItem, StoreError> {
        self.table.insert_action("id", contents.encode(fanout, self.table.expires(PARTITION_RETENTION)))
    }

    /// The corrected contents that a fan-out was opened with.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn corrected(&self, fanout: Uuid) -> Result<Option<CorrectedContents>, StoreError> {
        let item = self.table.get("id", corrected::key(fanout), true).await?;
        item.as_ref().map(CorrectedContents::decode).transpose()
    }

    /// The page that a partition is at, if one was written down for it.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn page(&self, at: &Partition) -> Result<Option<KeptPage>, StoreError> {
        self.table.get("id", at.page_key(), true).await?.as_ref().map(KeptPage::decode).transpose()
    }

    /// Writes down the page that a partition is at. Of all who try, the first one counts: returns what stands.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn take(&self, at: &Partition, page: KeptPage) -> Result<KeptPage, StoreError> {
        let written = self.table.insert("id", page.encode(&at.page_key(), self.table.expires(PAGE_RETENTION))).await?;
        match written.decode_refused(KeptPage::decode)? {
            Write::Refused(Some(first)) => Ok(first),
            _ => Ok(page),
        }
    }

    /// Moves a partition on behind its page, once all tasks of the page are registered. Returns the partition as written.
    /// Refused: another worker did so, or the partition failed meanwhile.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn advance(
        &self,
        at: &Partition,
        page: &Page,
        duplicates: u64,
        worker: Uuid,
    ) -> Result<Write<Partition, Option<Partition>>, StoreError> {
        let after = at.behind(page, duplicates, worker, self.table.world.now());
        let written = write(self.change(at, &after), after.clone()).await?;
        Ok(written.or_mine(|stands| stands.page == after.page && stands.worker == Some(worker)))
    }

    /// Notes that its source failed, and when it is asked again; without a time the partition fails. Refused: another worker
    /// continued it, or it was resumed meanwhile.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn failed(
        &self,
        at: &Partition,
        error: &str,
        due: Option<Timestamp>,
    ) -> Result<Write<Partition, Option<Partition>>, StoreError> {
        let now = self.table.world.now();
        if due.is_none() {
            // It may wait for long until a user resumes it.
            let kept =
                self.table.change("id", at.page_key()).set("ttl", expiry(self.table.expires(PARTITION_RETENTION)));
            kept.when_present("id").send().await.map(drop)?;
        }
        let after = at.with_error(error, due, now);
        // One that was resumed since is at the same page, with as few failed tries.
        write(self.change(at, &after).when_is("updated_at", time(at.updated_at)), after).await
    }

    /// Resumes a partition that failed. Refused: it has not failed, or was resumed already.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn resume(&self, at: &Partition) -> Result<Write<Partition, Option<Partition>>, StoreError> {
        let after = at.resumed(self.table.world.now());
        write(self.change(at, &after), after).await
    }

    /// Takes a partition that is done, or has failed for good, out of the index: a sweep no longer looks at it.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn close(&self, at: &Partition) -> Result<(), StoreError> {
        let change = self.table.change("id", at.key()).remove([UNFINISHED]).when_present(UNFINISHED);
        change.when_is("state", crate::aws::attributes::text(at.state.as_str())).send().await.map(drop)
    }

    /// Notes that its message is sent again. False: another worker continued it meanwhile.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn note_woken(&self, at: &Partition) -> Result<bool, StoreError> {
        let change = self.table.change("id", at.key()).set("woken_at", time(self.table.world.now()));
        let change = change.when_is("updated_at", time(at.updated_at)).when_present(UNFINISHED);
        Ok(change.when_same("woken_at", at.woken_at.map(time)).send().await?.is_done())
    }

    /// How many partitions a sweep looks at. The index may lag.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn unfinished_extent(&self) -> Result<Extent, StoreError> {
        self.table.extent(UNFINISHED).await
    }

    /// The partitions of a segment that a sweep looks at, by fan-out and number. The index may lag.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn unfinished(&self, segment: Segment) -> Result<Vec<(Uuid, u32)>, StoreError> {
        let mut names = Vec::new();
        let visit = |item| {
            let reader = Reader::new("producers", "id", &item);
            let name = Partition::name(reader.text("id")?);
            names.push(name.ok_or_else(|| reader.corrupt("id", "names no partition"))?);
            Ok(())
        };
        self.table.scan(Some(UNFINISHED), segment, visit).await?;
        Ok(names)
    }

    /// A change of a partition, on condition that its page, state and failed tries are unchanged.
    fn change(&self, at: &Partition, after: &Partition) -> Change<'_> {
        let change = self
            .table
            .change("id", at.key())
            .differences(&at.encode(self.table.retention), &after.encode(self.table.retention));
        let change = change.when_is("page", number(at.page)).when_is("tries", number(at.tries));
        change.when_is("state", crate::aws::attributes::text(at.state.as_str()))
    }
}

/// Sends the change that makes a partition this one. Returns it.
async fn write(change: Change<'_>, after: Partition) -> Result<Write<Partition, Option<Partition>>, StoreError> {
    Ok(change.send().await?.decode_refused(Partition::decode)?.map(|()| after))
}
