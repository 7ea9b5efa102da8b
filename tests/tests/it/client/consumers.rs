//! Workers behind a queue.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fanfold_client::{Consumer, Message, OpenFanout, SqsAcks, SqsEvent, State};
use fanfold_tests::QueueName;
use serde_json::json;

use super::acks::{FakeAcks, item};
use super::stack;

fn event(records: &[(u16, u32)], queue: &str) -> SqsEvent {
    let records = records.iter().map(|(index, receives)| {
        json!({"messageId": format!("m{index}"), "body": json!({"item": item(1, *index), "page": index}).to_string(),
               "attributes": {"ApproximateReceiveCount": receives.to_string()}, "eventSourceARN": queue})
    });
    serde_json::from_value(json!({"Records": records.collect::<Vec<_>>()})).unwrap()
}

fn page(message: &Message) -> u64 {
    let body: serde_json::Value = serde_json::from_str(&message.body).unwrap();
    body["page"].as_u64().unwrap()
}

async fn fails_for_odd_pages(message: Message) -> Result<(), String> {
    if page(&message) % 2 == 1 { Err("no such page".to_owned()) } else { Ok(()) }
}

#[tokio::test(start_paused = true)]
async fn success_and_the_last_failure_are_acked() {
    let acks = FakeAcks::default();
    let consumer = Consumer::new(acks.clone(), 3, fails_for_odd_pages);
    let answer = consumer.event(event(&[(0, 1), (1, 2), (3, 3)], "jobs")).await;
    let answer = serde_json::to_value(answer).unwrap();
    assert_eq!(answer, json!({"batchItemFailures": [{"itemIdentifier": "m1"}, {"itemIdentifier": "m3"}]}));
    let expected = format!(r#"{{"items":["{}"],"failed":["{}"]}}"#, item(1, 0), item(1, 3));
    assert_eq!(acks.texts.lock().unwrap().concat(), expected);
}

#[tokio::test(start_paused = true)]
async fn messages_whose_acks_cannot_be_sent_come_again() {
    let acks = FakeAcks::default();
    acks.down.store(true, Ordering::SeqCst);
    let consumer = Consumer::new(acks.clone(), 3, fails_for_odd_pages);
    assert_eq!(consumer.event(event(&[(0, 1), (1, 1), (2, 1)], "jobs")).await.batch_item_failures.len(), 3);
    acks.down.store(false, Ordering::SeqCst);
    assert_eq!(consumer.event(event(&[(0, 2)], "jobs")).await.batch_item_failures, []);
    let said = acks.texts.lock().unwrap().concat();
    assert_eq!(said, format!(r#"{{"items":["{}"]}}"#, item(1, 0)), "nothing is left over from before");
}

#[tokio::test(start_paused = true)]
async fn a_fifo_queue_keeps_its_order_and_nothing_is_acked_before_it_is_done() {
    let (acks, handled) = (FakeAcks::default(), Mutex::new(Vec::new()));
    let consumer = Consumer::new(acks.clone(), 3, |message| {
        assert!(!acks.texts.lock().unwrap().concat().contains(&item(1, 0).to_string()));
        handled.lock().unwrap().push(message.id.clone());
        fails_for_odd_pages(message)
    });
    let answer = consumer.event(event(&[(0, 1), (1, 1), (2, 1)], "jobs.fifo")).await;
    assert_eq!(answer.batch_item_failures.len(), 2);
    assert_eq!(*handled.lock().unwrap(), ["m0", "m1"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_item_cannot_be_read_is_not_handled_well() {
    let acks = FakeAcks::default();
    let consumer = Consumer::new(acks.clone(), 1, async |_| Ok::<(), String>(()));
    let message = |body: &str| Message { id: body.to_owned(), body: body.to_owned(), receives: 9 };
    let failed = consumer.run(&["x", r#"{"item": "x"}"#, r#"{"item": 7}"#, "[]", "{}"].map(message), false).await;
    assert_eq!(failed.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    assert!(acks.texts.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_poller_acks_over_the_ack_queue() {
    let (stack, fanfold) = stack().await;
    let _pumps = stack.pumps();
    let sqs = stack.surroundings().sqs.clone();
    let attributes = [(aws_sdk_sqs::types::QueueAttributeName::VisibilityTimeout, "1".to_owned())].into();
    let created = sqs.create_queue().queue_name("jobs").set_attributes(Some(attributes)).send().await.unwrap();
    let jobs = created.queue_url().unwrap();
    let opened = fanfold.open(&OpenFanout { items: 40, seal: true, ..OpenFanout::default() }).await.unwrap();
    for (page, item) in opened.items().enumerate() {
        let body = json!({"item": item.to_string(), "page": page}).to_string();
        sqs.send_message().queue_url(jobs).message_body(body).send().await.unwrap();
    }
    let seen = Mutex::new(BTreeMap::<u64, u32>::new());
    let acks = SqsAcks::new(sqs.clone(), stack.url(QueueName::Ack));
    let consumer = Consumer::new(acks, 2, |message: Message| {
        *seen.lock().unwrap().entry(page(&message)).or_default() += 1;
        fails_for_odd_pages(message)
    });
    let ended = async { fanfold.wait(opened.id, Duration::from_secs(60)).await.unwrap() };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (end, polled) = tokio::join!(
        async {
            let end = ended.await;
            stop.send(()).unwrap();
            end
        },
        consumer.poll(&sqs, jobs, async { stopped.await.unwrap() })
    );
    polled.unwrap();
    assert_eq!((end.state, end.succeeded, end.failed), (State::Completed, 20, 20));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 40);
    assert!(seen.iter().all(|(page, times)| *times > u32::from(page % 2 == 1)), "{seen:?}");
}
