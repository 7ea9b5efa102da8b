//! The telling of notices: one chain of tries a notice, kept in the record that the notice is about. Who makes a try takes the
//! turn first, by a conditional write; so a hundred copies of a message make one call.

mod record;

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use uuid::Uuid;

use super::fanouts::NOTIFYING;
use crate::aws::attributes::{Reader, binary, number, text, time};
use crate::aws::{StoreError, Table, Write};
use crate::clock::Timestamp;
use crate::limits::NOTICE_LEASE;

pub use self::record::{Next, Telling};

/// What is forgotten when a record is to tell of another change: whatever was told of the change before.
pub(super) const ANEW: &str =
    "tell_tries, tell_lease, tell_worker, tell_since, tell_parts, tell_error, notified, undeliverable";

/// Condition of whoever writes for a try: it is his, and nobody told the notice meanwhile.
const MY_TURN: &str = "tell_worker = :teller AND attribute_not_exists(notified)";

/// The telling of the notices about the records of one table.
#[derive(Clone, Debug)]
pub struct Tellings {
    table: Table,
    /// The attribute that is the records' key.
    key: &'static str,
    /// Whether the table has an index of what is to be told.
    indexed: bool,
}

/// A try that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The record.
    pub key: String,
    /// Which change of it is told.
    pub change: Option<u64>,
    /// Which try of its notice this is, from 1.
    pub tries: u32,
    /// When the first one began.
    pub since: Timestamp,
    /// When this one began.
    pub began: Timestamp,
    worker: Uuid,
}

impl Tellings {
    pub(super) fn new(table: Table, key: &'static str, indexed: bool) -> Self {
        Self { table, key, indexed }
    }

    /// Begins an update of the record, on condition that it still is to tell of `change`.
    fn update(&self, key: &str, change: Option<u64>, condition: &str) -> UpdateItemFluentBuilder {
        let update = self.table.update(self.key, key.to_owned());
        match change {
            None => update.condition_expression(condition),
            Some(change) => update
                .condition_expression(format!("{condition} AND changes = :change"))
                .expression_attribute_values(":change", number(change)),
        }
    }

