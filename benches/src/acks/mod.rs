//! A fan-out acked by several workers over the ack queue, each item several times in random order. Who tracks it is chosen:
//! Fanfold, or one of two simpler trackers behind the same queue, with the same messages.

mod bits64;
mod bodies;
mod counter;
mod ours;
pub(crate) mod path;
mod simple;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use clap::{Args, ValueEnum};
use fanfold::delivery::Step;
use fanfold::ids::ItemId;
use fanfold_local::Engine;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::room::{Room, Tuned};
use crate::{Outcome, report};
use bodies::Shape;

/// The stack as it is deployed.
const TEMPLATE: &str = include_str!("../../../template.yaml");

/// Messages of one send.
const SEND: usize = 10;

/// Their bytes.
const SEND_BYTES: usize = 256 * 1024;

/// After the end, notices that should not be there are waited for so long.
const LATE: Duration = Duration::from_secs(1);

/// What is asked for.
#[derive(Clone, Debug, Args)]
pub(crate) struct Asked {
    /// Who tracks the fan-out.
    #[arg(long, value_enum)]
    tracker: Who,
    /// Items of the fan-out.
    #[arg(long)]
    items: u32,
    /// Workers that ack.
    #[arg(long, default_value_t = 16)]
    ackers: usize,
    /// Items that one message acks.
    #[arg(long, default_value_t = 100)]
    per_message: usize,
    /// How often each item is acked.
    #[arg(long, default_value_t = 2)]
    times: usize,
    /// How a message names them.
    #[arg(long, value_enum, default_value_t = Shape::Ids)]
    shape: Shape,
    /// Acks come in the order of the items but for so many, which are shuffled; without it all are.
    #[arg(long)]
    near: Option<usize>,
    /// One item in so many fails; 0: none.
    #[arg(long, default_value_t = 100)]
    fails: usize,
    /// Milliseconds between two requests of a worker.
    #[arg(long, default_value_t = 0)]
    every_ms: u64,
    /// A function, its batch size and window in seconds, if other than the template's: `AckFunction=10,0`.
    #[arg(long = "source")]
    sources: Vec<Tuned>,
}

/// Who tracks.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Who {
    /// Fanfold: groups of up to 7,168 items.
    Fanfold,
    /// A record per item, and a counter of those that are open.
    Counter,
    /// Groups of 64 items.
    Bits64,
}

/// Tracks a fan-out.
trait Tracker: Send + Sync {
    /// Opens and seals a fan-out of so many items.
    fn open(&self, items: u32) -> BoxFuture<'_, Outcome<Vec<ItemId>>>;
    /// What takes acks from the queue. Somebody sends a notice when the last item is done.
    fn step(self: Arc<Self>) -> Arc<dyn Step>;
}

/// Runs it.
pub(crate) async fn run(asked: &Asked) -> Outcome<Value> {
    let mut room = Room::new(TEMPLATE, &asked.sources).await?;
    let tracker: Arc<dyn Tracker> = match asked.tracker {
        Who::Fanfold => Arc::new(ours::Ours::new(&mut room)?),
        Who::Counter => Arc::new(simple::Simple::new(&room, counter::Counter)?),
        Who::Bits64 => Arc::new(simple::Simple::new(&room, bits64::Bits64)?),
    };
    let workers = room.engine.metered_apart();
    let notices = Notices { sqs: workers.sqs(), url: room.queue("NoticesQueue")? };
    let before = room.engine.usage();
    let began = Instant::now();
    let items = tracker.open(asked.items).await?;
    let opening = began.elapsed();
    let opened = room.engine.usage();
    room.start("AckFunction", tracker.step())?;
    let began = Instant::now();
    let sent = start(acks(&items, asked), &workers, &room.queue("AckQueue")?, asked);
    let first = notices.next(Duration::from_secs(3_600)).await?.ok_or("there was no notice within an hour")?;
    let took = began.elapsed();
    for sent in sent {
        sent.await??;
    }
    room.silent().await?;
    let sends = workers.usage().by_operation.get("sqs.SendMessageBatch").map_or(0, |sends| sends.requests);
    let acked = room.engine.usage();
    let count = 1 + notices.rest().await?;
    let failed = (0..items.len()).filter(|at| asked.fails(*at)).count() as u64;
    let exact = count == 1
        && first["data"]["failed"] == failed
        && first["data"]["succeeded"] == u64::from(asked.items) - failed;
    let invocations = room.invocations();
    let per = u64::from(asked.items);
    Ok(json!({
        "items": asked.items,
        "acks": items.len() * asked.times,
        "ackers": asked.ackers,
        "per_message": asked.per_message,
        "opening_seconds": opening.as_secs_f64(),
        "seconds": took.as_secs_f64(),
        "opening": report::used(&before, &opened, [].iter(), per),
        "acking": report::used(&opened, &acked, invocations.values(), per),
        "shape": format!("{:?}", asked.shape).to_lowercase(),
        "near": asked.near,
        "workers_sqs_requests": sends,
        "notices": count,
        "succeeded": first["data"]["succeeded"],
        "failed": first["data"]["failed"],
        "exact": exact,
    }))
}

