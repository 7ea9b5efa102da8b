//! Calls that are answered later: until when, under which token, and what has come.

use std::fmt;

use uuid::Uuid;

use super::{Batch, BatchStatus, Batches};
use crate::aws::attributes::{bits, count, text, time};
use crate::aws::{Change, StoreError, Write};
use crate::bits::Bits;
use crate::clock::Timestamp;

/// The bit by which records of results that were posted differ from those of attempts.
const POSTED: u32 = 1 << 31;

/// What is awaited of a call that is answered later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Later {
    /// The deadline: until then outcomes may come.
    pub until: Timestamp,
    /// The slots that the call was for.
    pub asked: Bits,
    /// Where the answer can be asked for, if the batch API named an address.
    pub poll: Option<Poll>,
}

/// Where an answer can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The address.
    pub url: String,
    /// When it is asked next.
    pub at: Timestamp,
}

/// The secret part of the tokens of a batch's calls. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSecret(Uuid);

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl TokenSecret {
    /// A secret.
    #[must_use]
    pub fn new(secret: Uuid) -> Self {
        Self(secret)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Reads what is stored; no bytes are none.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, &'static str> {
        match bytes {
            [] => Ok(None),
            bytes => {
                Uuid::from_slice(bytes).map(|secret| Some(Self(secret))).map_err(|_| "is not a secret of 16 bytes")
            }
        }
    }
}

impl Batch {
    /// The token of the call of its latest attempt, if it may be answered later: the attempt and the batch's secret.
    #[must_use]
    pub fn token(&self) -> Option<String> {
        self.secret.as_ref().map(|secret| format!("{}.{}", self.attempts, secret.0.simple()))
    }

    /// The attempt whose call has this token. None: no call of this batch has it.
    #[must_use]
    pub fn attempt_of(&self, token: &str) -> Option<u32> {
        let (attempt, secret) = token.trim().split_once('.')?;
        let (attempt, secret) = (attempt.parse().ok()?, Uuid::try_parse(secret).ok()?);
        let right = self.secret.as_ref().is_some_and(|own| own.0 == secret);
        (right && (1..=self.attempts).contains(&attempt)).then_some(attempt)
    }

    /// Whether outcomes of the call of this attempt are still awaited: it runs or is open, or it was lost with its worker, and the
    /// latest attempt repeats its call. After that a member may have been called again, so a `retry` says nothing any more.
    #[must_use]
    pub fn awaits(&self, attempt: u32) -> bool {
        let runs = self.lease_until.is_some() || self.later.is_some();
        self.status == BatchStatus::InProgress && runs && attempt >= self.attempts.saturating_sub(self.lost_in_a_row())
    }

    /// The batch once its call is to be answered later: the attempt stays open. `problem`: of the answer that said so.
    #[must_use]
    pub fn opened(self, later: Later, problem: Option<String>) -> Self {
        let last_error = problem.or_else(|| self.last_error.clone());
        Self { later: Some(later), lease_until: None, last_error, ..self }
    }

    /// Where the answer of an open attempt can be asked for.
    #[must_use]
    pub fn poll(&self) -> Option<&Poll> {
        self.later.as_ref().and_then(|later| later.poll.as_ref())
    }

    /// The slots of the latest call while it is open, or of the next one.
    #[must_use]
    pub fn asked(&self) -> Vec<usize> {
        self.later.as_ref().map_or_else(|| self.called(), |later| later.asked.iter().collect())
    }

