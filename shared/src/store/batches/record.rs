//! A batch, and how it is stored.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::BatchStatus;
use super::later::{Later, Poll, TokenSecret};
use crate::aws::attributes::{Reader, binary, bits, count, expiry, item, text, time};
use crate::aws::{Item, StoreError};
use crate::bits::Bits;
use crate::clock::Timestamp;
use crate::grouping::Parts;
use crate::lane::Lane;
use crate::limits::{HELD_NOTED_EVERY, RETENTION};
use crate::masks::Masks;
use crate::members::Members;
use crate::pacing::Turns;
use crate::policy::Weight;
use crate::results::ResultList;
use crate::retention::Retention;
use crate::store::notices::NoticeProgress;

/// A batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its id.
    pub id: Uuid,
    /// Its lane.
    pub lane: Lane,
    /// How far it has come.
    pub status: BatchStatus,
    /// Its members; slots are positions in this list.
    pub members: Members,
    /// Until it is formed: the members that come from bundles, as slots of these.
    pub bundles: Masks,
    /// Attempts begun.
    pub attempts: u32,
    /// Attempts that ended; the others were lost with their workers, or one runs.
    pub ended: u32,
    /// Attempts that were lost with their workers before the last one that ended.
    pub lost: u32,
    /// Attempts that ended and do not count: the batch API refuses every call.
    pub refused: u32,
    /// Since when its batch API refuses every call, as far as its own calls show: none of them counted since then.
    pub refused_since: Option<Timestamp>,
    /// When the latest attempt began.
    pub begun_at: Option<Timestamp>,
    /// Who began it: after an attempt that was taken back another worker begins one of the same number.
    pub worker: Option<Uuid>,
    /// While an attempt runs: until when no other should begin.
    pub lease_until: Option<Timestamp>,
    /// Between attempts: when the next one is due.
    pub retry_at: Option<Timestamp>,
    /// Between attempts: the turns, by the rates of lane and kind, that the next one waits for.
    pub turns: Turns,
    /// While its latest call is to be answered later: what is awaited.
    pub later: Option<Later>,
    /// While an attempt runs, or its call is to be answered later: slots for which the outcome `retry` was posted.
    pub again: Bits,
    /// The earliest time at which the slots in `again` may be called again.
    pub again_at: Option<Timestamp>,
    /// The secret of the tokens of its calls, if they may be answered later.
    pub secret: Option<TokenSecret>,
    /// The dev session that its latest call was sent to.
    pub dev_session: Option<Uuid>,
    /// The weight of its members together, if they have any.
    pub weight: Weight,
    /// When `sweep` last sent its message again.
    pub woken_at: Option<Timestamp>,
    /// When `sweep` last noted that a pause holds it, or that its kind has no policy.
    pub held_at: Option<Timestamp>,
    /// When `sweep` last kept its tasks for longer.
    pub kept_at: Option<Timestamp>,
    /// The parts in which the members without an outcome are called, once a call failed for all of them.
    pub parts: Parts,
    /// Slots that succeeded.
    pub succeeded: Bits,
    /// Slots that failed for good.
    pub failed: Bits,
    /// Slots that are not called, or not any more: their fan-outs were cut short.
    pub dropped: Bits,
    /// Slots without a success for which a call may have worked all the same. Those that failed so have no clear answer.
    pub silent: Bits,
    /// Slots whose keys are free, as the policy said when their outcomes were recorded. It may be deleted before they are released.
    pub freed: Bits,
    /// Why slots failed: each different error with its slots.
    pub errors: Vec<(String, Bits)>,
    /// The codes of errors of slots that failed: each different code with its slots.
    pub codes: Vec<(String, Bits)>,
    /// The records that hold results of slots that succeeded.
    pub results: ResultList,
    /// Until it is done: why its latest attempt that ended is to be followed by another.
    pub last_error: Option<String>,
    /// The state of the notice of its failures.
    pub notice: NoticeProgress,
    /// When it was formed.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Batch {
    /// Attempts that ended and count: those that the batch API refused, as it refuses every call, do not.
    #[must_use]
    pub fn attempts_that_count(&self) -> u32 {
        self.ended.saturating_sub(self.refused)
    }

    /// Whether attempt number `attempt` could begin now. Only the conditional write decides.
    #[must_use]
    pub fn may_begin(&self, attempt: u32, now: Timestamp) -> bool {
        match (self.status, self.lease_until) {
            (BatchStatus::Formed, _) => attempt == 1,
            (BatchStatus::InProgress, None) => self.later.is_none() && attempt == self.attempts.saturating_add(1),
            (BatchStatus::InProgress, Some(lease_until)) => attempt == self.attempts && lease_until < now,
            (BatchStatus::Grouping | BatchStatus::Done, _) => false,
        }
    }

    /// Since when it waits for its batch API. The time of a pause, or without a policy, does not count, to within a day.
    #[must_use]
    pub fn waits_since(&self) -> Timestamp {
        self.held_at.map_or(self.created_at, |held_at| held_at.max(self.created_at))
    }

    /// For a batch that a pause holds, or whose kind has no policy: whether that is to be noted, once a day.
    #[must_use]
    pub fn is_to_be_noted(&self, now: Timestamp) -> bool {
        now.since(self.waits_since()) >= HELD_NOTED_EVERY
    }

    /// For a batch that is not done: whether its tasks are to be kept for longer, once a week, before they expire. It may wait for
    /// its turn, its next attempt, a policy, or the end of a pause.
    #[must_use]
    pub fn is_to_be_kept(&self, now: Timestamp) -> bool {
        now.since(self.kept_at.unwrap_or(self.created_at)) >= RETENTION / 2
    }

    /// A batch that intends to claim these members. Without any it is done at once.
    #[must_use]
    pub fn intended(id: Uuid, lane: Lane, members: Members, now: Timestamp) -> Self {
        Self {
            id,
            lane,
            status: if members.is_empty() { BatchStatus::Done } else { BatchStatus::Grouping },
            members,
            bundles: Masks::default(),
            attempts: 0,
            ended: 0,
            lost: 0,
            refused: 0,
            refused_since: None,
            begun_at: None,
            worker: None,
            lease_until: None,
            retry_at: None,
            turns: Turns::default(),
            later: None,
            again: Bits::default(),
            again_at: None,
            secret: None,
            dev_session: None,
            weight: Weight::default(),
            woken_at: None,
            held_at: None,
            kept_at: None,
            parts: Parts::default(),
            succeeded: Bits::default(),
            failed: Bits::default(),
            dropped: Bits::default(),
            silent: Bits::default(),
            freed: Bits::default(),
            errors: Vec::new(),
            codes: Vec::new(),
            results: ResultList::default(),
            last_error: None,
            notice: NoticeProgress::default(),
            created_at: now,
            updated_at: now,
        }
    }

    pub(super) fn encode(&self, kept: Retention) -> Item {
        let done = self.status == BatchStatus::Done;
        let attributes = [
            ("id", Some(text(self.id))),
            ("lane", Some(text(&self.lane))),
            ("status", Some(text(self.status.as_str()))),
            ("members", Some(binary(&self.members.pack()))),
            ("bundles", (!self.bundles.is_empty()).then(|| binary(&self.bundles.pack()))),
            ("attempts", count(self.attempts)),
            ("ended", count(self.ended)),
            ("lost", count(self.lost)),
            ("refused", count(self.refused)),
            ("refused_since", self.refused_since.map(time)),
            ("begun_at", self.begun_at.map(time)),
            ("worker", self.worker.map(|worker| binary(worker.as_bytes()))),
            ("lease_until", self.lease_until.map(time)),
            ("retry_at", self.retry_at.map(time)),
            ("turn_lane", self.turns.lane.as_ref().map(text)),
            ("turn_kind", self.turns.kind.as_ref().map(text)),
            ("answers_until", self.later.as_ref().map(|later| time(later.until))),
            ("asked", self.later.as_ref().and_then(|later| bits(&later.asked))),
            ("poll_url", self.poll().map(|poll| text(&poll.url))),
            ("poll_at", self.poll().map(|poll| time(poll.at))),
            ("again", bits(&self.again)),
            ("again_at", self.again_at.map(time)),
            ("secret", self.secret.as_ref().map(|secret| binary(secret.as_bytes()))),
            ("dev_session", self.dev_session.map(text)),
            ("weight", count(self.weight.0)),
            ("woken_at", self.woken_at.map(time)),
            ("held_at", self.held_at.map(time)),
            ("kept_at", self.kept_at.map(time)),
            ("parts", (!self.parts.is_empty()).then(|| binary(&self.parts.pack()))),
            ("succeeded", bits(&self.succeeded)),
            ("failed", bits(&self.failed)),
            ("dropped", bits(&self.dropped)),
            ("silent", bits(&self.silent)),
            ("freed", bits(&self.freed)),
            ("errors", by_text(&self.errors)),
            ("codes", by_text(&self.codes)),
            ("results", (!self.results.is_empty()).then(|| binary(&self.results.pack()))),
            ("last_error", self.last_error.as_ref().map(text)),
            ("created_at", Some(time(self.created_at))),
            ("updated_at", Some(time(self.updated_at))),
            ("ttl", done.then(|| expiry(kept.until(self.updated_at, RETENTION)))),
        ];
        item(attributes.into_iter().chain(self.notice.encode()))
    }

    pub(super) fn decode(item: &Item) -> Result<Self, StoreError> {
        let reader = Reader::new("batches", "id", item);
        Ok(Self {
            id: reader.parsed("id")?,
            lane: reader.parsed("lane")?,
            status: reader.parsed("status")?,
            members: Members::unpack(reader.bytes("members")?).map_err(|error| reader.corrupt("members", error))?,
            bundles: Masks::unpack(reader.bytes("bundles")?).map_err(|error| reader.corrupt("bundles", error))?,
            attempts: reader.small("attempts")?,
            ended: reader.small("ended")?,
            lost: reader.small("lost")?,
            refused: reader.small("refused")?,
            refused_since: reader.time("refused_since")?,
            begun_at: reader.time("begun_at")?,
            worker: worker(&reader)?,
            lease_until: reader.time("lease_until")?,
            retry_at: reader.time("retry_at")?,
            turns: Turns { lane: reader.optional_parsed("turn_lane")?, kind: reader.optional_parsed("turn_kind")? },
            later: later(&reader)?,
            again: reader.bits("again")?,
            again_at: reader.time("again_at")?,
            secret: TokenSecret::read(reader.bytes("secret")?).map_err(|error| reader.corrupt("secret", error))?,
            dev_session: reader.optional_parsed("dev_session")?,
            weight: Weight(reader.number("weight")?),
            woken_at: reader.time("woken_at")?,
            held_at: reader.time("held_at")?,
            kept_at: reader.time("kept_at")?,
            parts: Parts::unpack(reader.bytes("parts")?).map_err(|error| reader.corrupt("parts", error))?,
            succeeded: reader.bits("succeeded")?,
            failed: reader.bits("failed")?,
            dropped: reader.bits("dropped")?,
            silent: reader.bits("silent")?,
            freed: reader.bits("freed")?,
            errors: read_by_text(item, &reader, "errors")?,
            codes: read_by_text(item, &reader, "codes")?,
            results: ResultList::unpack(reader.bytes("results")?).map_err(|error| reader.corrupt("results", error))?,
            last_error: reader.optional_text("last_error")?.map(str::to_owned),
            notice: NoticeProgress::decode(&reader)?,
            created_at: Timestamp(reader.number("created_at")?),
            updated_at: Timestamp(reader.number("updated_at")?),
        })
    }
}