impl Asked {
    /// Whether the item at a position fails.
    fn fails(&self, at: usize) -> bool {
        self.fails > 0 && at.is_multiple_of(self.fails)
    }
}

/// What each worker acks: together they ack each item so many times, in a random order that is always the same.
fn acks(items: &[ItemId], asked: &Asked) -> Vec<Vec<(ItemId, bool)>> {
    let once: Vec<(ItemId, bool)> = items.iter().enumerate().map(|(at, item)| (*item, asked.fails(at))).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut all = Vec::with_capacity(once.len() * asked.times);
    for near in once.chunks(asked.near.unwrap_or(once.len()).max(1)) {
        let mut near = near.repeat(asked.times);
        random.shuffle(&mut near);
        all.extend(near);
    }
    let ackers = asked.ackers.max(1);
    (0..ackers).map(|acker| all.iter().skip(acker).step_by(ackers).copied().collect()).collect()
}

/// Sets workers to work, each with its acks.
fn start(acks: Vec<Vec<(ItemId, bool)>>, workers: &Engine, url: &str, asked: &Asked) -> Vec<JoinHandle<Outcome<()>>> {
    let start = |acks: Vec<(ItemId, bool)>| {
        let (sqs, url, asked) = (workers.sqs(), url.to_owned(), asked.clone());
        tokio::spawn(async move { send(&sqs, &url, &acks, &asked).await })
    };
    acks.into_iter().map(start).collect()
}

/// Sends a worker's acks: as many messages in a request as it may have.
async fn send(sqs: &aws_sdk_sqs::Client, url: &str, acks: &[(ItemId, bool)], asked: &Asked) -> Outcome<()> {
    let (mut entries, mut bytes) = (Vec::with_capacity(SEND), 0);
    for acks in acks.chunks(asked.per_message.max(1)) {
        for body in bodies::of(acks, asked.shape)? {
            if entries.len() == SEND || (!entries.is_empty() && bytes + body.len() > SEND_BYTES) {
                send_now(sqs, url, std::mem::take(&mut entries)).await?;
                bytes = 0;
                tokio::time::sleep(Duration::from_millis(asked.every_ms)).await;
            }
            bytes += body.len();
            let entry = SendMessageBatchRequestEntry::builder().id(entries.len().to_string());
            entries.push(entry.message_body(body).build()?);
        }
    }
    if entries.is_empty() { Ok(()) } else { send_now(sqs, url, entries).await }
}

async fn send_now(sqs: &aws_sdk_sqs::Client, url: &str, entries: Vec<SendMessageBatchRequestEntry>) -> Outcome<()> {
    let answer = sqs.send_message_batch().queue_url(url).set_entries(Some(entries)).send().await?;
    match answer.failed.first() {
        Some(refused) => Err(format!("a message was refused: {refused:?}").into()),
        None => Ok(()),
    }
}

/// The notices of a stack.
struct Notices {
    sqs: aws_sdk_sqs::Client,
    url: String,
}

impl Notices {
    /// The next one, if it comes in time.
    async fn next(&self, within: Duration) -> Outcome<Option<Value>> {
        let until = Instant::now() + within;
        while Instant::now() < until {
            let receive = self.sqs.receive_message().queue_url(&self.url).wait_time_seconds(1).send().await?;
            if let Some(message) = receive.messages.unwrap_or_default().first() {
                let receipt = message.receipt_handle().unwrap_or_default();
                self.sqs.delete_message().queue_url(&self.url).receipt_handle(receipt).send().await?;
                return Ok(Some(serde_json::from_str(message.body().unwrap_or_default())?));
            }
        }
        Ok(None)
    }

    /// How many more there are.
    async fn rest(&self) -> Outcome<usize> {
        let mut count = 0;
        while self.next(LATE).await?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}
