//! Batch APIs that ask to be called much later: longer than a queue can delay a message.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold::messages::HandleMessage;
use fanfold_batch_api::{Answer, CallError};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, policy};
use serde_json::json;

use super::api::{PATIENT, call};
use super::assert_unharmed;
use super::server::{Deed, Server};

/// A stack whose batch API refuses its first call with `error`, and the moments of its calls.
async fn stack(backoff: serde_json::Value, error: CallError) -> (TestStack, Arc<Mutex<Vec<tokio::time::Instant>>>) {
    let calls: Arc<Mutex<Vec<_>>> = Arc::default();
    let seen = Arc::clone(&calls);
    let api = ScriptedApi::new(move |call| {
        seen.lock().unwrap().push(tokio::time::Instant::now());
        if call.attempt == 1 { Err(error.clone()) } else { Ok(Answer::AllSucceeded) }
    });
    (TestStack::new(policy(json!({ "backoff": backoff })), api, Crash::never()).await, calls)
}

/// Lets time pass until the batch API was called once.
async fn first_call(stack: &TestStack, calls: &Mutex<Vec<tokio::time::Instant>>) {
    loop {
        for queue in QueueName::STEPS {
            stack.deliver(queue).await;
            if !calls.lock().unwrap().is_empty() {
                return;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// A day at most, in seconds or as a date; neither an early message, nor one that comes twice, nor a sweep shortens it.
#[tokio::test]
async fn a_retry_after_is_kept_although_messages_and_sweeps_come_meanwhile() {
    for (value, seconds) in [
        ("3600", 3_600),
        // The clock of the tests begins at 08:00.
        ("Fri, 15 Jan 2027 09:30:00 GMT", 5_390),
        ("100000", 86_400),
    ] {
        let header = format!("Retry-After: {value}\r\n");
        let server = Server::start(move |_, _| Deed::answer("500 Internal Server Error", &header, "later")).await;
        let error = call(&server.url, PATIENT).await.unwrap_err();
        drop(server);
        tokio::time::pause();
        let (stack, calls) = stack(json!({"base": 1, "max": 4}), error).await;
        let (_, ids) = stack.open(2, true).await;
        let tasks = stack.register_items(&ids).await;
        first_call(&stack, &calls).await;
        let batch = stack.all_batches().await.remove(0);
        for attempt in [2, 2, 1] {
            stack.handle_message(HandleMessage { attempt, ..HandleMessage::first(batch.id, false) }).await;
        }
        stack.sweep().await;
        assert_eq!(calls.lock().unwrap().len(), 1, "{value}");
        assert_unharmed(&stack, &tasks, 0).await;
        let waited = {
            let calls = calls.lock().unwrap();
            assert_eq!(calls.len(), 2, "{value}");
            (calls[1] - calls[0]).as_secs()
        };
        assert!((seconds..seconds + 15).contains(&waited), "{value}: {waited} s");
        tokio::time::resume();
    }
}

/// A policy's own pauses may be as long.
#[tokio::test(start_paused = true)]
async fn a_backoff_is_waited_for_however_long_it_is() {
    let (stack, calls) = stack(json!({"base": "2h", "max": "1day"}), CallError::again("not now")).await;
    let (_, ids) = stack.open(1, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.drain().await;
    let waited = {
        let calls = calls.lock().unwrap();
        calls[1] - calls[0]
    };
    assert!((3_600..7_205).contains(&waited.as_secs()), "{waited:?}");
    assert_unharmed(&stack, &tasks, 0).await;
}

/// SQS delays are whole seconds; a shorter pause is kept all the same.
#[tokio::test(start_paused = true)]
async fn a_backoff_below_a_second_is_kept() {
    let (stack, calls) = stack(json!({"base": "200ms", "max": "200ms"}), CallError::again("not now")).await;
    let (_, ids) = stack.open(1, true).await;
    let tasks = stack.register_items(&ids).await;
    first_call(&stack, &calls).await;
    assert_eq!(stack.deliver(QueueName::Handle).await, 1);
    let waited = {
        let calls = calls.lock().unwrap();
        calls[1] - calls[0]
    };
    assert!((100..201).contains(&waited.as_millis()), "{waited:?}");
    assert_unharmed(&stack, &tasks, 0).await;
}
