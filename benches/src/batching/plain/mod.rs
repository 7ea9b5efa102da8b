//! The plain group-batching algorithm (Sun and Shan, "Group-batching Algorithm for High-throughput Network Requests"): each task
//! is a workflow of its own, which stands for election as the leader of its target until some leader has taken its task into a batch. A
//! task's status is written four times (created, batched, in progress, succeeded), under an index by target and status.
//!
//! Where the paper leaves it open, the cheapest way was taken: task and target are stored by one write; statuses of a batch are written by
//! statements, 25 per request. A lock's age is written down, but no lock is taken over: no worker dies here.

mod steps;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use fanfold::clock::World;
use fanfold::delivery::{Delivery, Failures, Step};
use fanfold_local::Invocations;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use tokio::time::Instant;

use super::api::Calls;
use super::{Asked, Task, count};
use crate::Outcome;
use crate::database::{AT_ONCE, put_all, record, statements, text};
use crate::room::Room;

const TEMPLATE: &str = include_str!("template.yaml");

/// Messages of one send.
const SEND: usize = 10;

/// Registers the tasks with every step at work.
pub(super) async fn register(asked: &Asked, calls: &Arc<Calls>, registering: &mut Invocations) -> Outcome<Room> {
    let mut room = Room::new(TEMPLATE, &asked.sources).await?;
    let plain = Arc::new(Plain::new(&room, asked, calls)?);
    for (function, what) in
        [("ElectFunction", What::Elect), ("GroupFunction", What::Group), ("HandleFunction", What::Handle)]
    {
        room.start(function, Arc::new(Part { plain: Arc::clone(&plain), what }))?;
    }
    for tasks in asked.requests() {
        let began = Instant::now();
        plain.store(&tasks).await?;
        count(&room, "RegisterFunction", began, registering);
        asked.pause().await;
    }
    Ok(room)
}

/// The algorithm's tables and queues.
struct Plain {
    dynamodb: aws_sdk_dynamodb::Client,
    sqs: aws_sdk_sqs::Client,
    elect: String,
    group: String,
    handle: String,
    max_batch: usize,
    linger: Duration,
    calls: Arc<Calls>,
    world: World,
}

const TASKS: &str = "TasksTable";
const LOCKS: &str = "LocksTable";
const BATCHES: &str = "BatchesTable";

impl Plain {
    fn new(room: &Room, asked: &Asked, calls: &Arc<Calls>) -> Outcome<Self> {
        Ok(Self {
            dynamodb: room.engine.dynamodb(),
            sqs: room.engine.sqs(),
            elect: room.queue("ElectQueue")?,
            group: room.queue("GroupQueue")?,
            handle: room.queue("HandleQueue")?,
            max_batch: asked.max_batch,
            linger: Duration::from_secs(asked.linger),
            calls: Arc::clone(calls),
            world: World::system(),
        })
    }

    /// Registers tasks and their targets, and begins a workflow for each.
    async fn store(&self, tasks: &[Task]) -> Outcome<()> {
        let ids: Vec<String> = tasks.iter().map(|_| self.world.uuid().to_string()).collect();
        let record = |(task, id): (&Task, &String)| {
            record([
                ("id", text(id)),
                ("target", text(format!("target-{}", task.target))),
                ("step", text("created")),
                ("content", text(format!(r#"{{"number":{},"target":"target-{}"}}"#, task.number, task.target))),
            ])
        };
        put_all(&self.dynamodb, TASKS, tasks.iter().zip(&ids).map(record)).await?;
        self.send(&self.elect, &ids, Duration::ZERO).await
    }

    /// Sends messages.
    async fn send(&self, queue: &str, bodies: &[String], delay: Duration) -> Outcome<()> {
        let delay = i32::try_from(delay.as_secs())?;
        let calls = bodies.chunks(SEND).map(|bodies| async move {
            let entry = |(at, body): (usize, &String)| {
                let entry = SendMessageBatchRequestEntry::builder().id(at.to_string()).message_body(body);
                Ok(entry.delay_seconds(delay).build()?)
            };
            let entries = bodies.iter().enumerate().map(entry).collect::<Outcome<Vec<_>>>()?;
            self.sqs.send_message_batch().queue_url(queue).set_entries(Some(entries)).send().await?;
            Ok(())
        });
        let calls: Vec<_> = calls.collect();
        stream::iter(calls).buffer_unordered(AT_ONCE).try_collect().await
    }

    /// Moves tasks from one status to the next. Returns those that had the first one.
    async fn advance(&self, ids: Vec<String>, from: &str, to: &str) -> Outcome<Vec<String>> {
        let statement = format!("UPDATE \"{TASKS}\" SET step = ? WHERE id = ? AND step = ?");
        let parameters: Vec<Vec<AttributeValue>> = ids.iter().map(|id| vec![text(to), text(id), text(from)]).collect();
        let held = statements(&self.dynamodb, &statement, parameters).await?;
        Ok(ids.into_iter().zip(held).filter(|(_, held)| *held).map(|(id, _)| id).collect())
    }
}

/// A step of the algorithm.
#[derive(Clone, Copy)]
enum What {
    Elect,
    Group,
    Handle,
}

/// A step behind its queue.
struct Part {
    plain: Arc<Plain>,
    what: What,
}

impl Step for Part {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let done = deliveries.into_iter().map(|delivery| async move {
                let done = match self.what {
                    What::Elect => self.plain.elect(&delivery.body).await,
                    What::Group => self.plain.group(&delivery.body).await,
                    What::Handle => self.plain.handle(&delivery.body).await,
                };
                done.err().map(|_| delivery.message_id)
            });
            let done: Vec<_> = done.collect();
            stream::iter(done).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
        }
        .boxed()
    }
}
