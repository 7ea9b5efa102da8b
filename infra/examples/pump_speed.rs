//! Measures the embedded queues: `cargo run --release -p fanfold-local --example pump_speed`. A measurement that cannot be
//! made ends with the reason: there is nobody to return an error to.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use fanfold::delivery::{Delivery, Failures, Step};
use fanfold_local::{Engine, Pump, Template};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

const TEMPLATE: &str = "
Resources:
  WorkQueue:
    Type: AWS::SQS::Queue
    Properties: {VisibilityTimeout: 180}
  WorkFunction:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 30
      Events:
        Work:
          Type: SQS
          Properties:
            Queue: !GetAtt WorkQueue.Arn
            BatchSize: 1000
            MaximumBatchingWindowInSeconds: 2
            FunctionResponseTypes: [ReportBatchItemFailures]
";

/// Counts what it is given, and takes its time.
#[derive(Default)]
struct Counter {
    pause: Duration,
    messages: AtomicUsize,
    batches: AtomicUsize,
}

impl Step for Counter {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        self.messages.fetch_add(deliveries.len(), Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
        async {
            tokio::time::sleep(self.pause).await;
            Failures::new()
        }
        .boxed()
    }
}

async fn send(sqs: &aws_sdk_sqs::Client, url: &str, count: usize, delay: i32) {
    let calls = (0..count / 10).map(|_| {
        let mut call = sqs.send_message_batch().queue_url(url);
        for id in 0..10 {
            let entry = SendMessageBatchRequestEntry::builder().id(id.to_string()).message_body("x".repeat(200));
            call = call.entries(entry.delay_seconds(delay).build().unwrap());
        }
        call.send()
    });
    stream::iter(calls)
        .buffer_unordered(8)
        .for_each(|answer| async move { assert!(answer.unwrap().failed.is_empty()) })
        .await;
}

async fn measure(delayed: usize, messages: usize, producing_while_pumping: bool) {
    let template = Template::parse(TEMPLATE).unwrap();
    let engine = Engine::memory().unwrap();
    engine.provision(&template).await.unwrap();
    let source = template.event_sources()[0].clone();
    let (sqs, url) = (engine.sqs(), source.queue_url.clone());
    let start = Instant::now();
    send(&sqs, &url, delayed, 900).await;
    let sending_delayed = start.elapsed();
    let counter = Arc::new(Counter::default());
    let start = Instant::now();
    if !producing_while_pumping {
        send(&sqs, &url, messages, 0).await;
    }
    let sending = start.elapsed();
    let start = Instant::now();
    let pump = Pump::start(engine.sqs(), source, counter.clone());
    if producing_while_pumping {
        send(&sqs, &url, messages, 0).await;
    }
    while counter.messages.load(Ordering::Relaxed) < messages {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let taken = start.elapsed();
    pump.stop().await;
    let drained = start.elapsed();
    let backlog = engine.backlog(&url).await.unwrap();
    assert_eq!(backlog.delayed, delayed as u64);
    println!(
        "{delayed} delayed (sent in {sending_delayed:.1?}), {messages} messages {}: sent in {sending:.1?}, delivered in \
         {taken:.1?} ({:.0}/s) in {} batches, deleted after {drained:.1?}",
        if producing_while_pumping { "sent meanwhile" } else { "waiting" },
        messages as f64 / taken.as_secs_f64(),
        counter.batches.load(Ordering::Relaxed),
    );
}

/// A queue all of whose messages are due at the same second.
async fn measure_due(messages: usize) {
    let template = Template::parse(TEMPLATE).unwrap();
    let engine = Engine::memory().unwrap();
    engine.provision(&template).await.unwrap();
    let source = template.event_sources()[0].clone();
    let counter = Arc::new(Counter::default());
    let start = Instant::now();
    send(&engine.sqs(), &source.queue_url, messages, 5).await;
    let sent = start.elapsed();
    let pump = Pump::start(engine.sqs(), source, counter.clone());
    while counter.messages.load(Ordering::Relaxed) < messages {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!(
        "{messages} messages delayed by 5 s: sent in {sent:.1?}, all delivered {:.1?} after the first was sent",
        start.elapsed()
    );
    pump.stop().await;
}

/// Ten slow steps: thousands of messages are in flight.
async fn measure_slow(messages: usize, pause: Duration) {
    let template = Template::parse(TEMPLATE).unwrap();
    let engine = Engine::memory().unwrap();
    engine.provision(&template).await.unwrap();
    let source = template.event_sources()[0].clone();
    send(&engine.sqs(), &source.queue_url, messages, 0).await;
    let counter = Arc::new(Counter { pause, ..Counter::default() });
    let start = Instant::now();
    let pump = Pump::start(engine.sqs(), source, counter.clone());
    let mut in_flight = 0;
    while counter.messages.load(Ordering::Relaxed) < messages {
        tokio::time::sleep(Duration::from_millis(50)).await;
        in_flight = in_flight.max(engine.backlog(&template.queue("WorkQueue").unwrap().url()).await.unwrap().in_flight);
    }
    println!(
        "{messages} messages to steps of {pause:?}: all taken in {:.1?}, {in_flight} in flight at most",
        start.elapsed()
    );
    pump.stop().await;
}

#[tokio::main]
async fn main() {
    measure(0, 200_000, false).await;
    measure(0, 200_000, true).await;
    measure(20_000, 20_000, false).await;
    measure(100_000, 20_000, false).await;
    measure(100_000, 200_000, true).await;
    measure_due(100_000).await;
    measure_slow(100_000, Duration::from_secs(1)).await;
}
