//! Attempts of a batch. Of several workers, one begins an attempt; of several outcomes of an attempt, one counts.

use std::time::Duration;

use uuid::Uuid;

use super::later::replaced;
use super::{Batch, BatchStatus, Batches, Settlement, TokenSecret};
use crate::aws::attributes::{binary, count, number, text, time};
use crate::aws::{StoreError, Write};
use crate::bits::Bits;
use crate::limits::{ATTEMPT_MARGIN, CALL_WITHIN, CONTENTION_TRIES_MAX};
use crate::pacing::Turns;

impl Batches {
    /// Begins attempt number `attempt`: the one before it is over, or began it and its lease ran out. A lost worker's
    /// attempt counts, so the attempt begun may have a higher number. `timeout`: that of the call, which the lease outlasts.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn begin(
        &self,
        id: Uuid,
        attempt: u32,
        timeout: Duration,
    ) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        self.begin_with(id, attempt, timeout, None, None).await
    }

    /// The same, where the call may be answered later: the batch has a secret from then on, for the tokens of its calls.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn begin_with_token(
        &self,
        id: Uuid,
        attempt: u32,
        timeout: Duration,
    ) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        let secret = TokenSecret::new(self.table.world.secret());
        self.begin_with(id, attempt, timeout, Some(secret), None).await
    }

    /// The same, where the call is sent to a dev session.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn begin_for_session(
        &self,
        id: Uuid,
        attempt: u32,
        timeout: Duration,
        session: Uuid,
    ) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        let secret = TokenSecret::new(self.table.world.secret());
        self.begin_with(id, attempt, timeout, Some(secret), Some(session)).await
    }

    async fn begin_with(
        &self,
        id: Uuid,
        attempt: u32,
        timeout: Duration,
        secret: Option<TokenSecret>,
        session: Option<Uuid>,
    ) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        let (now, worker) = (self.table.world.now(), self.table.world.uuid());
        let (over, before) = match attempt {
            1 => ("#status = :formed", (":formed", text(BatchStatus::Formed.as_str()))),
            _ => (
                "(#status = :in_progress AND attempts = :before AND attribute_not_exists(lease_until) \
                 AND attribute_not_exists(answers_until))",
                (":before", number(attempt.saturating_sub(1))),
            ),
        };
        let in_progress = text(BatchStatus::InProgress.as_str());
        let change = self.table.change("id", id);
        let change = match secret {
            Some(secret) => change.set_first("secret", binary(secret.as_bytes())),
            None => change,
        };
        let begun = change
            .put([("dev_session", session.map(text))])
            .set("status", in_progress.clone())
            .add("attempts", number(1_u32))
            .set("worker", binary(worker.as_bytes()))
            .set("lease_until", time(now.plus(timeout + ATTEMPT_MARGIN)))
            .set("call_until", time(now.plus(CALL_WITHIN + timeout)))
            .set("begun_at", time(now))
            .set("updated_at", time(now))
            .remove(["retry_at", "turn_lane", "turn_kind", "again", "again_at"])
            .when(
                &format!("{over} OR (#status = :in_progress AND attempts = :attempt AND lease_until < :now)"),
                [before, (":in_progress", in_progress), (":attempt", number(attempt)), (":now", time(now))],
            )
            .send_for_new()
            .await?;
        Ok(begun.decode(Batch::decode)?.or_mine(|batch| batch.worker == Some(worker)))
    }

    /// Records the turns that a batch waits for before its next attempt. Returns the batch as written, or the one that refused.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn wait_for_turn(&self, batch: &Batch, turns: Turns) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        let after = Batch { turns, ..batch.clone() };
        let change = self
            .table
            .change("id", batch.id)
            .differences(&batch.encode(self.table.retention), &after.encode(self.table.retention))
            .when_is("status", text(batch.status.as_str()))
            .when_same("attempts", count(batch.attempts))
            .when_same("lease_until", batch.lease_until.map(time));
        Ok(change.send().await?.decode_refused(Batch::decode)?.map(|()| after))
    }

    /// Records how an attempt ended, once: the lease or end of a later attempt refuses it, and so do outcomes that came meanwhile.
    /// Results are written before: the batch's record lists only those that are there. Returns the batch as written, or the one
    /// that refused.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn settle(
        &self,
        batch: &Batch,
        settlement: Settlement,
    ) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        let (after, records) = settlement.applied_to(batch.clone(), self.table.world.now());
        self.write_results(batch.id, &records).await?;
        let runs = if batch.later.is_some() { "answers_until" } else { "lease_until" };
        let change = self
            .table
            .change("id", batch.id)
            .differences(&batch.encode(self.table.retention), &after.encode(self.table.retention))
            .remove(["call_until"])
            .when_is("status", text(BatchStatus::InProgress.as_str()))
            .when_is("attempts", number(batch.attempts))
            .when_present(runs);
        let mine = |stands: &Batch, after: &Batch| {
            stands.attempts == after.attempts
                && stands.lease_until.is_none()
                && stands.later.is_none()
                && stands.retry_at == after.retry_at
                && stands.succeeded == after.succeeded
                && stands.failed == after.failed
                && stands.silent == after.silent
                && stands.parts == after.parts
                && stands.results == after.results
        };
        replaced(change, batch, after, mine).await
    }

    /// Drops members from an attempt that has begun and made no call yet, for good. From then on its calls have other members,
    /// and other keys. Returns the batch as written, or the one that refused: another worker began an attempt
    /// meanwhile, or outcomes came.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn drop_members(&self, batch: &Batch, slots: &Bits) -> Result<Write<Batch, Option<Batch>>, StoreError> {
        let (mut dropped, mut silent) = (batch.dropped.clone(), batch.silent.clone());
        dropped.merge(slots);
        // The lost attempts were for the members that were to be called now, and for no others.
        if batch.lost_in_a_row() > 0 {
            silent.merge(&slots.and(&batch.called().into_iter().collect()));
        }
        let updated_at = self.table.world.now();
        let after = Batch { dropped, silent, updated_at, ..batch.clone() }.without_losses_of_others(batch);
        let change = self
            .table
            .change("id", batch.id)
            .differences(&batch.encode(self.table.retention), &after.encode(self.table.retention));
        let change = change
            .when_is("attempts", number(batch.attempts))
            .when_is("lease_until", time(batch.lease_until.unwrap_or_default()))
            .when_same("worker", batch.worker.map(|worker| binary(worker.as_bytes())));
        let mine = |stands: &Batch, after: &Batch| {
            (stands.attempts, stands.worker) == (after.attempts, after.worker) && stands.dropped == after.dropped
        };
        replaced(change, batch, after, mine).await
    }

    /// Takes back an attempt that could not call the batch API: it does not count.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn take_back(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut batch = batch.clone();
        for _ in 0..CONTENTION_TRIES_MAX {
            let after = batch.clone().taken_back(self.table.world.now());
            let change = self
                .table
                .change("id", batch.id)
                .differences(&batch.encode(self.table.retention), &after.encode(self.table.retention))
                .remove(["call_until"])
                .when_is("attempts", number(batch.attempts))
                .when_is("lease_until", time(batch.lease_until.unwrap_or_default()))
                .when_same("worker", batch.worker.map(|worker| binary(worker.as_bytes())))
                .when_same("lost", count(batch.lost));
            match change.send().await?.decode_refused(Batch::decode)? {
                // What came for its members meanwhile ended its part.
                Write::Refused(Some(stands)) if stands.is_same_attempt(&batch) => batch = stands,
                Write::Done(()) | Write::Refused(_) => return Ok(()),
            }
        }
        Err(StoreError::Contended { what: format!("taking back an attempt of batch {}", batch.id) })
    }

    /// Shortens the lease of an attempt whose worker and connections are known to be dead: the batch API may work on the call
    /// until its `timeout` is over, and there is no need to wait longer. Doing it again shortens nothing. Returns the batch as
    /// it stands then.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn shorten_lease(&self, batch: &Batch) -> Result<Option<Batch>, StoreError> {
        let change = self
            .table
            .change("id", batch.id)
            .copy("lease_until", "call_until")
            .when_is("attempts", number(batch.attempts))
            .when_present("lease_until")
            .when_present("call_until")
            .when("call_until < lease_until", []);
        Ok(change.send_for_new().await?.decode(Batch::decode)?.stands())
    }
}