    /// Whether everything has come that an open attempt awaits.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        let come = |slot: usize| !self.is_open(slot) || self.again.get(slot);
        self.later.as_ref().is_some_and(|later| later.asked.iter().all(come))
    }

    /// When an open attempt is to be looked at: when its answer is asked for, at its deadline, or at once if everything has come.
    #[must_use]
    pub fn look_at(&self) -> Option<Timestamp> {
        let later = self.later.as_ref()?;
        if self.is_answered() {
            return Some(self.updated_at);
        }
        Some(later.poll.as_ref().map_or(later.until, |poll| poll.at.min(later.until)))
    }

    /// Before when no call is made, as far as its record says. The part that is next may have become that only since the last
    /// attempt began, by outcomes that were posted; a pause may have been asked for with these, by members that have none yet.
    #[must_use]
    pub fn not_before(&self) -> Timestamp {
        let asked = self.again_at.filter(|_| self.again.iter().any(|slot| self.is_open(slot)));
        self.retry_at.max(asked).unwrap_or_default().max(self.parts.due(&self.unsettled()))
    }

    /// Whether this is the same attempt, and it has not ended: only outcomes may have come.
    #[must_use]
    pub fn is_same_attempt(&self, other: &Self) -> bool {
        self.status == BatchStatus::InProgress
            && self.attempts == other.attempts
            && self.worker == other.worker
            && self.lease_until.is_some() == other.lease_until.is_some()
            && self.later.as_ref().map(|later| later.until) == other.later.as_ref().map(|later| later.until)
    }
}

/// Puts `after` in the place of a batch, on condition that no outcome came since that was read. `mine`: whether the record that
/// refuses is this very write, whose answer was lost. Returns the batch as written, or the one that refused.
pub(super) async fn replaced(
    change: Change<'_>,
    batch: &Batch,
    after: Batch,
    mine: impl FnOnce(&Batch, &Batch) -> bool,
) -> Result<Write<Batch, Option<Batch>>, StoreError> {
    let written = with_outcomes_of(change, batch).send().await?.decode_refused(Batch::decode)?;
    let mine = written.counts(|stands| mine(stands, &after));
    Ok(match written {
        Write::Refused(stands) if !mine => Write::Refused(stands),
        _ => Write::Done(after),
    })
}

fn with_outcomes_of<'a>(change: Change<'a>, batch: &Batch) -> Change<'a> {
    let outcomes = [
        ("succeeded", &batch.succeeded),
        ("failed", &batch.failed),
        ("dropped", &batch.dropped),
        ("again", &batch.again),
    ];
    outcomes.into_iter().fold(change, |change, (name, slots)| change.when_same(name, bits(slots)))
}

