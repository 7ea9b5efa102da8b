//! The embedded SQS, and delayed messages above all.

use std::time::Duration;

use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{
    Message, MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName, SendMessageBatchRequestEntry,
};
use fanfold_local::Backlog;
use tokio::time::{Instant, advance, sleep};

use crate::stack::{engine, url};

async fn receive(sqs: &aws_sdk_sqs::Client, wait: i32) -> Vec<Message> {
    let receive = sqs.receive_message().queue_url(url("WorkQueue")).max_number_of_messages(10).wait_time_seconds(wait);
    receive.send().await.unwrap().messages.unwrap_or_default()
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().filter_map(Message::body).collect()
}

fn entry(id: &str, body: &str, delay: i32) -> SendMessageBatchRequestEntry {
    SendMessageBatchRequestEntry::builder().id(id).message_body(body).delay_seconds(delay).build().unwrap()
}

/// Receives and deletes; the bodies.
async fn take(sqs: &aws_sdk_sqs::Client, wait: i32) -> Vec<String> {
    let messages = receive(sqs, wait).await;
    for message in &messages {
        let delete = sqs.delete_message().queue_url(url("WorkQueue"));
        delete.receipt_handle(message.receipt_handle().unwrap()).send().await.unwrap();
    }
    bodies(&messages).into_iter().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn delayed_messages_come_when_they_are_due_and_in_that_order() {
    let sqs = engine().await.sqs();
    for (body, delay) in [("late", 900), ("third", 30), ("first", 5), ("second", 5), ("now", 0)] {
        sqs.send_message().queue_url(url("WorkQueue")).message_body(body).delay_seconds(delay).send().await.unwrap();
    }
    let nothing: [&str; 0] = [];
    assert_eq!(take(&sqs, 0).await, ["now"]);
    assert_eq!(take(&sqs, 4).await, nothing);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(take(&sqs, 0).await, ["first", "second"]);
    sleep(Duration::from_secs(25)).await;
    assert_eq!(take(&sqs, 0).await, ["third"]);
    sleep(Duration::from_secs(869)).await;
    assert_eq!(take(&sqs, 0).await, nothing);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(take(&sqs, 0).await, ["late"]);
}

#[tokio::test(start_paused = true)]
async fn a_long_poll_gets_a_delayed_message_as_soon_as_it_is_due() {
    let sqs = engine().await.sqs();
    let poll = tokio::spawn({
        let sqs = sqs.clone();
        async move { (receive(&sqs, 20).await, Instant::now()) }
    });
    let start = Instant::now();
    sqs.send_message().queue_url(url("WorkQueue")).message_body("late").delay_seconds(9).send().await.unwrap();
    // A later message with an earlier time must wake the timer.
    sqs.send_message().queue_url(url("WorkQueue")).message_body("early").delay_seconds(2).send().await.unwrap();
    let (messages, at) = poll.await.unwrap();
    assert_eq!(bodies(&messages), ["early"]);
    assert_eq!((at - start).as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn delays_of_a_queue_can_be_ended() {
    let engine = engine().await;
    let sqs = engine.sqs();
    let send = async |body: &str, delay| {
        sqs.send_message().queue_url(url("WorkQueue")).message_body(body).delay_seconds(delay).send().await.unwrap();
    };
    send("late", 900).await;
    send("later", 900).await;
    assert_eq!(take(&sqs, 0).await, [""; 0]);
    engine.end_delays("http://elsewhere/000000000000/another").await;
    assert_eq!(take(&sqs, 0).await, [""; 0], "it is for one queue");
    engine.end_delays(&url("WorkQueue")).await;
    assert_eq!(take(&sqs, 0).await, ["late", "later"]);
    send("after", 900).await;
    assert_eq!(take(&sqs, 0).await, ["after"]);
}

#[tokio::test(start_paused = true)]
async fn a_receive_sees_what_is_due_even_if_the_timer_did_not_run() {
    let sqs = engine().await.sqs();
    sqs.send_message().queue_url(url("WorkQueue")).message_body("x").delay_seconds(7).send().await.unwrap();
    advance(Duration::from_secs(7)).await;
    assert_eq!(bodies(&receive(&sqs, 0).await), ["x"]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_message_keeps_its_id_its_attributes_and_the_time_it_was_sent() {
    let sqs = engine().await.sqs();
    let note = MessageAttributeValue::builder().data_type("String").string_value("hello").build().unwrap();
    let send =
        sqs.send_message().queue_url(url("WorkQueue")).message_body("x").message_attributes("note", note.clone());
    let sent = send.delay_seconds(3).send().await.unwrap();
    sleep(Duration::from_secs(3)).await;
    for names in [&["All"][..], &["note"], &[]] {
        let receive = sqs.receive_message().queue_url(url("WorkQueue")).visibility_timeout(0);
        let receive = receive.message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let received = receive.set_message_attribute_names(Some(names)).send().await.unwrap();
        let message = &received.messages()[0];
        assert_eq!(message.message_id(), sent.message_id());
        assert_eq!(message.md5_of_body(), sent.md5_of_message_body());
        assert!(message.attributes().unwrap()[&MessageSystemAttributeName::SentTimestamp].parse::<u64>().is_ok());
        if let Some(attributes) = message.message_attributes() {
            assert_eq!(attributes.len(), 1);
            assert_eq!(attributes["note"], note);
            assert_eq!(message.md5_of_message_attributes(), sent.md5_of_message_attributes());
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// A message that stays visible is received once by each request, and a request receives no more than ten.
#[tokio::test(start_paused = true)]
async fn a_message_that_stays_visible_is_received_once() {
    let sqs = engine().await.sqs();
    for body in ["x", "y"] {
        sqs.send_message().queue_url(url("WorkQueue")).message_body(body).send().await.unwrap();
    }
    for received_before in [0, 1] {
        let receive = sqs.receive_message().queue_url(url("WorkQueue")).max_number_of_messages(10);
        let receive = receive.visibility_timeout(0);
        let receive = receive.message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
        let messages = receive.send().await.unwrap().messages.unwrap();
        let count = |message: &Message| {
            let attributes = message.attributes().unwrap();
            attributes[&MessageSystemAttributeName::ApproximateReceiveCount].parse::<u32>().unwrap()
        };
        assert_eq!(messages.iter().map(count).collect::<Vec<_>>(), [received_before + 1; 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_may_mix_delays() {
    let sqs = engine().await.sqs();
    let batch = sqs.send_message_batch().queue_url(url("WorkQueue"));
    let batch = batch.entries(entry("a", "now", 0)).entries(entry("b", "soon", 2)).entries(entry("c", "", 2));
    let answer = batch.send().await.unwrap();
    let ids: Vec<&str> = answer.successful().iter().map(|it| it.id()).collect();
    assert_eq!(ids, ["a", "b"]);
    assert_eq!((answer.failed()[0].id(), answer.failed()[0].sender_fault()), ("c", true));
    assert_eq!(bodies(&receive(&sqs, 0).await), ["now"]);
    let soon = receive(&sqs, 20).await;
    assert_eq!(soon[0].message_id(), Some(answer.successful()[1].message_id()));
}

#[tokio::test(start_paused = true)]
async fn the_backlog_counts_every_message_once() {
    let engine = engine().await;
    let sqs = engine.sqs();
    let backlog = async || engine.backlog(&url("WorkQueue")).await.unwrap();
    for delay in [0, 0, 10, 20] {
        sqs.send_message().queue_url(url("WorkQueue")).message_body("x").delay_seconds(delay).send().await.unwrap();
    }
    assert_eq!(backlog().await, Backlog { visible: 2, in_flight: 0, delayed: 2 });
    sqs.receive_message().queue_url(url("WorkQueue")).send().await.unwrap();
    assert_eq!(backlog().await, Backlog { visible: 1, in_flight: 1, delayed: 2 });
    sleep(Duration::from_secs(10)).await;
    assert_eq!(backlog().await, Backlog { visible: 2, in_flight: 1, delayed: 1 });
    assert_eq!(backlog().await.total(), 4);
    let attribute = QueueAttributeName::ApproximateNumberOfMessagesDelayed;
    let attributes = sqs.get_queue_attributes().queue_url(url("WorkQueue")).attribute_names(attribute.clone());
    assert_eq!(attributes.send().await.unwrap().attributes.unwrap()[&attribute], "1");
    assert_eq!(engine.backlog(&url("DeadQueue")).await.unwrap(), Backlog::default());
    let error = engine.backlog(&url("DeadQueue").replace("Dead", "No")).await.unwrap_err().to_string();
    assert!(error.contains("NoQueue"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_purge_drops_delayed_messages_of_its_queue_only() {
    let engine = engine().await;
    let sqs = engine.sqs();
    for queue in ["WorkQueue", "DeadQueue"] {
        sqs.send_message().queue_url(url(queue)).message_body("x").delay_seconds(5).send().await.unwrap();
    }
    sqs.purge_queue().queue_url(url("WorkQueue")).send().await.unwrap();
    assert_eq!(engine.backlog(&url("WorkQueue")).await.unwrap().total(), 0);
    assert_eq!(engine.backlog(&url("DeadQueue")).await.unwrap().delayed, 1);
}

#[tokio::test]
async fn what_the_real_sqs_refuses_is_refused() {
    let sqs = engine().await.sqs();
    let send = || sqs.send_message().queue_url(url("WorkQueue"));
    let error = send().message_body("x").delay_seconds(901).send().await.unwrap_err().into_service_error();
    assert!(error.message().unwrap().contains("901"), "{error:?}");
    let large =
        send().message_body("x".repeat(262_145)).delay_seconds(1).send().await.unwrap_err().into_service_error();
    assert!(large.message().unwrap().contains("262144"), "{large:?}");
    let nowhere = url("WorkQueue").replace("Work", "No");
    for delay in [0, 1] {
        let error =
            sqs.send_message().queue_url(&nowhere).message_body("x").delay_seconds(delay).send().await.unwrap_err();
        let error = error.into_service_error();
        assert!(error.is_queue_does_not_exist(), "{error:?}");
    }
    let batch = sqs.send_message_batch().queue_url(url("WorkQueue"));
    let twice = batch.clone().entries(entry("a", "x", 1)).entries(entry("a", "y", 1)).send().await.unwrap_err();
    assert!(twice.into_service_error().is_batch_entry_ids_not_distinct());
    let eleven = (0..11).map(|id| entry(&id.to_string(), "x", 1)).collect();
    let eleven = batch.clone().set_entries(Some(eleven)).send().await.unwrap_err();
    assert!(eleven.into_service_error().is_too_many_entries_in_batch_request());
    let heavy = (0..5).map(|id| entry(&id.to_string(), &"x".repeat(250_000), 0)).collect();
    let heavy = batch.set_entries(Some(heavy)).send().await.unwrap_err();
    assert!(heavy.into_service_error().is_batch_request_too_long());
    assert_eq!(receive(&sqs, 0).await, []);
}

#[tokio::test]
async fn an_operation_that_is_not_there_is_an_error_of_the_sdk() {
    let sqs = engine().await.sqs();
    let error =
        sqs.add_permission().queue_url(url("WorkQueue")).label("x").aws_account_ids("1").actions("*").send().await;
    assert!(error.unwrap_err().into_service_error().code().is_some());
}
