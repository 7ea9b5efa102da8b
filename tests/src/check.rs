//! What must hold when everything is quiet (DESIGN: "What must hold, always").

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use fanfold::limits::CALLS_MAX;
use fanfold::notice::{FanoutEnded, Notice};
use fanfold::store::batches::{Batch, BatchStatus};
use fanfold::store::locks::is_lane;
use fanfold::store::places::Party;
use uuid::Uuid;

use crate::queues::QueueName;
use crate::stack::TestStack;

impl TestStack {
    /// Every record of a table.
    pub async fn scan(&self, table: &str) -> Vec<HashMap<String, AttributeValue>> {
        let mut pages = self.dynamodb.scan().table_name(table).into_paginator().items().send();
        let mut records = Vec::new();
        while let Some(record) = pages.next().await {
            records.push(record.unwrap());
        }
        records
    }

    /// Every batch there is.
    pub async fn all_batches(&self) -> Vec<Batch> {
        let records = self.scan("BatchesTable").await;
        // Results are in records of their own, under longer ids.
        let ids: Vec<Uuid> =
            records.iter().filter_map(|item| item["id"].as_s().unwrap().parse::<Uuid>().ok()).collect();
        self.batches.get_many(&ids).await.unwrap()
    }

    /// Records of a table that DynamoDB will delete some day.
    pub async fn expiring(&self, table: &str) -> usize {
        self.scan(table).await.iter().filter(|item| item.contains_key("ttl")).count()
    }

    /// Checks that the stack is idle and that each of `tasks` ended in exactly one batch, all members of which share its
    /// lane and which is no larger than allowed. Returns the batches by task.
    pub async fn assert_settled(&self, tasks: &[TaskId], max_batch: usize) -> BTreeMap<TaskId, Batch> {
        let mut by_task = BTreeMap::new();
        for batch in self.all_batches().await {
            assert_eq!(batch.status, BatchStatus::Done, "{batch:?}");
            assert!(batch.members.len() <= max_batch, "{batch:?}");
            assert!(batch.unsettled().is_empty(), "{batch:?}");
            assert!(batch.succeeded.and(&batch.failed).is_zero(), "{batch:?}");
            for id in batch.members.ids() {
                assert_eq!(self.tasks.get(id).await.unwrap().unwrap().lane, batch.lane);
                let before = by_task.insert(*id, batch.clone());
                assert!(before.is_none(), "{id} is a member of {before:?} and of {batch:?}");
            }
        }
        let handled: BTreeSet<&TaskId> = by_task.keys().collect();
        assert_eq!(handled, tasks.iter().collect(), "every task ends in a batch");
        self.assert_called_as_recorded(&by_task);
        self.assert_locks_free().await;
        assert_eq!(self.backlog().await, 0);
        by_task
    }

    /// Every member was handed to the batch API, and only under its own batch's keys.
    fn assert_called_as_recorded(&self, by_task: &BTreeMap<TaskId, Batch>) {
        for (key, members) in self.api.members_by_key() {
            for member in members {
                let batch = &by_task[&member.parse::<TaskId>().unwrap()];
                assert!(
                    key.starts_with(&batch.id.to_string()),
                    "{member} was called for under {key}, not {}",
                    batch.id
                );
            }
        }
    }

    /// No lane has a leader, or a batch in flight or closing; no call holds a place.
    pub async fn assert_locks_free(&self) {
        let records = self.scan("LocksTable").await;
        let keys: Vec<&String> = records.iter().map(|item| item["lane"].as_s().unwrap()).collect();
        for kind in keys.iter().filter_map(|key| Party::kind(key)) {
            assert_eq!(self.places(kind).await, 0, "places of kind {kind}");
        }
        for key in keys.into_iter().filter(|key| is_lane(key)) {
            let lane: Lane = key.parse().unwrap();
            let lock = self.locks.get(&lane).await.unwrap();
            assert!(lock.idle(), "{lock:?}");
        }
    }

    /// Places that calls of a kind hold.
    pub async fn places(&self, kind: &str) -> usize {
        self.gates.held(kind, CALLS_MAX, self.world.now()).await.unwrap()
    }

    /// The notices of ends that were delivered, by id; a notice delivered again must say the same.
    pub async fn completions(&self) -> Vec<FanoutEnded> {
        let mut notices: BTreeMap<Uuid, Notice> = BTreeMap::new();
        for delivery in self.take(QueueName::Notices).await {
            let notice: Notice = serde_json::from_str(&delivery.body).unwrap();
            let known = notices.entry(notice.id).or_insert_with(|| notice.clone());
            assert_eq!(known, &notice);
        }
        notices.into_values().filter_map(|notice| notice.event.end().cloned()).collect()
    }
}
