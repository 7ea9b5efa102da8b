//! A kind's gate, and how it is stored.

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use crate::aws::attributes::{Reader, count, text, time};
use crate::aws::{Item, StoreError};
use crate::clock::Timestamp;
use crate::ids::derived;
use crate::limits::{KIND_NOTICES, REFUSALS_MIN, REFUSED_TARGETS_MIN};
use crate::pacing::Bucket;
use crate::store::notices::NoticeProgress;
use crate::store::pace;
use crate::store::places::{self, Holders, ID, KIND, STOPPED_AT};

/// The version of the policy to whose calls the refusals were answered.
pub(super) const VERSION: &str = "version";
pub(super) const REFUSALS: &str = "refusals";
pub(super) const TARGETS: &str = "targets";

const STOP_ANSWER: &str = "stop_answer";
pub(super) const ANSWER: &str = "answer";
pub(super) const PROBE_AT: &str = "probe_at";
pub(super) const PROBES: &str = "probes";
pub(super) const PROBING: &str = "probing";

pub(super) const RESUMED_AT: &str = "resumed_at";
pub(super) const STOOD_SINCE: &str = "stood_since";
pub(super) const NOTICE_AT: &str = "notice_at";

/// A kind's gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gate {
    /// The kind.
    pub kind: String,
    /// Who holds a place in it, and until when.
    pub places: Holders,
    /// The state of the kind's rate.
    pub pace: Bucket,
    /// The version of the policy to whose calls the refusals were answered.
    pub version: Option<Uuid>,
    /// Refusals in a row: see [`RefusedCall`](super::RefusedCall).
    pub refusals: u32,
    /// Their targets, hashed.
    pub targets: Vec<Uuid>,
    /// Since when, and why, the kind stands still.
    pub stopped: Option<Stopped>,
    /// When it last resumed after it stood still.
    pub resumed_at: Option<Timestamp>,
    /// Since when it had stood still then.
    pub stood_since: Option<Timestamp>,
    /// When the notice of its latest change is first due. None: the change is not reported.
    pub notice_at: Option<Timestamp>,
    /// The state of the notice of that change.
    pub notice: NoticeProgress,
}

/// A kind that stands still: its batch API refused one call after the other, so it is only probed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Since when.
    pub since: Timestamp,
    /// What the batch API answered that stopped it.
    pub because: String,
    /// What the batch API answered last.
    pub answer: String,
    /// When the next probe is due.
    pub probe_at: Timestamp,
    /// Probes that failed.
    pub probes: u32,
    /// While a probe runs: until when no other one is made.
    pub probing: Option<Timestamp>,
}

/// Whether a batch may probe the batch API of a kind that stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// It may try.
    Now,
    /// It may when the probe that runs has ended.
    Soon,
    /// It is to wait for the sweep.
    No,
}

impl Gate {
    /// How many of these places are held whose lease has not ended.
    #[must_use]
    pub fn held(&self, now: Timestamp) -> usize {
        places::held(&self.places, now)
    }

    /// Whether so many calls in a row were refused that the kind is to stand still: more than a few, and more than are
    /// `at_work` now, since one moment may have struck all of those.
    #[must_use]
    pub fn refused_enough(&self, at_work: usize) -> bool {
        let at_work = u32::try_from(at_work).unwrap_or(u32::MAX);
        self.stopped.is_none() && self.refusals >= REFUSALS_MIN.max(at_work)
    }

    /// Whether the notice of its latest change is still to be delivered.
    #[must_use]
    pub fn to_notify(&self) -> bool {
        self.notice_at.is_some() && !self.notice.over()
    }

    /// When the notice of a change that happens now is due: at once, but some time after the notice of the change before.
    /// If that was not due yet, it is not sent: this one takes its place.
    #[must_use]
    pub fn next_notice_at(&self, now: Timestamp) -> Timestamp {
        match self.notice_at {
            Some(before) if before > now => before.min(now.plus(KIND_NOTICES)),
            Some(before) => before.plus(KIND_NOTICES).max(now),
            None => now,
        }
    }

    /// Whether a batch for this target may probe. While only few targets were refused, another one need not wait.
    #[must_use]
    pub fn probe(&self, target: &str, now: Timestamp) -> Probe {
        let Some(stopped) = &self.stopped else { return Probe::No };
        let other = self.targets.len() < REFUSED_TARGETS_MIN && !self.targets.contains(&derived::target(target));
        let runs = stopped.probing.is_some_and(|until| until >= now);
        match (runs, other || stopped.probe_at <= now) {
            (false, true) => Probe::Now,
            (true, _) if other => Probe::Soon,
            _ => Probe::No,
        }
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("locks", ID, item);
        Ok(Self {
            kind: reader.text(KIND)?.to_owned(),
            places: places::holders(item)?,
            pace: pace::decode(&reader)?,
            version: reader.optional_parsed(VERSION)?,
            refusals: reader.small(REFUSALS)?,
            targets: reader.ids(TARGETS)?,
            stopped: Stopped::decode(&reader)?,
            resumed_at: reader.time(RESUMED_AT)?,
            stood_since: reader.time(STOOD_SINCE)?,
            notice_at: reader.time(NOTICE_AT)?,
            notice: NoticeProgress::decode(&reader)?,
        })
    }
}