impl Batches {
    /// Writes what came for a batch while its call ran or was open, or later; or that its call is answered later. `after`: the batch
    /// with that. Results are written before, under names of their own: two posts may come at once. Returns the batch as
    /// written, or the one that refused, as it had changed.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn note(
        &self,
        batch: &Batch,
        after: Batch,
        results: Vec<(usize, String)>,
    ) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        let name = POSTED | u32::try_from(self.table.world.random.next() >> 33).unwrap_or(0);
        let (list, records) = batch.results.with(name, results);
        let after = Batch { results: list, ..after }.without_losses_of_others(batch);
        if after == *batch {
            return Ok(Write::Done(after));
        }
        self.write_results(batch.id, &records).await?;
        let after = Batch { updated_at: self.table.world.now(), ..after };
        let change = self
            .table
            .change("id", batch.id)
            .differences(&batch.encode(self.table.retention), &after.encode(self.table.retention));
        let change = if after.lease_until.is_none() { change.remove(["call_until"]) } else { change };
        let change = change
            .when_is("status", text(batch.status.as_str()))
            .when_same("attempts", count(batch.attempts))
            .when_same("lease_until", batch.lease_until.map(time))
            .when_same("answers_until", batch.later.as_ref().map(|later| time(later.until)));
        let mine = |stands: &Batch, after: &Batch| {
            stands.attempts == after.attempts
                && stands.status == after.status
                && stands.later == after.later
                && stands.succeeded == after.succeeded
                && stands.failed == after.failed
                && stands.again == after.again
                && stands.results == after.results
        };
        replaced(change, batch, after, mine).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ids::TaskId;
    use crate::members::Members;

    fn batch() -> Batch {
        let ids = (0..4).map(|n| TaskId::Single(Uuid::from_u128(n)));
        let lane = "parcel:0:NY".parse().unwrap();
        let batch = Batch::intended(Uuid::from_u128(9), lane, Members::new(ids), Timestamp(1));
        let secret = Some(TokenSecret::new(Uuid::from_u128(77)));
        Batch { status: BatchStatus::InProgress, attempts: 3, ended: 1, secret, ..batch }
    }

    fn open() -> Batch {
        let later = Later { until: Timestamp(900), asked: Bits::from_iter([0, 2]), poll: None };
        Batch { later: Some(later), ..batch() }
    }

    #[test]
    fn a_token_is_of_one_attempt_of_one_batch() {
        let token = batch().token().unwrap();
        assert_eq!(token, "3.0000000000000000000000000000004d");
        assert_eq!(batch().attempt_of(&token), Some(3));
        assert_eq!(batch().attempt_of(&token.replace("3.", "1.")), Some(1), "of an earlier call");
        for wrong in ["", "3", "3.", "4.0000000000000000000000000000004d", "0.0000000000000000000000000000004d", "x.4d"]
        {
            assert_eq!(batch().attempt_of(wrong), None, "{wrong}");
        }
        let other = Batch { secret: Some(TokenSecret::new(Uuid::from_u128(78))), ..batch() };
        assert_eq!((other.attempt_of(&token), Batch { secret: None, ..batch() }.attempt_of(&token)), (None, None));
        assert!(!format!("{:?}", batch()).contains("4d"), "it is not shown");
    }

    #[test]
    fn an_attempt_of_the_same_number_by_another_worker_is_another() {
        let [mine, others] = [1, 2].map(|worker| Some(Uuid::from_u128(worker)));
        let running = Batch { lease_until: Some(Timestamp(5)), worker: mine, ..batch() };
        assert!(running.is_same_attempt(&Batch { succeeded: Bits::from_iter([1]), ..running.clone() }));
        assert!(!running.is_same_attempt(&Batch { worker: others, ..running.clone() }));
    }

    #[test]
    fn lost_attempts_are_awaited_with_the_one_that_repeats_them() {
        let awaited = |batch: &Batch| [1, 2, 3].map(|attempt| batch.awaits(attempt));
        assert_eq!(awaited(&open()), [false, true, true], "the second was lost with its worker");
        assert_eq!(awaited(&Batch { ended: 2, ..open() }), [false, false, true]);
        let running = Batch { lease_until: Some(Timestamp(5)), ..batch() };
        assert_eq!(awaited(&running), [false, true, true], "it may answer before its call returns");
        assert_eq!(awaited(&batch()), [false; 3], "between attempts");
    }

    #[test]
    fn an_open_attempt_is_answered_when_all_that_it_asked_for_has_come() {
        assert!(!batch().is_answered() && !open().is_answered());
        let some = Batch { succeeded: Bits::from_iter([0, 1]), ..open() };
        assert!(!some.is_answered());
        let all = Batch { again: Bits::from_iter([2]), updated_at: Timestamp(7), ..some.clone() };
        assert!(all.is_answered() && Batch { failed: Bits::from_iter([2]), ..some.clone() }.is_answered());
        assert_eq!(
            (all.look_at(), some.look_at(), batch().look_at()),
            (Some(Timestamp(7)), Some(Timestamp(900)), None)
        );
        let poll = |at| Some(Poll { url: "https://example.com/1".to_owned(), at: Timestamp(at) });
        let polled = |at| Batch { later: open().later.map(|later| Later { poll: poll(at), ..later }), ..some.clone() };
        assert_eq!([40, 4_000].map(|at| polled(at).look_at()), [Some(Timestamp(40)), Some(Timestamp(900))]);
    }

    #[test]
    fn an_open_attempt_is_not_begun_anew() {
        assert!((2..6).all(|attempt| !open().may_begin(attempt, Timestamp(5_000))));
        assert!(batch().may_begin(4, Timestamp(5_000)));
        assert_eq!((open().asked(), batch().asked()), (vec![0, 2], vec![0, 1, 2, 3]));
    }
}