    /// Takes the turn to try, if the notice still stands as `before` says, and the try is due and none runs. None: somebody
    /// else took it, or it is not to be had.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn begin(&self, key: &str, before: &Telling) -> Result<Option<Turn>, StoreError> {
        let (now, worker) = (self.table.world.now(), self.table.world.uuid());
        let tries = before.tries.saturating_add(1);
        let same = match before.due {
            Some(_) => "tell_due = :due AND tell_due <= :now",
            None => "attribute_not_exists(tell_due)",
        };
        let condition = format!(
            "attribute_exists({}) AND attribute_not_exists(notified) AND attribute_not_exists(undeliverable) \
             AND {same} AND (attribute_not_exists(tell_lease) OR tell_lease <= :now)",
            self.key
        );
        let mut update = self
            .update(key, before.change, &condition)
            .update_expression(
                "SET tell_tries = :tries, tell_lease = :lease, tell_worker = :teller, \
                 tell_since = if_not_exists(tell_since, :now)",
            )
            .expression_attribute_values(":tries", number(tries))
            .expression_attribute_values(":lease", time(now.plus(NOTICE_LEASE)))
            .expression_attribute_values(":teller", binary(worker.as_bytes()))
            .expression_attribute_values(":now", time(now));
        if let Some(due) = before.due {
            update = update.expression_attribute_values(":due", time(due));
        }
        let mine = match self.table.send_update(update).await? {
            Write::Done(_) => true,
            // One's own write whose answer was lost comes back as a failed condition.
            Write::Refused(item) => item.is_some_and(|item| {
                Reader::new("notices", self.key, &item).bytes("tell_worker").is_ok_and(|by| by == worker.as_bytes())
            }),
        };
        Ok(mine.then(|| Turn {
            key: key.to_owned(),
            change: before.change,
            tries,
            since: before.since.unwrap_or(now),
            began: now,
            worker,
        }))
    }

    /// The try failed, or told only some parts; the next one is due at `due`. False: a later try overtook this one, which has
    /// nothing more to say.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn again(
        &self,
        turn: &Turn,
        due: Timestamp,
        parts: u32,
        error: Option<&str>,
    ) -> Result<bool, StoreError> {
        let set = "SET tell_due = :due, tell_parts = :parts";
        let update = self.end_turn(turn, set, parts, error).expression_attribute_values(":due", time(due));
        self.mine(turn, update, |stands| stands.tries == turn.tries && stands.due == Some(due)).await
    }

    /// The last try failed: nobody tries again by himself. False: a later try overtook this one.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt.
    pub async fn give_up(&self, turn: &Turn, parts: u32, error: &str) -> Result<bool, StoreError> {
        let set = "SET undeliverable = :now, tell_parts = :parts";
        let update = self.end_turn(turn, set, parts, Some(error));
        let update = update.expression_attribute_values(":now", time(self.table.world.now()));
        self.mine(turn, update, |stands| stands.tries == turn.tries && stands.given_up.is_some()).await
    }

    fn end_turn(&self, turn: &Turn, set: &str, parts: u32, error: Option<&str>) -> UpdateItemFluentBuilder {
        let mut update = self.update(&turn.key, turn.change, MY_TURN);
        let mut set = set.to_owned();
        if let Some(error) = error {
            set.push_str(", tell_error = :error");
            update = update.expression_attribute_values(":error", text(error));
        }
        let index = if set.contains("undeliverable") && self.indexed { ", notifying" } else { "" };
        update
            .update_expression(format!("{set} REMOVE tell_lease, tell_worker{index}"))
            .expression_attribute_values(":teller", binary(turn.worker.as_bytes()))
            .expression_attribute_values(":parts", number(parts))
    }

    /// Whether a write of a turn counts: it was applied, or was before and its answer is lost, as `done` tells.
    async fn mine(
        &self,
        turn: &Turn,
        update: UpdateItemFluentBuilder,
        done: impl FnOnce(&Telling) -> bool,
    ) -> Result<bool, StoreError> {
        match self.table.send_update(update).await? {
            Write::Done(_) => Ok(true),
            Write::Refused(None) => Ok(false),
            Write::Refused(Some(item)) => {
                let stands = Telling::decode(&Reader::new("notices", self.key, &item))?;
                Ok(stands.change == turn.change && stands.lease_until.is_none() && done(&stands))
            }
        }
    }

    /// It was told, whoever's turn it is by now.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn told(&self, turn: &Turn) -> Result<(), StoreError> {
        let index = if self.indexed { ", notifying" } else { "" };
        let condition = format!("attribute_exists({}) AND attribute_not_exists(notified)", self.key);
        let update = self
            .update(&turn.key, turn.change, &condition)
            .update_expression(format!(
                "SET notified = :now REMOVE tell_due, tell_lease, tell_worker, tell_error, undeliverable{index}"
            ))
            .expression_attribute_values(":now", time(self.table.world.now()));
        self.table.send_update(update).await.map(|_| ())
    }

    /// The message for a try that is long due is taken for lost: another one is named, which is due now. None: somebody else
    /// went on with the notice.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn remind(&self, key: &str, before: &Telling) -> Result<Option<Timestamp>, StoreError> {
        let now = self.table.world.now();
        let mut same = format!(
            "attribute_exists({}) AND attribute_not_exists(notified) AND attribute_not_exists(undeliverable)",
            self.key
        );
        let stands = [("tell_due", before.due), ("tell_lease", before.lease_until)];
        for (attribute, value) in stands {
            match value {
                Some(_) => same.push_str(&format!(" AND {attribute} = :{attribute}")),
                None => same.push_str(&format!(" AND attribute_not_exists({attribute})")),
            }
        }
        let mut update = self.update(key, before.change, &same);
        for (attribute, value) in stands.into_iter().filter_map(|(attribute, value)| Some((attribute, value?))) {
            update = update.expression_attribute_values(format!(":{attribute}"), time(value));
        }
        let update = update
            .update_expression("SET tell_due = :now REMOVE tell_lease, tell_worker")
            .expression_attribute_values(":now", time(now));
        Ok(matches!(self.table.send_update(update).await?, Write::Done(_)).then_some(now))
    }

    /// Somebody asks for a notice that was given up to be tried anew. The moment the next try is due; none: it was not given
    /// up, or is no longer.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn revive(&self, key: &str, change: Option<u64>) -> Result<Option<Timestamp>, StoreError> {
        let now = self.table.world.now();
        let given_up = "attribute_exists(undeliverable) AND attribute_not_exists(notified)";
        let (index, mut update) = (", notifying = :notifying", self.update(key, change, given_up));
        if self.indexed {
            update = update.expression_attribute_values(":notifying", text(NOTIFYING));
        }
        let update = update
            .update_expression(format!(
                "SET tell_due = :now, tell_since = :now{} REMOVE undeliverable",
                if self.indexed { index } else { "" }
            ))
            .expression_attribute_values(":now", time(now));
        Ok(matches!(self.table.send_update(update).await?, Write::Done(_)).then_some(now))
    }
}
