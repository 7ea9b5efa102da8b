//! Reading a page: asks the source, takes the rows of this partition, and stores them.

use fanfold::limits::BAD_ROW_BYTES_MAX;
use fanfold::producing::{Producer, Sieve, Sifted};
use fanfold::store::producers::{Page, Partition};
use fanfold::text::shorten;
use serde_json::Value;

use crate::{Answer, Ask, Produce, ProduceError, SourceError};

impl Produce {
    /// The page that a partition is at. `known`: it may be stored already.
    pub(crate) async fn page(&self, producer: &Producer, at: &Partition, known: bool) -> Result<Page, ProduceError> {
        if known && let Some(page) = self.producing.producers.page(at).await? {
            return Ok(page);
        }
        let page = self.read(producer, at).await?;
        Ok(self.producing.producers.take(at, page).await?)
    }

    async fn read(&self, producer: &Producer, at: &Partition) -> Result<Page, ProduceError> {
        let cursor = match &at.cursor {
            Some(cursor) => serde_json::from_str(cursor).map_err(SourceError::for_good)?,
            None => Value::Null,
        };
        let ask = Ask { fanout: at.fanout, partition: at.number, of: producer.partitions, cursor };
        let Answer { rows: given, cursor } = self.sources.ask(&producer.source, &ask, self.world.now()).await?;
        let policies = self.registrar.policies(&given.iter().filter_map(Sieve::kind).collect()).await?;
        let sieve = Sieve::new(producer, at.number, at.rows).map_err(SourceError::for_good)?;
        let sifted = sieve.sift(given, |kind| policies.get(kind).and_then(Option::as_deref));
        let (bad, rows) = (at.bad + sifted.bad, at.rows + sifted.rows);
        if producer.too_many_bad(bad, rows, cursor.is_none()) {
            return Err(SourceError::for_good(too_many(&sifted, bad, rows)).into());
        }
        Page::new(sifted, cursor.as_ref()).map_err(|error| SourceError::for_good(error).into())
    }
}

/// Describes the rows that are too many.
fn too_many(sifted: &Sifted, bad: u64, rows: u64) -> String {
    let named: Vec<String> =
        sifted.bad_rows.iter().take(3).map(|bad| format!("row {}: {}", bad.row, bad.problem)).collect();
    let named = shorten(&named.join("; "), BAD_ROW_BYTES_MAX).into_owned();
    format!("{bad} of {rows} rows are no tasks, more than `tolerated_bad_rows` allows: {named}")
}
