//! What the latest sweep found stale or in error: one record beside the locks, written with each sweep, so that it takes one
//! read to say how a whole stack does. Nothing depends on it: of two sweeps at once, the later write stands.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::places::ID;
use crate::aws::attributes::{Reader, json, text, time};
use crate::aws::{StoreError, Table};
use crate::clock::Timestamp;
use crate::limits::{ERROR_BYTES_MAX, FINDING_NAME_BYTES, FINDINGS_NAMED};
use crate::text::shorten;

/// The key of the record. No lane has it, since a kind has no `/`.
pub(crate) const KEY: &str = "sweep/findings";

/// What a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "SweptSort"))]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Tasks wait in a lane for far longer than its linger.
    TasksWait,
    /// Tasks wait whose kind has no policy.
    NoPolicy,
    /// A kind's batches were called again and again, and members still have no outcome.
    CallsFail,
    /// A partition of a fan-out's producer failed, and is not resumed.
    ProducerFailed,
    /// A batch has members without an outcome for long.
    BatchUnfinished,
    /// All items of a sealed fan-out are done, or it is cut short, and it has not ended for long.
    FanoutUnfinished,
    /// A notice is not delivered for long.
    NoticeUndelivered,
}

/// Findings of one sort.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// How many there are.
    pub count: u64,
    /// The oldest of them, oldest first.
    pub oldest: Vec<Named>,
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// A lane, a kind, or the id of a batch or fan-out.
    pub name: String,
    /// Since when, in milliseconds since 1970.
    pub since: u64,
    /// What the batch API or the receiver said last, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What a sweep finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(pub BTreeMap<What, Found>);

impl Findings {
    /// Adds a finding about `name` that has stood since `since`. `error`: what the batch API or the receiver said last.
    pub fn add(&mut self, what: What, since: Timestamp, name: &str, error: Option<&str>) {
        let found = self.0.entry(what).or_default();
        found.count += 1;
        let at = found.oldest.partition_point(|other| other.since <= since.0);
        if at < FINDINGS_NAMED {
            let short = |text| shorten(text, FINDING_NAME_BYTES).into_owned();
            found.oldest.insert(at, Named { name: short(name), since: since.0, error: error.map(short) });
            found.oldest.truncate(FINDINGS_NAMED);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().map(|found| found.count).sum()
    }
}

/// What the record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatestSweep {
    /// When the latest sweep ended that went through everything, if there was one.
    pub swept_at: Option<Timestamp>,
    /// What that one found.
    pub findings: Findings,
    /// If sweeps have broken off since then: since when, and why the latest one did.
    pub failing: Option<(Timestamp, String)>,
}

/// The record of the latest sweep, in its table.
#[derive(Clone, Debug)]
pub struct SweepRecord(Table);

impl SweepRecord {
    /// The record in `table`, which is that of the locks.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self(table)
    }

    /// The latest sweep. One that was not recorded has no time.
    ///
    /// # Errors
    /// The table cannot be read, or the record is corrupt.
    pub async fn get(&self) -> Result<LatestSweep, StoreError> {
        let items = self.0.get_many(ID, &[KEY.to_owned()], &[], false).await?;
        let Some(item) = items.first() else { return Ok(LatestSweep::default()) };
        let reader = Reader::new("locks", ID, item);
        let error = reader.optional_text("error")?.unwrap_or_default();
        let findings = reader.optional_json("findings").unwrap_or_else(|error| {
            // Another version wrote it, during an upgrade. The next sweep writes it again.
            tracing::warn!(%error, "what the latest sweep found cannot be read");
            None
        });
        Ok(LatestSweep {
            swept_at: reader.time("swept_at")?,
            findings: Findings(findings.unwrap_or_default()),
            failing: reader.time("failing_since")?.map(|since| (since, error.to_owned())),
        })
    }

    /// Writes what a sweep found that went through everything.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn put(&self, findings: &Findings) -> Result<(), StoreError> {
        let change = self.0.change(ID, KEY).set("swept_at", time(self.0.world.now()));
        let change = change.set("findings", json(&findings.0)).remove(["failing_since", "error"]);
        change.send().await.map(drop)
    }

    /// Writes why a sweep broke off.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn put_failure(&self, error: &str) -> Result<(), StoreError> {
        let change = self.0.change(ID, KEY).set_first("failing_since", time(self.0.world.now()));
        change.set("error", text(shorten(error, ERROR_BYTES_MAX))).send().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_named_and_all_are_counted() {
        let mut findings = Findings::default();
        for since in (0..30).rev() {
            findings.add(What::TasksWait, Timestamp(since), &format!("parcel:0:{since}"), None);
        }
        findings.add(What::NoPolicy, Timestamp(7), &"x".repeat(1_000), Some(&"y".repeat(1_000)));
        assert_eq!(findings.count(), 31);
        let found = &findings.0[&What::TasksWait];
        let sinces: Vec<u64> = found.oldest.iter().map(|named| named.since).collect();
        assert_eq!((found.count, sinces), (30, (0..10).collect()));
        assert_eq!(found.oldest[3], Named { name: "parcel:0:3".to_owned(), since: 3, error: None });
        let long = &findings.0[&What::NoPolicy].oldest[0];
        let texts = [Some(&long.name), long.error.as_ref()];
        assert!(texts.iter().flatten().all(|text| text.len() <= FINDING_NAME_BYTES), "{long:?}");
    }
}
