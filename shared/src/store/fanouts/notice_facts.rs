//! How a fan-out's progress is reported: the header notes the percentage of its items that was found done, and the chain of tries that
//! later delivers the notice of its end delivers a notice of that. Each change ends the chain of the change before.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};

use super::idle::IDLE;
use super::percentage::ALL;
use super::{Fanout, FanoutState, Fanouts, Missing, NotifyOn, ProgressPercentage, ReportedEnd};
use crate::aws::attributes::{Reader, flag, json, number, text, time};
use crate::aws::{Change, StoreError, Write};
use crate::clock::Timestamp;
use crate::store::notices::{ANOTHER, NoticeProgress};
use crate::tracking::Progress;

/// What the notices of a fan-out are made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeFacts {
    /// Which of its ends and percentages are reported.
    pub on: NotifyOn,
    /// How far it had come when it reached the percentage that is reported now, or was last.
    pub reached: Option<Reached>,
    /// Which items are missing, once they were looked up for the notice of its end.
    pub missing: Option<Missing>,
}

/// How far a fan-out had come when it was found to have reached a percentage of its items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The percentage.
    pub percentage: ProgressPercentage,
    /// When, epoch milliseconds.
    pub at: u64,
    /// Items that were done: of a large fan-out, those of the groups that had ended.
    pub done: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Those of them that are duplicates.
    pub duplicates: u64,
}

/// What a fan-out's notice reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report<'a> {
    /// A percentage of its items is done.
    Progress(&'a Reached),
    /// It ended.
    End(ReportedEnd),
}

/// The change that a notice of an end reports: all of the items, after every percentage of them.
const END: u64 = ALL as u64;

const ON: &str = "notify_on";
const REACHED: &str = "reached";
const MISSING: &str = "named_missing";

impl NoticeFacts {
    pub(super) fn encode(&self) -> [(&'static str, Option<AttributeValue>); 3] {
        let on = (self.on != NotifyOn::default()).then_some(&self.on);
        [(ON, on.map(json)), (REACHED, self.reached.as_ref().map(json)), (MISSING, self.missing.as_ref().map(json))]
    }

    pub(super) fn decode(reader: &Reader<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            on: reader.optional_json(ON)?.unwrap_or_default(),
            reached: reader.optional_json(REACHED)?,
            missing: reader.optional_json(MISSING)?,
        })
    }
}

impl Fanout {
    /// The percentages at which its progress is reported; none if no destination is given.
    fn percentages(&self) -> Option<&BTreeSet<ProgressPercentage>> {
        self.notify.as_ref()?;
        Some(&self.notice_facts.on.progress).filter(|percentages| !percentages.is_empty())
    }

    /// Whether its progress is reported.
    #[must_use]
    pub(crate) fn reports_progress(&self) -> bool {
        self.percentages().is_some()
    }

    /// The progress to report now, as far as its header knows: the largest percentage that it reached since it was sealed, unless
    /// that was noted before. Once every item is done, only its end is reported.
    #[must_use]
    pub fn reaches(&self, now: Timestamp) -> Option<Reached> {
        let percentages = self.percentages().filter(|_| self.state == FanoutState::Sealed)?;
        let Progress { done, failed, duplicates, .. } = Progress::of_header(self);
        let percentage =
            percentages.iter().rev().find(|percentage| percentage.is_reached(done, self.total) && done < self.total)?;
        let reached = Reached { percentage: *percentage, at: now.0, done, failed, duplicates };
        (Some(change(*percentage)) > self.notice.change).then_some(reached)
    }

