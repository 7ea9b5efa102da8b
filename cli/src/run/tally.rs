//! What became of a fan-out's tasks, by its batches.

use std::collections::BTreeMap;

use fanfold::config::variables;
use fanfold::ids::{ItemId, TaskId};
use fanfold::store::batches::{Batch, BatchStatus, Batches};
use fanfold::store::tasks::Tasks;
use fanfold_local::{Engine, Interceptor};
use uuid::Uuid;

use crate::failure::Failure;
use crate::stack::Stack;

/// Sums over the batches of one fan-out.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Batches that were dispatched.
    pub(crate) batches: u64,
    /// Their members.
    pub(crate) members: u64,
    /// Members with an outcome.
    pub(crate) settled: u64,
    /// Calls of the batch API.
    pub(crate) calls: u64,
    /// Items that failed, and why.
    pub(crate) failed: BTreeMap<ItemId, String>,
    /// Batches whose failures could not be told yet, by the reason.
    pub(crate) undelivered: BTreeMap<String, u64>,
}

/// Reads tables without being counted: what is read here serves the report, not the run.
#[derive(Debug)]
pub(crate) struct Auditor {
    engine: Engine,
    batches: Batches,
    table: String,
    tasks: Tasks,
}

/// Lets everything pass; requests seen by it are metered apart.
#[derive(Debug)]
struct Apart;

impl Interceptor for Apart {}

impl Auditor {
    pub(crate) fn new(stack: &Stack) -> Result<Self, Failure> {
        let engine = stack.engine.with_interceptor(std::sync::Arc::new(Apart));
        let surroundings = stack.surroundings_in(&engine, "HandleFunction");
        let world = surroundings.world.clone();
        Ok(Self {
            batches: Batches::new(surroundings.table(variables::BATCHES_TABLE)?, world.clone()),
            table: surroundings.variable(variables::BATCHES_TABLE)?,
            tasks: Tasks::new(surroundings.table(variables::TASKS_TABLE)?, world),
            engine,
        })
    }

    /// Goes through the batches of a fan-out.
    pub(crate) async fn tally(&self, fanout: Uuid) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        let mut start = None;
        loop {
            let scan = self.engine.dynamodb().scan().table_name(&self.table).projection_expression("id");
            let page = scan.set_exclusive_start_key(start).send().await;
            let page = page.map_err(|error| Failure::Internal(format!("the batches cannot be read: {error}")))?;
            let id = |item: &std::collections::HashMap<String, _>| match item.get("id") {
                Some(aws_sdk_dynamodb::types::AttributeValue::S(id)) => id.parse().ok(),
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

    /// The contents of tasks.
    pub(crate) async fn contents(&self, ids: &[TaskId]) -> Result<std::collections::HashMap<TaskId, String>, Failure> {
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
        if items.is_empty() || batch.status == BatchStatus::Grouping {
            return;
        }
        self.batches += 1;
        self.members += items.len() as u64;
        self.calls += u64::from(batch.attempts);
        if let (None, Some(error)) = (batch.telling.told, &batch.telling.error) {
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
