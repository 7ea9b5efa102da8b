//! What producers and workers ask for. They repeat a request that fails.

use std::fmt::Display;
use std::ops::Range;
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId, expand};
use fanfold::messages::{AckEntry, AckRequest, TaskRequest};
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::store::fanouts::Fanout;
use fanfold::tracking::{ItemState, OpenRequest};
use fanfold_sweep::{SweepReport, SweepRequest};
use uuid::Uuid;

use crate::stack::TestStack;

impl TestStack {
    /// Asks as a user does, who repeats what fails, but not for ever.
    pub async fn insist<T, E: Display>(&self, request: impl AsyncFn() -> Result<T, E>) -> T {
        let mut tries = 0;
        loop {
            let answer = request().await;
            self.crash.revive();
            match answer {
                Ok(answer) => return answer,
                Err(error) => assert!(tries < 100, "{error}"),
            }
            tries += 1;
        }
    }

    /// Opens a fan-out of `items` items with a completion notice.
    pub async fn open(&self, items: u32, seal: bool) -> (Uuid, Vec<ItemId>) {
        let user_key = Some("test".to_owned());
        self.open_with(OpenRequest { items, seal, user_key, ..OpenRequest::default() }).await
    }

    /// Opens a fan-out as it is asked for, with a notice of its end to the stack's queue.
    pub async fn open_with(&self, request: OpenRequest) -> (Uuid, Vec<ItemId>) {
        let request = OpenRequest { notify: Some(Destination::Queue(NoticesQueue::Notices)), ..request };
        self.open_as(&request, "open").await
    }

    /// Opens a fan-out under this idempotency key. Returns the ids of its items, too.
    pub async fn open_as(&self, request: &OpenRequest, key: &str) -> (Uuid, Vec<ItemId>) {
        let opened = self.insist(async || self.tracking.open(request.clone(), Some(key)).await).await;
        (opened.fanout.id, expand(opened.fanout.id, &opened.groups).collect())
    }

    /// The header of a fan-out.
    pub async fn header(&self, fanout: Uuid) -> Fanout {
        self.insist(async || self.tracking.fanouts.get(fanout).await).await.unwrap()
    }

    /// The state of an item.
    pub async fn item(&self, item: &ItemId) -> ItemState {
        self.insist(async || self.tracking.item(item).await).await
    }

    /// Adds items to a fan-out.
    pub async fn add(&self, fanout: Uuid, items: u32, key: &str) -> Vec<ItemId> {
        let groups = self.insist(async || self.tracking.add(fanout, items, Some(key)).await).await;
        expand(fanout, &groups).collect()
    }

    /// Seals a fan-out.
    pub async fn seal(&self, fanout: Uuid) {
        self.insist(async || self.tracking.seal(fanout).await).await;
    }

    /// Acks items.
    pub async fn ack(&self, acks: &AckRequest) {
        self.insist(async || self.ack.apply(acks).await).await;
    }

    /// Registers tasks.
    pub async fn register(&self, tasks: Vec<TaskRequest>) {
        self.insist(async || self.register.register(tasks.clone(), "request").await).await;
    }

    /// Runs a sweep as the schedule does, some time after the last message.
    pub async fn sweep(&self) -> SweepReport {
        tokio::time::sleep(Duration::from_secs(300)).await;
        self.sweep_now().await
    }

    /// Delivers and sweeps until nothing is left to be done.
    pub async fn rest(&self) {
        self.drain().await;
        for _ in 0..2 {
            self.sweep().await;
            self.drain().await;
        }
    }

    /// Runs a sweep without a pause.
    pub async fn sweep_now(&self) -> SweepReport {
        self.insist(async || self.sweeper.sweep(SweepRequest::default()).await).await
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

/// An id that nothing has.
pub const NOBODY: &str = "01890000-0000-7000-8000-000000000001";

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
    AckRequest { items: entries(items), ..AckRequest::default() }
}

/// Acks of items that failed.
pub fn failed(items: &[ItemId]) -> AckRequest {
    AckRequest { failed: entries(items), ..AckRequest::default() }
}

fn entries(items: &[ItemId]) -> Vec<AckEntry> {
    items.iter().copied().map(AckEntry::Item).collect()
}
