//! Moving messages from queues to steps. Time is paused: it passes only while everybody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use fanfold::delivery::Delivery;
use fanfold_local::{Backlog, Engine, EventSource, Fate, Interceptor, Pump, ServiceRequest};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::sleep;

use crate::stack::{engine, template, url};
use crate::worker::{Deed, Worker};

/// The visibility timeout of the queue.
const VISIBILITY: Duration = Duration::from_secs(60);

fn source(batch_size: usize, window: u64) -> EventSource {
    EventSource { batch_size, window: Duration::from_secs(window), ..template().event_sources()[0].clone() }
}

async fn send(engine: &Engine, bodies: impl IntoIterator<Item = impl ToString>) {
    let sqs = engine.sqs();
    for body in bodies {
        sqs.send_message().queue_url(url("WorkQueue")).message_body(body.to_string()).send().await.unwrap();
    }
}

/// Sends ten messages by one request, each with this delay.
async fn send_ten(engine: &Engine, delay: i32) {
    let entry = |n: i32| {
        let body = SendMessageBatchRequestEntry::builder().id(n.to_string()).message_body(n.to_string());
        body.delay_seconds(delay).build().unwrap()
    };
    let request = engine.sqs().send_message_batch().queue_url(url("WorkQueue"));
    request.set_entries(Some((0..10).map(entry).collect())).send().await.unwrap();
}

async fn backlog(engine: &Engine) -> Backlog {
    engine.backlog(&url("WorkQueue")).await.unwrap()
}

/// Waits until the queue is empty.
async fn drained(engine: &Engine) {
    for _ in 0..10_000 {
        if backlog(engine).await.total() == 0 {
            return;
        }
        sleep(Duration::from_secs(1)).await;
    }
    panic!("the queue does not drain: {:?}", backlog(engine).await);
}

/// The failures of a batch: those of its messages that `which` names, at their first delivery.
fn first_time(deliveries: &[Delivery], which: impl Fn(&Delivery) -> bool) -> Vec<String> {
    let failed = deliveries.iter().filter(|delivery| delivery.receive_count == 1 && which(delivery));
    failed.map(|delivery| delivery.message_id.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_at_most_its_size() {
    let engine = engine().await;
    send(&engine, 10..35).await;
    let worker = Worker::new(|_| Deed::Done);
    let pump = Pump::start(engine.sqs(), source(4, 0), worker.clone());
    drained(&engine).await;
    let invoked = pump.stop_or(std::future::pending()).await;
    assert_eq!((invoked.count, invoked.gb_seconds), (7, 0.0), "by a clock that stands still");
    assert_eq!(worker.sizes(), [4, 4, 4, 4, 4, 4, 1]);
    assert_eq!(worker.bodies(), (10..35).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_window_opens_with_the_first_message_and_gathers_until_it_closes() {
    let engine = engine().await;
    let worker = Worker::new(|_| Deed::Done);
    let pump = Pump::start(engine.sqs(), source(100, 5), worker.clone());
    sleep(Duration::from_secs(50)).await;
    send(&engine, ["a", "b"]).await;
    sleep(Duration::from_secs(4)).await;
    send(&engine, ["c"]).await;
    sleep(Duration::from_secs(4)).await;
    send(&engine, ["d"]).await;
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.sizes(), [3, 1]);
    assert_eq!(worker.seconds(), [55, 63]);
}

#[tokio::test(start_paused = true)]
async fn a_pump_in_haste_waits_for_no_window() {
    let engine = engine().await;
    let worker = Worker::new(|_| Deed::Done);
    let pump = Pump::start(engine.sqs(), source(100, 40), worker.clone());
    send(&engine, ["a", "b"]).await;
    sleep(Duration::from_secs(10)).await;
    pump.hasten();
    sleep(Duration::from_secs(10)).await;
    send(&engine, ["c"]).await;
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.sizes(), [2, 1]);
    assert_eq!(worker.seconds(), [10, 20]);
}

#[tokio::test(start_paused = true)]
async fn full_batches_of_more_than_ten_do_not_wait_for_the_window() {
    let engine = engine().await;
    send(&engine, 0..250).await;
    let worker = Worker::new(|_| Deed::Done);
    let pump = Pump::start(engine.sqs(), source(100, 40), worker.clone());
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.sizes(), [100, 100, 50]);
    assert_eq!(worker.seconds(), [0, 0, 40]);
}

#[tokio::test(start_paused = true)]
async fn invocations_at_once_reach_the_maximum_and_never_exceed_it() {
    let engine = engine().await;
    send(&engine, 0..30).await;
    let worker = Worker::new(|_| Deed::Take(Duration::from_secs(5)));
    let source = EventSource { maximum_concurrency: Some(3), ..source(1, 0) };
    let pump = Pump::start(engine.sqs(), source, worker.clone());
    sleep(Duration::from_secs(1)).await;
    assert_eq!(pump.running(), 3);
    assert_eq!(backlog(&engine).await, Backlog { visible: 27, in_flight: 3, delayed: 0 });
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.peak(), 3);
    assert_eq!(worker.finished(), 30);
}

