//! Tasks that do not ride together.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::messages::TaskRequest;
use fanfold_register::RegisterError;
use fanfold_tests::{Crash, ScriptedApi, TestStack, changed, deaths, policy};
use serde_json::{Value, json};

use super::{calls, heal, parcel, register, register_each};

fn apart(changes: Value) -> Value {
    changed(json!({"distinct": "content.account", "max_batch": 4, "max_in_flight": 2}), changes)
}

fn parcels(accounts: &[usize]) -> Vec<TaskRequest> {
    accounts.iter().map(|account| parcel(json!({"account": account}))).collect()
}

/// Checks that no call has two members of one account.
fn assert_all_differ(stack: &TestStack) {
    for call in calls(stack, "account") {
        let accounts: BTreeSet<String> = call.iter().map(Value::to_string).collect();
        assert_eq!(accounts.len(), call.len(), "{call:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_tasks_with_one_value_are_never_in_one_batch() {
    let stack = TestStack::with(apart(json!({}))).await;
    let mut tasks = register(&stack, "together", parcels(&[1, 1, 2, 3, 1, 2, 4, 5, 6, 6])).await;
    tasks.extend(register_each(&stack, "apart", parcels(&[1, 2, 2, 7])).await);
    stack.drain().await;
    stack.assert_settled(&tasks, 4).await;
    assert_all_differ(&stack);
    assert!(stack.api.seen().len() < tasks.len() - 3, "they ride together: {:?}", calls(&stack, "account"));
}

/// A long lane of one value does not wait for the linger, batch after batch: others may be behind it.
#[tokio::test(start_paused = true)]
async fn a_long_lane_of_one_value_gives_way() {
    let stack = TestStack::with(apart(json!({"linger": 60}))).await;
    let mut tasks = register(&stack, "one", parcels(&[1; 50])).await;
    let begun = stack.world.now();
    while stack.locks.get(&"parcel:0:117".parse().unwrap()).await.unwrap().epoch < 20 {
        for queue in fanfold_tests::QueueName::STEPS {
            stack.deliver(queue).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let took = stack.world.now().since(begun);
    assert!(took < Duration::from_secs(60), "twenty leaders took {took:?}");
    tasks.extend(register(&stack, "others", parcels(&[2, 3, 4])).await);
    stack.drain().await;
    stack.assert_settled(&tasks, 4).await;
    assert_all_differ(&stack);
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_value_is_none_is_refused_with_the_reason() {
    let stack = TestStack::with(apart(json!({}))).await;
    let tasks = vec![parcel(json!({"account": 1})), parcel(json!({"account": null}))];
    let error = stack.register.register(tasks, "request").await.unwrap_err();
    let RegisterError::Refused(faults) = error else { panic!("{error}") };
    assert_eq!((faults.len(), faults[0].path().as_str()), (1, "tasks[1].distinct"));
    assert!(stack.scan("TasksTable").await.is_empty(), "nothing is half done");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_drops_the_field_lets_them_ride_together_from_the_next_batch_on() {
    let stack = TestStack::with(apart(json!({}))).await;
    let tasks = register(&stack, "together", parcels(&[1, 1, 1, 1])).await;
    stack.put_policy(policy(json!({"max_batch": 4}))).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 4).await;
    assert_eq!(stack.api.seen().len(), 1);
}

async fn run(crash: Crash) -> Option<String> {
    let stack = TestStack::new(policy(apart(json!({}))), ScriptedApi::always_succeeds(), crash).await;
    let mut tasks = register(&stack, "together", parcels(&[1, 1, 2])).await;
    tasks.extend(register_each(&stack, "apart", parcels(&[2, 3])).await);
    heal(&stack, &tasks, 4).await;
    assert_all_differ(&stack);
    stack.crash.struck()
}

deaths!(
    run,
    20,
    dies_before_a_request: Before,
    dies_after_a_request: After,
);
