//! A worker dies in the middle of storing a request's tasks: what was stored is handled once, and repeating the request
//! completes it. In between, no other request takes its key.

use fanfold::ids::{TaskId, derived};
use fanfold::messages::TaskRequest;
use fanfold_register::{RegisterError, Registration, request_id};
use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack, at_every_request, order};
use serde_json::json;

/// Three calls of 25 statements at most.
const TASKS: usize = 60;

fn tasks() -> Vec<TaskRequest> {
    (0..TASKS).map(|n| order(None, "117", n)).collect()
}

fn ids(key: &str) -> Vec<TaskId> {
    (0..TASKS).map(|n| derived::task(&request_id(key), n)).collect()
}

async fn stack(crash: Crash) -> TestStack {
    let policy = json!({"kind": "parcel", "target": "content.depot", "batch_api": {"command": ["truck"]}});
    TestStack::new(policy, ScriptedApi::always_succeeds(), crash).await
}

/// How many tasks the first try left; none if the worker lived.
async fn run(crash: Crash) -> Option<usize> {
    let stack = stack(crash).await;
    let first = stack.register.register_once(tasks(), "k").await;
    stack.crash.revive();
    let left = stack.tasks.stored(&ids("k")).await.unwrap().len();
    // What is there is handled, whether or not the request is repeated.
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    if left > 0 {
        let mut others = tasks();
        others[TASKS - 1] = order(None, "117", TASKS);
        let refused = stack.register.register_once(others, "k").await;
        assert!(matches!(refused, Err(RegisterError::KeyReused { .. })), "{left} were stored: {refused:?}");
    }
    let again = stack.register.register_once(tasks(), "k").await.unwrap();
    let stored = again.iter().filter(|task| task.outcome == Registration::Known).count();
    assert_eq!((stored, again.len()), (left, TASKS));
    stack.drain().await;
    stack.assert_settled(&ids("k"), 100).await;
    first.is_err().then_some(left)
}

async fn dies(moment: Moment) {
    let left = at_every_request(moment, run).await;
    assert!(left.iter().any(|left| (1..TASKS).contains(left)), "no try left some of the tasks: {left:?}");
    assert!(left.contains(&0), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_died_before_a_write_is_completed_by_its_repetition() {
    dies(Moment::Before).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_died_after_a_write_is_completed_by_its_repetition() {
    dies(Moment::After).await;
}

/// Two requests use one key at once: one of them is stored, as a whole.
#[tokio::test(start_paused = true)]
async fn of_two_requests_at_once_under_one_key_one_is_stored() {
    let stack = stack(Crash::never()).await;
    let longer = (0..TASKS + 20).map(|n| order(None, "117", n)).collect();
    let (short, long) =
        tokio::join!(stack.register.register_once(tasks(), "k"), stack.register.register_once(longer, "k"));
    assert!(short.is_ok() != long.is_ok(), "{short:?}, {long:?}");
    stack.drain().await;
    let batched: usize = stack.all_batches().await.iter().map(|batch| batch.members.len()).sum();
    assert_eq!(batched, if short.is_ok() { TASKS } else { TASKS + 20 });
}
