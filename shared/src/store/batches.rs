//! Batches: who is in them and what became of each.

mod record;
mod settlement;

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use uuid::Uuid;

use super::telling::Tellings;
use crate::aws::attributes::{Reader, binary, number, text, time};
use crate::aws::{Item, StoreError, Table, Write};
use crate::lane::Lane;
use crate::limits::{ATTEMPT_MARGIN, CALL_WITHIN, RETENTION};
use crate::members::Members;

pub use self::record::{Batch, BatchStatus};
pub use self::settlement::Settlement;

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
    pub fn tellings(&self) -> Tellings {
        Tellings::new(self.table.clone(), "id", false)
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

    /// Writes down what a batch is going to claim. Without members the batch is done at once: nobody may form it later.
    /// Returns the batch as it stands: an earlier delivery may have written another intent, which then counts.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn intend(&self, id: Uuid, lane: &Lane, members: &Members) -> Result<Batch, StoreError> {
        let now = self.table.world.now();
        let batch = Batch::new(id, lane.clone(), members.clone(), now);
        let mut item = Item::from([
            ("id".to_owned(), text(id)),
            ("lane".to_owned(), text(lane)),
            ("status".to_owned(), text(batch.status.as_str())),
            ("members".to_owned(), binary(&members.pack())),
            ("created_at".to_owned(), time(now)),
            ("updated_at".to_owned(), time(now)),
        ]);
        if members.is_empty() {
            item.insert("ttl".to_owned(), number(now.plus(RETENTION).seconds()));
        }
        match self.table.send_put(self.table.put_new("id", item)).await? {
            Write::Done(()) => Ok(batch),
            Write::Refused(Some(item)) => Batch::decode(&item),
            Write::Refused(None) => Err(StoreError::Contended { what: format!("forming batch {id}") }),
        }
    }

    /// Fixes the members to those that were claimed. Returns the batch as it stands: an earlier delivery may have done it.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn dispatch(&self, batch: &Batch, claimed: &Members) -> Result<Batch, StoreError> {
        let now = self.table.world.now();
        let status = if claimed.is_empty() { BatchStatus::Done } else { BatchStatus::Dispatched };
        let mut set = "SET #status = :status, updated_at = :now".to_owned();
        let mut update = self.table.update("id", batch.id.to_string());
        if claimed != &batch.members {
            set.push_str(", members = :members");
            update = update.expression_attribute_values(":members", binary(&claimed.pack()));
        }
        if claimed.is_empty() {
            set.push_str(", #ttl = :ttl");
            update = update
                .expression_attribute_names("#ttl", "ttl")
                .expression_attribute_values(":ttl", number(now.plus(RETENTION).seconds()));
        }
        let update = update
            .update_expression(set)
            .condition_expression("#status = :grouping")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":status", text(status.as_str()))
            .expression_attribute_values(":grouping", text(BatchStatus::Grouping.as_str()))
            .expression_attribute_values(":now", time(now))
            .return_values(ReturnValue::AllNew);
        match self.table.send_update(update).await? {
            Write::Done(Some(item)) | Write::Refused(Some(item)) => Batch::decode(&item),
            Write::Done(None) | Write::Refused(None) => {
                Err(StoreError::Contended { what: format!("dispatching batch {}", batch.id) })
            }
        }
    }

    /// Begins attempt number `attempt`: the one before it is over, or began it and its lease ran out. A lost worker's
    /// attempt counts, so the attempt begun may have a higher number. `timeout`: that of the call, which the lease outlasts.
    /// `Err` holds the batch that refused, if it exists.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn begin(
        &self,
        id: Uuid,
        attempt: u32,
        timeout: Duration,
    ) -> Result<Result<Batch, Option<Batch>>, StoreError> {
        let now = self.table.world.now();
        let worker = self.table.world.uuid();
        let first = attempt == 1;
        let over = if first {
            "#status = :dispatched"
        } else {
            "(#status = :in_progress AND attempts = :before AND attribute_not_exists(lease_until))"
        };
        let mut update = self
            .table
            .update("id", id.to_string())
            .update_expression(
                "SET #status = :in_progress, attempts = if_not_exists(attempts, :zero) + :one, worker = :worker, \
                 lease_until = :lease, call_until = :call, updated_at = :now REMOVE retry_at",
            )
            .condition_expression(format!(
                "{over} OR (#status = :in_progress AND attempts = :attempt AND lease_until < :now)"
            ))
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":in_progress", text(BatchStatus::InProgress.as_str()))
            .expression_attribute_values(":zero", number(0_u32))
            .expression_attribute_values(":one", number(1_u32))
            .expression_attribute_values(":worker", binary(worker.as_bytes()))
            .expression_attribute_values(":lease", time(now.plus(timeout + ATTEMPT_MARGIN)))
            .expression_attribute_values(":call", time(now.plus(CALL_WITHIN + timeout)))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":attempt", number(attempt))
            .return_values(ReturnValue::AllNew);
        update = if first {
            update.expression_attribute_values(":dispatched", text(BatchStatus::Dispatched.as_str()))
        } else {
            update.expression_attribute_values(":before", number(attempt.saturating_sub(1)))
        };
        match self.table.send_update(update).await? {
            Write::Done(Some(item)) => Ok(Ok(Batch::decode(&item)?)),
            Write::Done(None) | Write::Refused(None) => Ok(Err(None)),
            Write::Refused(Some(item)) => {
                let batch = Batch::decode(&item)?;
                // One's own write whose answer was lost comes back as a failed condition.
                let mine = Reader::new("batches", "id", &item).bytes("worker")? == worker.as_bytes();
                Ok(if mine { Ok(batch) } else { Err(Some(batch)) })
            }
        }
    }

    /// Writes down how an attempt ended, once: a later attempt's lease or end refuses it. Returns whether it counts.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn settle(&self, batch: &Batch, settlement: &Settlement) -> Result<bool, StoreError> {
        let now = self.table.world.now();
        let mut set =
            "SET #status = :status, succeeded = :succeeded, updated_at = :now, rounds = :rounds, ended = :ended"
                .to_owned();
        let status = settlement.status();
        let mut update = self.table.update("id", batch.id.to_string());
        if !settlement.failed.is_zero() {
            set.push_str(", failed = :failed, errors = :errors");
            let errors =
                settlement.errors.iter().map(|(error, slots)| (error.clone(), binary(slots.as_bytes()))).collect();
            update = update
                .expression_attribute_values(":failed", binary(settlement.failed.as_bytes()))
                .expression_attribute_values(":errors", AttributeValue::M(errors));
        }
        if settlement.refused > 0 {
            set.push_str(", refused = :refused");
            update = update.expression_attribute_values(":refused", number(settlement.refused));
        }
        let mut remove = "lease_until, call_until".to_owned();
        if !settlement.silent.is_zero() {
            set.push_str(", silent = :silent");
            update = update.expression_attribute_values(":silent", binary(settlement.silent.as_bytes()));
        } else if !batch.silent.is_zero() {
            remove.push_str(", silent");
        }
        if let Some(error) = &settlement.last_error {
            set.push_str(", last_error = :last_error");
            update = update.expression_attribute_values(":last_error", text(error));
        } else if batch.last_error.is_some() {
            remove.push_str(", last_error");
        }
        if let Some(retry_at) = settlement.retry_at {
            set.push_str(", retry_at = :retry_at");
            update = update.expression_attribute_values(":retry_at", time(retry_at));
        } else {
            set.push_str(", #ttl = :ttl");
            update = update
                .expression_attribute_names("#ttl", "ttl")
                .expression_attribute_values(":ttl", number(now.plus(RETENTION).seconds()));
        }
        let update = update
            .update_expression(format!("{set} REMOVE {remove}"))
            .condition_expression("#status = :in_progress AND attempts = :attempts AND attribute_exists(lease_until)")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":status", text(status.as_str()))
            .expression_attribute_values(":in_progress", text(BatchStatus::InProgress.as_str()))
            .expression_attribute_values(":succeeded", binary(settlement.succeeded.as_bytes()))
            .expression_attribute_values(":rounds", number(settlement.rounds))
            .expression_attribute_values(":ended", number(batch.ended + 1))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":attempts", number(batch.attempts));
        match self.table.send_update(update).await? {
            Write::Done(_) => Ok(true),
            // Perhaps one's own write whose answer was lost: then the record says what was to be written.
            Write::Refused(Some(item)) => {
                let stands = Batch::decode(&item)?;
                Ok(stands.attempts == batch.attempts
                    && stands.lease_until.is_none()
                    && stands.retry_at == settlement.retry_at
                    && stands.succeeded == settlement.succeeded
                    && stands.failed == settlement.failed
                    && stands.silent == settlement.silent)
            }
            Write::Refused(None) => Ok(false),
        }
    }

    /// Takes an attempt back that could not call the batch API: it does not count.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn take_back(&self, batch: &Batch) -> Result<(), StoreError> {
        let before = batch.attempts.saturating_sub(1);
        let status = if before == 0 { BatchStatus::Dispatched } else { BatchStatus::InProgress };
        let update = self
            .table
            .update("id", batch.id.to_string())
            .update_expression(
                "SET attempts = :before, #status = :status, updated_at = :now REMOVE lease_until, call_until",
            )
            .condition_expression("attempts = :attempts AND lease_until = :lease")
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":before", number(before))
            .expression_attribute_values(":status", text(status.as_str()))
            .expression_attribute_values(":now", time(self.table.world.now()))
            .expression_attribute_values(":attempts", number(batch.attempts))
            .expression_attribute_values(":lease", time(batch.lease_until.unwrap_or_default()));
        self.table.send_update(update).await.map(|_| ())
    }

    /// Notes that the batch's message is sent again, by whoever is about to do so: one of several wins.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn remind(&self, batch: &Batch) -> Result<bool, StoreError> {
        let update = self
            .table
            .update("id", batch.id.to_string())
            .update_expression("SET reminded_at = :now")
            .expression_attribute_values(":now", time(self.table.world.now()));
        let update = match batch.reminded_at {
            None => update.condition_expression("attribute_exists(id) AND attribute_not_exists(reminded_at)"),
            Some(before) => update
                .condition_expression("reminded_at = :before")
                .expression_attribute_values(":before", time(before)),
        };
        Ok(matches!(self.table.send_update(update).await?, Write::Done(_)))
    }

    /// Shortens the lease of an attempt whose worker is known to be dead, and its connections with it: the batch API may
    /// work on the call until its `timeout` is over, and no longer is waited. Doing it again shortens nothing. Returns the
    /// batch as it stands then.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn shorten_lease(&self, batch: &Batch) -> Result<Option<Batch>, StoreError> {
        let update = self
            .table
            .update("id", batch.id.to_string())
            .update_expression("SET lease_until = call_until")
            .condition_expression(
                "attempts = :attempts AND attribute_exists(lease_until) AND attribute_exists(call_until) \
                 AND call_until < lease_until",
            )
            .expression_attribute_values(":attempts", number(batch.attempts))
            .return_values(ReturnValue::AllNew);
        let (Write::Done(item) | Write::Refused(item)) = self.table.send_update(update).await?;
        item.as_ref().map(Batch::decode).transpose()
    }
}
