//! Batches: who is in them and what became of each.

mod attempts;
mod cursor;
mod later;
mod lost;
mod record;
mod results;
mod settlement;
mod slots;
mod status;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::notices::Notices;
use super::tasks::Task;
use crate::aws::attributes::{Reader, text, time};
use crate::aws::{StoreError, Table};
use crate::lane::Lane;
use crate::masks::Masks;
use crate::members::Members;
use crate::policy::Weight;

pub use self::cursor::RecordCursor;
pub use self::later::{Later, Poll, TokenSecret};
pub use self::record::Batch;
pub use self::results::ResultReader;
pub use self::settlement::Settlement;
pub use self::slots::MemberState;
pub use self::status::BatchStatus;

/// The batches.
#[derive(Clone, Debug)]
pub struct Batches {
    table: Table,
}

impl Batches {
    /// The batches in `table`.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { table }
    }

    /// The notices of their failures.
    #[must_use]
    pub fn notices(&self) -> Notices {
        Notices::new(self.table.clone(), "id", false)
    }

    /// One batch, strongly consistent.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self, id: Uuid) -> Result<Option<Batch>, StoreError> {
        self.table.get("id", id.to_string(), true).await?.as_ref().map(Batch::decode).transpose()
    }

    /// Several batches, strongly consistent; unknown ones are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn get_many(&self, ids: &[Uuid]) -> Result<Vec<Batch>, StoreError> {
        let keys: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.table.get_many("id", &keys, &[], true).await?.iter().map(Batch::decode).collect()
    }

    /// The batches that claimed tasks, strongly consistent, by their ids; unknown ones are left out.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn of_tasks<'a>(
        &self,
        tasks: impl IntoIterator<Item = &'a Task>,
    ) -> Result<BTreeMap<Uuid, Batch>, StoreError> {
        let ids: BTreeSet<Uuid> = tasks.into_iter().filter_map(|task| task.batch).collect();
        let batches = self.get_many(&ids.into_iter().collect::<Vec<_>>()).await?;
        Ok(batches.into_iter().map(|batch| (batch.id, batch)).collect())
    }

    /// A page of the batches with failed members, in no order, behind a record: those among so many records, which are batches and
    /// results. Also where the next page begins, if there is one. It reads the table, since no index has them.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn failed(
        &self,
        after: Option<&RecordCursor>,
        records: usize,
    ) -> Result<(Vec<Batch>, Option<RecordCursor>), StoreError> {
        let start = after.map(|after| [("id".to_owned(), text(after))].into());
        let (items, next) = self.table.scan_with("failed", records, start).await?;
        let batches = items.iter().map(Batch::decode).collect::<Result<_, _>>()?;
        let next = next.map(|key| Reader::new("batches", "id", &key).parsed("id"));
        Ok((batches, next.transpose()?))
    }

    /// Writes down which members a batch is going to claim, and their weights together; `bundles`: those of bundles, by slots.
    /// Without members the batch is done at once, so that no leader forms it later. Returns the batch as it stands: an earlier
    /// delivery may have written another intent, which then counts.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn intend(
        &self,
        id: Uuid,
        lane: &Lane,
        members: &Members,
        bundles: &Masks,
        weight: Weight,
    ) -> Result<Batch, StoreError> {
        let batch = Batch::intended(id, lane.clone(), members.clone(), self.table.world.now());
        let batch = Batch { bundles: bundles.clone(), weight, ..batch };
        let written =
            self.table.insert("id", batch.encode(self.table.retention)).await?.decode_refused(Batch::decode)?;
        written.map(|()| batch).stands().ok_or_else(|| StoreError::Contended { what: format!("forming batch {id}") })
    }

    /// Fixes the members to those that were claimed. Returns the batch as it stands: an earlier delivery may have done it.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn form(&self, batch: &Batch, claimed: Members) -> Result<Batch, StoreError> {
        let status = if claimed.is_empty() { BatchStatus::Done } else { BatchStatus::Formed };
        let updated_at = self.table.world.now();
        let after = Batch { status, members: claimed, bundles: Masks::default(), updated_at, ..batch.clone() };
        let change = self
            .table
            .change("id", batch.id)
            .differences(&batch.encode(self.table.retention), &after.encode(self.table.retention));
        let change = change.when_is("status", text(BatchStatus::Grouping.as_str()));
        let written = change.send().await?.decode_refused(Batch::decode)?;
        let gone = || StoreError::Contended { what: format!("forming batch {}", batch.id) };
        written.map(|()| after).stands().ok_or_else(gone)
    }

    /// Notes that the batch's message is sent again, before it is sent: one of several senders wins.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn note_woken(&self, batch: &Batch) -> Result<bool, StoreError> {
        let now = self.table.world.now();
        let change = self.table.change("id", batch.id).set("woken_at", time(now)).when_present("id");
        Ok(change.when_same("woken_at", batch.woken_at.map(time)).send().await?.is_done())
    }

    /// Notes that a pause holds a batch, or that its kind has no policy. Of several workers, one does.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn note_held(&self, batch: &Batch) -> Result<(), StoreError> {
        let now = self.table.world.now();
        let change = self.table.change("id", batch.id).set("held_at", time(now)).when_present("id");
        change.when_same("held_at", batch.held_at.map(time)).send().await.map(|_| ())
    }

    /// Notes that a batch's tasks were kept for longer. Of several workers, one does.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn note_kept(&self, batch: &Batch) -> Result<(), StoreError> {
        let now = self.table.world.now();
        let change = self.table.change("id", batch.id).set("kept_at", time(now)).when_present("id");
        change.when_same("kept_at", batch.kept_at.map(time)).send().await.map(|_| ())
    }
}
