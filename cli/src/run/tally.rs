//! What became of a fan-out's tasks, by its batches.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{AttributeValue, Select};
use fanfold::config::variables;
use fanfold::ids::{ItemId, TaskId};
use fanfold::store::batches::{Batch, BatchStatus, Batches};
use fanfold::store::producers::{Partition, Producers};
use fanfold::store::tasks::{Content, DUPLICATE, Tasks};
use fanfold_local::Engine;
use uuid::Uuid;

use crate::failure::Failure;
use crate::stack::EmbeddedStack;

/// Sums over the batches of one fan-out.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Batches that were formed.
    pub(crate) batches: u64,
    /// Their members.
    pub(crate) members: u64,
    /// Members with an outcome.
    pub(crate) settled: u64,
    /// Attempts, each of which is a call, or none if no member could be called.
    pub(crate) calls: u64,
    /// Calls after the first of their batch. A batch that was not called yet has none.
    pub(crate) retries: u64,
    /// Items that failed, and why.
    pub(crate) failed: BTreeMap<ItemId, String>,
    /// Batches whose notice of failures is not delivered yet, by the reason.
    pub(crate) undelivered: BTreeMap<String, u64>,
}

/// Reads tables without being counted: what is read here serves the report, not the run.
#[derive(Debug)]
pub(crate) struct Auditor {
    engine: Engine,
    batches: Batches,
    batches_table: String,
    tasks: Tasks,
    tasks_table: String,
    producers: Producers,
}

impl Auditor {
    pub(crate) fn new(stack: &EmbeddedStack) -> Result<Self, Failure> {
        let engine = stack.engine.metered_apart();
        let surroundings = stack.surroundings_in(&engine, "HandleFunction");
        Ok(Self {
            batches: Batches::new(surroundings.table(variables::BATCHES_TABLE)?),
            batches_table: surroundings.variable(variables::BATCHES_TABLE)?,
            tasks: Tasks::new(surroundings.table(variables::TASKS_TABLE)?),
            tasks_table: surroundings.variable(variables::TASKS_TABLE)?,
            producers: Producers::new(
                stack.surroundings_in(&engine, "ProduceFunction").table(variables::PRODUCERS_TABLE)?,
            ),
            engine,
        })
    }

    /// Goes through the batches of a fan-out.
    pub(crate) async fn tally(&self, fanout: Uuid) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        let mut start = None;
        loop {
            let scan = self.engine.dynamodb().scan().table_name(&self.batches_table).projection_expression("id");
            let page = scan.set_exclusive_start_key(start).send().await;
            let page = page.map_err(|error| Failure::Local(format!("the batches cannot be read: {error}")))?;
            let id = |item: &std::collections::HashMap<String, _>| match item.get("id") {
                Some(AttributeValue::S(id)) => id.parse().ok(),
                _ => None,
            };
            let ids: Vec<Uuid> = page.items().iter().filter_map(id).collect();
            for batch in self.batches.get_many(&ids).await? {
                tally.add(&batch, fanout);
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(tally);
            }
        }
    }

    /// How many tasks of a fan-out are duplicates: reads the whole table of tasks.
    pub(crate) async fn duplicates(&self, fanout: Uuid) -> Result<u64, Failure> {
        let scan = self.engine.dynamodb().scan().table_name(&self.tasks_table).select(Select::Count);
        let scan = scan.filter_expression("#status = :duplicate AND begins_with(id, :fanout)");
        let scan = scan.expression_attribute_names("#status", "status");
        let scan = scan.expression_attribute_values(":duplicate", AttributeValue::S(DUPLICATE.to_owned()));
        let scan = scan.expression_attribute_values(":fanout", AttributeValue::S(fanout.to_string()));
        let (mut count, mut start) = (0, None);
        loop {
            let page = scan.clone().set_exclusive_start_key(start).send().await;
            let page = page.map_err(|error| Failure::Local(format!("the tasks cannot be read: {error}")))?;
            count += u64::try_from(page.count).unwrap_or_default();
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(count);
            }
        }
    }

    /// The partitions of a fan-out's producer.
    pub(crate) async fn partitions(&self, fanout: Uuid, of: u32) -> Result<Vec<Partition>, Failure> {
        Ok(self.producers.all(fanout, of).await?)
    }

    /// The contents of tasks.
    pub(crate) async fn contents(&self, ids: &[TaskId]) -> Result<std::collections::HashMap<TaskId, Content>, Failure> {
        Ok(self.tasks.contents(ids).await?)
    }
}

impl Tally {
    fn add(&mut self, batch: &Batch, fanout: Uuid) {
        let items: Vec<(usize, ItemId)> = batch
            .members
            .ids()
            .iter()
            .enumerate()
            .filter_map(|(slot, id)| match id {
                TaskId::Item(item) if item.fanout == fanout => Some((slot, *item)),
                _ => None,
            })
            .collect();
        // Nothing of it was called before its members' fan-outs were cut short.
        let uncalled = batch.attempts <= 1 && batch.dropped.count() == batch.members.ids().len() as u64;
        if items.is_empty() || batch.status == BatchStatus::Grouping || uncalled {
            return;
        }
        self.batches += 1;
        self.members += items.len() as u64;
        self.calls += u64::from(batch.attempts);
        self.retries += u64::from(batch.attempts.saturating_sub(1));
        if let (None, Some(error)) = (batch.notice.delivered, &batch.notice.error) {
            *self.undelivered.entry(error.clone()).or_default() += 1;
        }
        for (slot, item) in items {
            if batch.failed.get(slot) {
                self.failed.insert(item, batch.error(slot).unwrap_or_default().to_owned());
            }
            self.settled += u64::from(batch.failed.get(slot) || batch.succeeded.get(slot));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use fanfold::clock::Timestamp;
    use fanfold::members::Members;

    use super::*;

    /// A batch of one item of a fan-out, with so many attempts.
    fn batch(fanout: Uuid, index: u16, attempts: u32) -> Batch {
        let members = Members::new([TaskId::Item(ItemId { fanout, group: fanout, index })]);
        let lane = "row:0:a".parse().unwrap();
        let status = if attempts == 0 { BatchStatus::Formed } else { BatchStatus::InProgress };
        Batch { status, attempts, ..Batch::intended(Uuid::nil(), lane, members, Timestamp(0)) }
    }

    #[test]
    fn batches_that_were_not_called_hide_no_retries() {
        let (fanout, mut tally) = (Uuid::from_u128(1), Tally::default());
        for (index, attempts) in [(0, 0), (1, 0), (2, 0), (3, 1), (4, 3)] {
            tally.add(&batch(fanout, index, attempts), fanout);
        }
        assert_eq!((tally.batches, tally.calls, tally.retries), (5, 4, 2));
    }
}