#[tokio::test(start_paused = true)]
async fn only_the_messages_that_failed_come_again() {
    let engine = engine().await;
    send(&engine, ["a", "b", "c", "d"]).await;
    let worker = Worker::new(|batch| Deed::Fail(first_time(batch, |it| it.body == "b" || it.body == "d")));
    let pump = Pump::start(engine.sqs(), source(10, 0), worker.clone());
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.bodies(), ["a", "b", "b", "c", "d", "d"]);
    let invocations = worker.invocations();
    assert_eq!(invocations[0].1, ["a", "b", "c", "d"]);
    assert!(invocations[1].0 >= VISIBILITY, "{invocations:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_no_message_of_the_batch_fails_all_of_it() {
    let engine = engine().await;
    send(&engine, ["a", "b"]).await;
    let worker = Worker::new(|batch| match first_time(batch, |_| true).is_empty() {
        true => Deed::Done,
        false => Deed::Fail(vec!["a-stranger".to_owned()]),
    });
    let pump = Pump::start(engine.sqs(), source(10, 0), worker.clone());
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.bodies(), ["a", "a", "b", "b"]);
}

#[tokio::test(start_paused = true)]
async fn any_failure_of_a_function_that_does_not_report_them_fails_the_batch() {
    let engine = engine().await;
    send(&engine, ["a", "b"]).await;
    let worker = Worker::new(|batch| Deed::Fail(first_time(batch, |it| it.body == "a")));
    let source = EventSource { reports_failures: false, ..source(10, 0) };
    let pump = Pump::start(engine.sqs(), source, worker.clone());
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.bodies(), ["a", "a", "b", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_batch_and_no_other() {
    let engine = engine().await;
    send(&engine, ["bad", "good", "fine"]).await;
    let worker = Worker::new(|batch| match first_time(batch, |it| it.body == "bad").is_empty() {
        true => Deed::Done,
        false => Deed::Panic,
    });
    let pump = Pump::start(engine.sqs(), source(1, 0), worker.clone());
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.bodies(), ["bad", "bad", "fine", "good"]);
    assert_eq!(worker.finished(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_too_long_is_ended_and_its_batch_comes_again() {
    let engine = engine().await;
    send(&engine, ["slow"]).await;
    let worker = Worker::new(|batch| match first_time(batch, |_| true).is_empty() {
        true => Deed::Done,
        false => Deed::Take(Duration::from_secs(3_600)),
    });
    let source = source(1, 0);
    assert_eq!(source.timeout, Duration::from_secs(10));
    let pump = Pump::start(engine.sqs(), source, worker.clone());
    sleep(Duration::from_secs(9)).await;
    assert_eq!((pump.running(), worker.running()), (1, 1));
    sleep(Duration::from_secs(2)).await;
    assert_eq!((pump.running(), worker.running()), (0, 0));
    drained(&engine).await;
    pump.stop().await;
    assert_eq!((worker.sizes(), worker.finished()), (vec![1, 1], 1));
}

#[tokio::test(start_paused = true)]
async fn what_fails_too_often_goes_to_the_dead_letter_queue() {
    let engine = engine().await;
    send(&engine, ["good", "poison"]).await;
    let worker = Worker::new(|batch| {
        let poison = batch.iter().filter(|delivery| delivery.body == "poison");
        Deed::Fail(poison.map(|delivery| delivery.message_id.clone()).collect())
    });
    let pump = Pump::start(engine.sqs(), source(10, 0), worker.clone());
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.bodies(), ["good", "poison", "poison", "poison"]);
    assert_eq!(engine.backlog(&url("DeadQueue")).await.unwrap(), Backlog { visible: 1, in_flight: 0, delayed: 0 });
    let dead = engine.sqs().receive_message().queue_url(url("DeadQueue")).send().await.unwrap();
    assert_eq!(dead.messages()[0].body(), Some("poison"));
}

#[tokio::test(start_paused = true)]
async fn stopping_waits_for_what_runs_and_takes_nothing_more() {
    let engine = engine().await;
    send(&engine, 0..20).await;
    let worker = Worker::new(|_| Deed::Take(Duration::from_secs(8)));
    let source = EventSource { maximum_concurrency: Some(2), ..source(5, 0) };
    let pump = Pump::start(engine.sqs(), source, worker.clone());
    sleep(Duration::from_secs(1)).await;
    pump.stop().await;
    assert_eq!((worker.sizes(), worker.finished()), (vec![5, 5], 2));
    sleep(Duration::from_secs(100)).await;
    assert_eq!((worker.finished(), backlog(&engine).await.total()), (2, 10));
}

/// What comes while the last invocations run is for the next pump.
#[tokio::test(start_paused = true)]
async fn a_pump_that_stops_takes_nothing_more_while_it_waits() {
    let engine = engine().await;
    send(&engine, ["a"]).await;
    let worker = Worker::new(|_| Deed::Take(Duration::from_secs(8)));
    let pump = Pump::start(engine.sqs(), source(10, 0), worker.clone());
    sleep(Duration::from_secs(1)).await;
    let stopped = tokio::spawn(pump.stop());
    sleep(Duration::from_secs(1)).await;
    send(&engine, ["b"]).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(backlog(&engine).await, Backlog { visible: 1, in_flight: 1, delayed: 0 });
    stopped.await.unwrap();
    assert_eq!((worker.finished(), backlog(&engine).await.total()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_pump_without_a_handle_stops() {
    let engine = engine().await;
    let worker = Worker::new(|_| Deed::Done);
    drop(Pump::start(engine.sqs(), source(10, 0), worker.clone()));
    sleep(Duration::from_secs(1)).await;
    send(&engine, ["a"]).await;
    sleep(Duration::from_secs(100)).await;
    assert_eq!((worker.sizes(), backlog(&engine).await.visible), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_is_not_enabled_takes_nothing() {
    let engine = engine().await;
    send(&engine, ["a"]).await;
    let worker = Worker::new(|_| Deed::Done);
    let pump = Pump::start(engine.sqs(), EventSource { enabled: false, ..source(10, 0) }, worker.clone());
    sleep(Duration::from_secs(100)).await;
    pump.stop().await;
    assert_eq!((worker.sizes(), backlog(&engine).await.visible), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn delayed_messages_are_delivered_when_they_are_due() {
    let engine = engine().await;
    let worker = Worker::new(|_| Deed::Done);
    let pump = Pump::start(engine.sqs(), source(10, 0), worker.clone());
    for delay in [90, 3, 30] {
        let send = engine.sqs().send_message().queue_url(url("WorkQueue")).message_body(delay.to_string());
        send.delay_seconds(delay).send().await.unwrap();
    }
    drained(&engine).await;
    pump.stop().await;
    let received: Vec<_> =
        worker.invocations().into_iter().map(|(at, bodies)| (at.as_secs(), bodies[0].clone())).collect();
    assert_eq!(received, [(3, "3".to_owned()), (30, "30".to_owned()), (90, "90".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_pump_outlives_a_queue_that_cannot_be_read() {
    let engine = engine().await;
    let worker = Worker::new(|_| Deed::Done);
    engine.sqs().delete_queue().queue_url(url("WorkQueue")).send().await.unwrap();
    let pump = Pump::start(engine.sqs(), source(10, 0), worker.clone());
    sleep(Duration::from_secs(10)).await;
    engine.provision(&template()).await.unwrap();
    send(&engine, ["a"]).await;
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.bodies(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_sent_together_are_received_together() {
    let engine = engine().await;
    let worker = Worker::new(|_| Deed::Done);
    let pump = Pump::start(engine.sqs(), source(10, 0), worker.clone());
    for delay in [0, 0, 5, 5] {
        // The pump waits for the next message.
        sleep(Duration::from_secs(30)).await;
        send_ten(&engine, delay).await;
    }
    drained(&engine).await;
    pump.stop().await;
    assert_eq!(worker.sizes(), [10; 4]);
    assert_eq!(worker.seconds(), [30, 60, 95, 125]);
}

/// Receives take so long to reach the queue; counts those that do.
#[derive(Debug, Default)]
struct SlowReceives(AtomicUsize);

impl Interceptor for SlowReceives {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        async move {
            if call.operation == "ReceiveMessage" {
                sleep(Duration::from_millis(1_500)).await;
                self.0.fetch_add(1, Ordering::SeqCst);
            }
            Fate::Pass
        }
        .boxed()
    }
}

/// A window closes while the next receive is on its way, and every slot is taken. If the receive stood still, it could stand still with
/// a lock that the invocations wait for.
#[tokio::test(start_paused = true)]
async fn a_receive_goes_on_while_its_pump_waits_for_a_slot() {
    let (engine, slow) = (engine().await, Arc::new(SlowReceives::default()));
    send(&engine, ["a"]).await;
    let worker = Worker::new(|_| Deed::Take(Duration::from_secs(9)));
    let source = EventSource { maximum_concurrency: Some(1), ..source(100, 1) };
    let pump = Pump::start(engine.with_interceptor(slow.clone()).sqs(), source, worker.clone());
    sleep(Duration::from_secs(8)).await;
    assert_eq!((worker.sizes(), pump.running()), (vec![1], 1));
    assert_eq!(slow.0.load(Ordering::SeqCst), 2);
    drained(&engine).await;
    pump.stop().await;
}
