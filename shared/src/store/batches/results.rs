//! The results of a batch's members, in records of their own beside the batch's. They are written before the batch names them, and
//! are of no account until then.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use futures::{StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::{Batch, Batches};
use crate::aws::StoreError;
use crate::aws::attributes::{Reader, binary, expiry};
use crate::limits::{BUNDLED_RETENTION, RESULT_RECORDS_AT_ONCE, RESULT_RECORDS_PER_READ};
use crate::results::{Kept, RecordName, ResultRecord, ResultsError, unpack};

/// The name of the attribute with the packed results.
const RESULTS: &str = "results";

/// What is said of a member whose result may not have been kept.
const LIST_FULL: &str =
    "the batch was called in so many parts that no more results were kept: set a smaller `max_batch`";

/// The key of a record of results.
fn key(batch: Uuid, name: RecordName) -> String {
    format!("{batch}:{}:{}", name.attempt, name.first)
}

impl Batches {
    /// Writes records of results, some at once: the attempt's lease runs. Writing one again changes nothing.
    pub(super) async fn write_results(&self, batch: Uuid, records: &[ResultRecord]) -> Result<(), StoreError> {
        let write = async |record: &ResultRecord| {
            let packed = record.pack();
            let change = self.table.change("id", key(batch, record.name)).set(RESULTS, binary(&packed));
            change.set("ttl", self.results_expire()).send().await.map(drop)
        };
        let writes: Vec<_> = records.iter().map(write).collect();
        stream::iter(writes).buffer_unordered(RESULT_RECORDS_AT_ONCE).try_collect().await
    }

    /// When results that are written or kept now expire: later than the batch's record, or a sweep keeps them for longer.
    fn results_expire(&self) -> AttributeValue {
        expiry(self.table.expires(BUNDLED_RETENTION))
    }

    /// Keeps the results of a batch that is not done for longer. One write per record.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn keep_results(&self, batch: &Batch) -> Result<(), StoreError> {
        for name in batch.results.records() {
            let change = self.table.change("id", key(batch.id, name)).set("ttl", self.results_expire());
            change.when_present("id").send().await.map(drop)?;
        }
        Ok(())
    }

    /// Reads the results of some slots of a batch.
    #[must_use]
    pub fn results<'a>(&'a self, batch: &'a Batch, slots: impl IntoIterator<Item = usize>) -> ResultReader<'a> {
        let slots = slots.into_iter().collect();
        ResultReader { batches: self, batch, slots, read: BTreeSet::new(), found: HashMap::new() }
    }

    async fn read_results(&self, batch: Uuid, names: &[RecordName]) -> Result<Vec<(u16, Kept)>, StoreError> {
        let keys: Vec<String> = names.iter().map(|name| key(batch, *name)).collect();
        let mut results = Vec::new();
        for item in self.table.get_many("id", &keys, &[], true).await? {
            let reader = Reader::new("batches", "id", &item);
            let corrupt = |error: ResultsError| reader.corrupt(RESULTS, error);
            results.extend(unpack(reader.bytes(RESULTS)?).map_err(corrupt)?);
        }
        Ok(results)
    }
}

/// Reads the results of slots of a batch as they are asked for, in order: some records at once, and no others than these slots need.
#[derive(Debug)]
pub struct ResultReader<'a> {
    batches: &'a Batches,
    batch: &'a Batch,
    slots: BTreeSet<usize>,
    read: BTreeSet<RecordName>,
    found: HashMap<usize, Kept>,
}

impl<'a> ResultReader<'a> {
    /// The batch.
    #[must_use]
    pub fn batch(&self) -> &'a Batch {
        self.batch
    }

    /// The result of one of the slots. Without a recorded success there is none, whatever was written.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn of(&mut self, slot: usize) -> Result<Option<Kept>, StoreError> {
        if !self.batch.succeeded.get(slot) {
            return Ok(None);
        }
        let needed: Vec<RecordName> =
            self.batch.results.records_of(slot).filter(|name| !self.read.contains(name)).collect();
        if !needed.is_empty() {
            self.read(needed, slot).await?;
        }
        let full = || self.batch.results.is_full().then(|| Kept::LeftOut(LIST_FULL.to_owned()));
        Ok(self.found.remove(&slot).or_else(full))
    }

    /// Reads records, and as many of those that the next slots need as one request may bring.
    async fn read(&mut self, needed: Vec<RecordName>, slot: usize) -> Result<(), StoreError> {
        let mut names = needed;
        for later in self.slots.range(slot + 1..) {
            if names.len() >= RESULT_RECORDS_PER_READ {
                break;
            }
            let records = self.batch.results.records_of(*later);
            let new: Vec<_> = records.filter(|name| !self.read.contains(name) && !names.contains(name)).collect();
            names.extend(new);
        }
        for names in names.chunks(RESULT_RECORDS_PER_READ) {
            let results = self.batches.read_results(self.batch.id, names).await?;
            let found = results.into_iter().map(|(slot, kept)| (usize::from(slot), kept));
            self.found.extend(found.filter(|(slot, _)| self.slots.contains(slot)));
        }
        self.read.extend(names);
        Ok(())
    }
}