impl Stopped {
    /// The attributes of a kind that stands still, or resumes.
    pub(super) fn encode(stopped: Option<&Self>) -> [(&'static str, Option<AttributeValue>); 6] {
        [
            (STOPPED_AT, stopped.map(|stopped| time(stopped.since))),
            (STOP_ANSWER, stopped.map(|stopped| text(&stopped.because))),
            (ANSWER, stopped.map(|stopped| text(&stopped.answer))),
            (PROBE_AT, stopped.map(|stopped| time(stopped.probe_at))),
            (PROBES, stopped.and_then(|stopped| count(stopped.probes))),
            (PROBING, stopped.and_then(|stopped| stopped.probing.map(time))),
        ]
    }

    fn decode(reader: &Reader<'_>) -> Result<Option<Self>, StoreError> {
        let Some(since) = reader.time(STOPPED_AT)? else { return Ok(None) };
        Ok(Some(Self {
            since,
            because: reader.optional_text(STOP_ANSWER)?.unwrap_or_default().to_owned(),
            answer: reader.text(ANSWER)?.to_owned(),
            probe_at: reader.time(PROBE_AT)?.unwrap_or_default(),
            probes: reader.small(PROBES)?,
            probing: reader.time(PROBING)?,
        }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::aws::attributes::item;
    use crate::store::notices::any_notice;
    use crate::store::pace::tests::{any_bucket, encode};
    use crate::store::places::PLACES;
    use crate::testing::{any_id, any_time};

    fn stopped(targets: &[&str], probing: Option<u64>) -> Gate {
        let probing = probing.map(Timestamp);
        let answer = "404".to_owned();
        let stopped = Stopped {
            since: Timestamp(1),
            because: answer.clone(),
            answer,
            probe_at: Timestamp(50),
            probes: 0,
            probing,
        };
        let targets = targets.iter().map(|target| derived::target(target)).collect();
        Gate { kind: "parcel".to_owned(), targets, stopped: Some(stopped), ..Gate::default() }
    }

    fn any_stopped() -> impl Strategy<Value = Stopped> {
        (prop::array::uniform2(any_time()), prop::array::uniform2(".{0,9}"), any::<u32>(), prop::option::of(any_time()))
            .prop_map(|([since, probe_at], [because, answer], probes, probing)| Stopped {
                since,
                because,
                answer,
                probe_at,
                probes,
                probing,
            })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            places in prop::collection::btree_map(any_id(), any_time(), 0..4),
            stopped in prop::option::of(any_stopped()),
            notice in any_notice(),
            pace in any_bucket(),
        ) {
            let kind = [(KIND, Some(text("parcel"))), (PLACES, Some(places::encode(&places)))];
            let attributes = kind.into_iter().chain(Stopped::encode(stopped.as_ref())).chain(notice.encode());
            let attributes = attributes.chain(encode(&pace));
            let gate = Gate { kind: "parcel".to_owned(), places, pace, stopped, notice, ..Gate::default() };
            prop_assert_eq!(Gate::decode(&item(attributes)).unwrap(), gate);
        }
    }

    #[test]
    fn a_few_in_a_row_stop_a_kind_but_not_one_burst() {
        let gate = |refusals| Gate { refusals, ..Gate::default() };
        assert!(!gate(2).refused_enough(0) && gate(3).refused_enough(0));
        assert!(!gate(9).refused_enough(10) && gate(10).refused_enough(10));
        let places = [60, 100].map(|until| (Uuid::from_u128(until.into()), Timestamp(until)));
        assert_eq!(Gate { places: places.into(), ..gate(3) }.held(Timestamp(70)), 1, "the dead are not at work");
    }

    #[test]
    fn a_probe_waits_for_its_time_and_for_the_one_that_runs() {
        let all = ["a", "b", "c"];
        assert_eq!(stopped(&all, None).probe("a", Timestamp(49)), Probe::No);
        assert_eq!(stopped(&all, None).probe("d", Timestamp(50)), Probe::Now);
        assert_eq!(stopped(&all, Some(60)).probe("a", Timestamp(55)), Probe::No);
        assert_eq!(stopped(&all, Some(60)).probe("a", Timestamp(61)), Probe::Now, "its worker is dead");
    }

    #[test]
    fn changes_are_reported_at_once_but_not_faster_than_a_limit() {
        let (before, seconds) =
            (Timestamp(1_000_000), |seconds| Timestamp(1_000_000).plus(Duration::from_secs(seconds)));
        let reported = Gate { notice_at: Some(before), ..Gate::default() };
        assert_eq!(Gate::default().next_notice_at(before), before);
        for (now, due) in [(1, 30), (29, 30), (30, 30), (31, 31), (9_000, 9_000)] {
            assert_eq!(reported.next_notice_at(seconds(now)), seconds(due), "{now}");
        }
        let waits = Gate { notice_at: Some(seconds(30)), ..Gate::default() };
        assert_eq!(waits.next_notice_at(seconds(7)), seconds(30), "it takes the time of the one before");
        let wrong = Gate { notice_at: Some(seconds(90_000)), ..Gate::default() };
        assert_eq!(wrong.next_notice_at(before), seconds(30), "whatever another clock said");
    }

    #[test]
    fn another_target_need_not_wait_while_few_were_refused() {
        assert_eq!(stopped(&["a"], None).probe("a", Timestamp(10)), Probe::No);
        assert_eq!(stopped(&["a"], None).probe("b", Timestamp(10)), Probe::Now);
        assert_eq!(stopped(&["a"], Some(60)).probe("b", Timestamp(10)), Probe::Soon);
    }
}
