//! Notices: each is delivered by one chain of tries, in the time its receiver asks for, and given up in the end.

mod aws;
mod batches;
mod chain;
mod chosen;
mod crashes;
mod kinds;
mod late;
mod missing;
mod once;
mod overtaken;
mod progress;
mod progress_crashes;
mod receivers;
mod signatures;

use std::time::Duration;

use fanfold::ids::{ItemId, expand};
use fanfold::messages::AckRequest;
use fanfold::policy::Destination;
use fanfold::store::fanouts::Fanout;
use fanfold::tracking::OpenRequest;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, done};
use serde_json::json;
use uuid::Uuid;

const URL: &str = "https://receiver.example/hook";

async fn stack() -> TestStack {
    TestStack::with(json!({})).await
}

/// Opens a small sealed fan-out with a notice of its end to a URL. The producer repeats a call that fails.
async fn open(stack: &TestStack, url: &str, items: u32, key: &str) -> (Uuid, Vec<ItemId>) {
    let notify = Some(Destination::Url(url.to_owned()));
    stack.open_as(&OpenRequest { items, seal: true, notify, ..OpenRequest::default() }, key).await
}

/// A fan-out that just completed, with its hint in the queue.
async fn completed(stack: &TestStack, url: &str) -> Uuid {
    let (fanout, ids) = open(stack, url, 2, url).await;
    stack.ack.apply(&done(&ids)).await.unwrap();
    fanout
}

/// Delivers what comes to `notify` for so long, looking every `step`.
async fn run_for(stack: &TestStack, span: Duration, step: Duration) {
    let end = stack.world.now().plus(span);
    while stack.world.now() < end {
        while stack.deliver(QueueName::Notify).await > 0 {}
        tokio::time::sleep(step).await;
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);
