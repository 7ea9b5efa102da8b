//! What producers and workers ask for. They repeat a request that fails.

use std::ops::Range;
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId, expand};
use fanfold::messages::{AckRequest, TaskRequest};
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::tracking::OpenRequest;
use fanfold_register::RegisterError;
use fanfold_sweep::SweepRequest;
use uuid::Uuid;

use crate::stack::TestStack;

impl TestStack {
    /// Opens a fan-out of `items` items with a completion notice.
    pub async fn open(&self, items: u32, seal: bool) -> (Uuid, Vec<ItemId>) {
        loop {
            let request = OpenRequest {
                items,
                seal,
                user_key: Some("test".to_owned()),
                notify: Some(Destination::Queue(NoticesQueue::Notices)),
                ..OpenRequest::default()
            };
            let opened = self.tracking.open(request, Some("open")).await;
            self.crash.revive();
            if let Ok(opened) = opened {
                return (opened.fanout.id, expand(opened.fanout.id, &opened.groups).collect());
            }
        }
    }

    /// Adds items to a fan-out.
    pub async fn add(&self, fanout: Uuid, items: u32, key: &str) -> Vec<ItemId> {
        loop {
            let added = self.tracking.add(fanout, items, Some(key)).await;
            self.crash.revive();
            if let Ok(groups) = added {
                return expand(fanout, &groups).collect();
            }
        }
    }

    /// Seals a fan-out.
    pub async fn seal(&self, fanout: Uuid) {
        while self.tracking.seal(fanout).await.is_err() {
            self.crash.revive();
        }
        self.crash.revive();
    }

    /// Registers tasks.
    pub async fn register(&self, tasks: Vec<TaskRequest>) {
        while let Err(error) = self.register.register(tasks.clone(), "request").await {
            assert!(!matches!(error, RegisterError::Refused(_)), "{error}");
            self.crash.revive();
        }
        self.crash.revive();
    }

    /// Runs a sweep as the schedule does, some time after the last message.
    pub async fn sweep(&self) {
        tokio::time::sleep(Duration::from_secs(300)).await;
        while self.sweeper.sweep(SweepRequest::default()).await.is_err() {
            self.crash.revive();
        }
        self.crash.revive();
    }

    /// Registers a task for every item, all of one target.
    pub async fn register_items(&self, ids: &[ItemId]) -> Vec<TaskId> {
        self.register(ids.iter().enumerate().map(|(n, id)| order(Some(*id), "117", n)).collect()).await;
        ids.iter().map(|id| TaskId::Item(*id)).collect()
    }

    /// Registers orders of a depot, tasks of no fan-out.
    pub async fn register_orders(&self, depot: &str, numbers: Range<usize>) -> Vec<TaskId> {
        let request = format!("{depot}-{numbers:?}");
        let tasks = numbers.map(|n| order(None, depot, n)).collect();
        self.register.register(tasks, &request).await.unwrap().into_iter().map(|task| task.id).collect()
    }
}

/// A task: order `number` for `depot`.
pub fn order(id: Option<ItemId>, depot: &str, number: usize) -> TaskRequest {
    TaskRequest {
        id: id.map(TaskId::Item),
        kind: "parcel".to_owned(),
        content: serde_json::json!({ "depot": depot, "order": format!("ORD-{number}") }),
    }
}

/// Acks of items that succeeded.
pub fn done(items: &[ItemId]) -> AckRequest {
    AckRequest { items: items.iter().copied().map(Into::into).collect(), ..AckRequest::default() }
}
