//! Measures the embedded queues: `cargo run --release -p fanfold-local --example pump_speed`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use fanfold::delivery::{Delivery, Failures, Step};
use fanfold_local::{Engine, EventSource, Pump, Template};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

/// A measurement, or why it cannot be made.
type Measured<T> = Result<T, Box<dyn Error>>;

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

async fn send(sqs: &aws_sdk_sqs::Client, url: &str, count: usize, delay: i32) -> Measured<()> {
    let entry = |id: usize| {
        let entry = SendMessageBatchRequestEntry::builder().id(id.to_string()).message_body("x".repeat(200));
        entry.delay_seconds(delay).build()
    };
    let entries = (0..10).map(entry).collect::<Result<Vec<_>, _>>()?;
    let call = || sqs.send_message_batch().queue_url(url).set_entries(Some(entries.clone())).send();
    let mut answers = stream::iter((0..count / 10).map(|_| call())).buffer_unordered(8);
    while let Some(answer) = answers.next().await {
        if let Some(refused) = answer?.failed.first() {
            return Err(format!("an entry was refused: {refused:?}").into());
        }
    }
    Ok(())
}

/// An engine with the template's queue, and what is behind it.
async fn engine() -> Measured<(Engine, EventSource)> {
    let template = Template::parse(TEMPLATE)?;
    let engine = Engine::memory()?;
    engine.provision(&template).await?;
    let source = template.event_sources().first().ok_or("the template has no event source")?.clone();
    Ok((engine, source))
}

async fn measure(delayed: usize, messages: usize, producing_while_pumping: bool) -> Measured<()> {
    let (engine, source) = engine().await?;
    let (sqs, url) = (engine.sqs(), source.queue_url.clone());
    let start = Instant::now();
    send(&sqs, &url, delayed, 900).await?;
    let sending_delayed = start.elapsed();
    let counter = Arc::new(Counter::default());
    let start = Instant::now();
    if !producing_while_pumping {
        send(&sqs, &url, messages, 0).await?;
    }
    let sending = start.elapsed();
    let start = Instant::now();
    let pump = Pump::start(engine.sqs(), source, counter.clone());
    if producing_while_pumping {
        send(&sqs, &url, messages, 0).await?;
    }
    while counter.messages.load(Ordering::Relaxed) < messages {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let taken = start.elapsed();
    pump.stop().await;
    let drained = start.elapsed();
    let backlog = engine.backlog(&url).await?;
    assert_eq!(backlog.delayed, delayed as u64);
    println!(
        "{delayed} delayed (sent in {sending_delayed:.1?}), {messages} messages {}: sent in {sending:.1?}, delivered in \
         {taken:.1?} ({:.0}/s) in {} batches, deleted after {drained:.1?}",
        if producing_while_pumping { "sent meanwhile" } else { "waiting" },
        messages as f64 / taken.as_secs_f64(),
        counter.batches.load(Ordering::Relaxed),
    );
    Ok(())
}

/// A queue all of whose messages are due at the same second.
async fn measure_due(messages: usize) -> Measured<()> {
    let (engine, source) = engine().await?;
    let counter = Arc::new(Counter::default());
    let start = Instant::now();
    send(&engine.sqs(), &source.queue_url, messages, 5).await?;
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
    Ok(())
}

/// Ten slow steps: thousands of messages are in flight.
async fn measure_slow(messages: usize, pause: Duration) -> Measured<()> {
    let (engine, source) = engine().await?;
    let url = source.queue_url.clone();
    send(&engine.sqs(), &url, messages, 0).await?;
    let counter = Arc::new(Counter { pause, ..Counter::default() });
    let start = Instant::now();
    let pump = Pump::start(engine.sqs(), source, counter.clone());
    let mut in_flight = 0;
    while counter.messages.load(Ordering::Relaxed) < messages {
        tokio::time::sleep(Duration::from_millis(50)).await;
        in_flight = in_flight.max(engine.backlog(&url).await?.in_flight);
    }
    println!(
        "{messages} messages to steps of {pause:?}: all taken in {:.1?}, {in_flight} in flight at most",
        start.elapsed()
    );
    pump.stop().await;
    Ok(())
}

#[tokio::main]
async fn main() -> Measured<()> {
    measure(0, 200_000, false).await?;
    measure(0, 200_000, true).await?;
    measure(20_000, 20_000, false).await?;
    measure(100_000, 20_000, false).await?;
    measure(100_000, 200_000, true).await?;
    measure_due(100_000).await?;
    measure_slow(100_000, Duration::from_secs(1)).await?;
    Ok(())
}