    /// What its notice reports now, delivered or not: its end, once it has ended; before the end is decided, the percentage of its
    /// items that it reached last.
    #[must_use]
    pub fn report(&self) -> Option<Report<'_>> {
        match (self.state, &self.notice_facts.reached) {
            (FanoutState::Sealed, Some(reached)) => Some(Report::Progress(reached)),
            _ => self.reported_as().map(Report::End),
        }
    }

    /// The same, as long as the notice is neither delivered nor given up.
    #[must_use]
    pub fn undelivered(&self) -> Option<Report<'_>> {
        self.report().filter(|_| !self.notice.over())
    }

    /// Whether its end is still to be reported.
    #[must_use]
    pub fn to_notify(&self) -> bool {
        matches!(self.undelivered(), Some(Report::End(_)))
    }

    /// When the event happened that is still to be reported.
    #[must_use]
    pub fn undelivered_since(&self) -> Option<Timestamp> {
        Some(match self.undelivered()? {
            Report::Progress(reached) => Timestamp(reached.at),
            Report::End(_) => self.updated_at,
        })
    }

    /// The fan-out with its next notice: of the percentage that it reached, or, once its end is decided, of the end. That ends
    /// the notice before.
    pub(super) fn with_notice(self, now: Timestamp) -> Self {
        if self.state.decided() && self.reports_progress() && self.notice.change != Some(END) {
            return Self { notice: NoticeProgress { change: Some(END), ..NoticeProgress::default() }, ..self };
        }
        let Some(reached) = self.reaches(now) else { return self };
        let notice =
            NoticeProgress { change: Some(change(reached.percentage)), due: Some(now), ..NoticeProgress::default() };
        Self { notice_facts: NoticeFacts { reached: Some(reached), ..self.notice_facts }, notice, ..self }
    }
}

/// The change that the notice of a percentage reports.
fn change(percentage: ProgressPercentage) -> u64 {
    percentage.ten_thousandths().into()
}

impl Fanouts {
    /// The write that turns the header `old` into `after`. Of the notice it sets which change is reported, but not how far it
    /// came: tries write that. A try that runs continues, and the next notice waits for it, so that notices come in order. A
    /// fan-out whose end is decided leaves the index of those that are watched, even if a sweep put it there since `old` was
    /// read.
    pub(super) fn becomes(&self, old: &Fanout, after: &Fanout) -> Change<'_> {
        let mut before = old.encode_header(self.table.retention);
        if after.look_at.is_none() {
            before.entry(IDLE.to_owned()).or_insert_with(flag);
        }
        let change = self.table.change("id", old.id).differences(&before, &after.encode_header(self.table.retention));
        match after.notice.change {
            Some(another) if old.notice.change != Some(another) => {
                change.set("changes", number(another)).remove(ANOTHER).put([("notice_due", after.notice.due.map(time))])
            }
            _ => change,
        }
    }

    /// Notes that a percentage of the items is done, for its notice. Returns the fan-out as written. Refused: another worker noted
    /// another percentage, or its end is decided.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub(crate) async fn reach(&self, old: &Fanout) -> Result<Write<Fanout, Option<Fanout>>, StoreError> {
        let after = old.clone().with_notice(self.table.world.now());
        let change = self.becomes(old, &after).when_is("state", text(FanoutState::Sealed.as_str()));
        let change = change.when_same("changes", old.notice.change.map(number));
        Ok(change.send().await?.decode_refused(Fanout::decode)?.map(|()| after))
    }

    /// Writes down which items of a fan-out that ended are missing, unless they are written already: every delivery reports what
    /// is written. None: the fan-out is gone.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub(crate) async fn name_missing(&self, fanout: Fanout, missing: Missing) -> Result<Option<Fanout>, StoreError> {
        let change = self.table.change("id", fanout.id).set(MISSING, json(&missing));
        let written = change.when_present("id").when_absent(MISSING).send().await?.decode_refused(Fanout::decode)?;
        let notice_facts = NoticeFacts { missing: Some(missing), ..fanout.notice_facts.clone() };
        Ok(written.map(|()| Fanout { notice_facts, ..fanout }).stands())
    }
}

#[cfg(test)]
pub(super) fn any_notice_facts(at: Timestamp, done: u64) -> NoticeFacts {
    let percentages = ProgressPercentage::new(2_500);
    let reached = percentages.map(|percentage| Reached { percentage, at: at.0, done, failed: 1, duplicates: 2 });
    let on = NotifyOn { ends: Some([ReportedEnd::Failed].into()), progress: percentages.into_iter().collect() };
    let mut missing = Missing::default();
    missing.add(uuid::Uuid::from_u128(done.into()), vec![(1, 7)]);
    NoticeFacts { on, reached, missing: Some(missing) }
}