/// Who began the latest attempt.
fn worker(reader: &Reader<'_>) -> Result<Option<Uuid>, StoreError> {
    match reader.bytes("worker")? {
        [] => Ok(None),
        id => Uuid::from_slice(id).map(Some).map_err(|_| reader.corrupt("worker", "is not an id of 16 bytes")),
    }
}

/// What is awaited of a call that is answered later.
fn later(reader: &Reader<'_>) -> Result<Option<Later>, StoreError> {
    let Some(until) = reader.time("answers_until")? else { return Ok(None) };
    let poll = reader.optional_text("poll_url")?.map(str::to_owned).zip(reader.time("poll_at")?);
    Ok(Some(Later { until, asked: reader.bits("asked")?, poll: poll.map(|(url, at)| Poll { url, at }) }))
}

/// A map from texts to the slots that have them.
fn by_text(texts: &[(String, Bits)]) -> Option<AttributeValue> {
    let map: HashMap<String, AttributeValue> =
        texts.iter().map(|(text, slots)| (text.clone(), binary(slots.as_bytes()))).collect();
    (!map.is_empty()).then_some(AttributeValue::M(map))
}

/// The same as it is read, in the order of the texts.
fn read_by_text(item: &Item, reader: &Reader<'_>, name: &'static str) -> Result<Vec<(String, Bits)>, StoreError> {
    let mut texts = match item.get(name) {
        None => Vec::new(),
        Some(AttributeValue::M(map)) => map
            .iter()
            .map(|(text, slots)| match slots {
                AttributeValue::B(slots) => Ok((text.clone(), Bits::from_bytes(slots.as_ref().to_vec()))),
                _ => Err(reader.corrupt(name, "holds something else than slots")),
            })
            .collect::<Result<Vec<_>, _>>()?,
        Some(_) => return Err(reader.corrupt(name, "is not a map")),
    };
    texts.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(texts)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
