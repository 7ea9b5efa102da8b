//! Bytes and weights.

use std::time::Duration;

use fanfold::bits::Bits;
use fanfold::grouping::{Bundle, Load, Loads};
use fanfold::ids::TaskId;
use fanfold::limits::{CONTENT_BYTES_MAX, MEMBER_BYTES};
use fanfold::members::Members;
use fanfold::policy::{HeadStart, Weight};
use fanfold::store::tasks::NewTask;
use fanfold_register::RegisterError;
use fanfold_tests::{Crash, ScriptedApi, TestStack, changed, deaths, policy};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{calls, heal, parcel, register, register_each};

/// Trucks that bear ten kilograms.
fn weighing(changes: Value) -> Value {
    changed(json!({"weight": "content.kg", "max_weight": 10, "max_batch": 100, "max_in_flight": 2}), changes)
}

fn parcels(weights: &[f64]) -> Vec<fanfold::messages::TaskRequest> {
    weights.iter().map(|kg| parcel(json!({"kg": kg}))).collect()
}

/// Checks that no call of several members weighs more than `most`.
fn assert_none_is_overloaded(stack: &TestStack, most: f64) {
    for call in calls(stack, "kg") {
        let weight: f64 = call.iter().map(|kg| kg.as_f64().unwrap()).sum();
        assert!(call.len() == 1 || weight <= most + 1e-6, "{call:?} weigh {weight}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_batch_weighs_more_than_it_may_however_its_tasks_came() {
    let stack = TestStack::with(weighing(json!({}))).await;
    // In bundles, on their own, and both.
    let mut tasks = register(&stack, "together", parcels(&[4.0, 4.0, 2.5, 1.5, 0.0, 9.9, 0.1])).await;
    tasks.extend(register_each(&stack, "apart", parcels(&[7.0, 3.0, 5.5, 4.5])).await);
    stack.drain().await;
    tasks.extend(register_each(&stack, "later", parcels(&[6.0, 6.0, 4.0])).await);
    stack.drain().await;
    stack.assert_settled(&tasks, 100).await;
    assert_none_is_overloaded(&stack, 10.0);
    assert!(stack.api.seen().len() < tasks.len() - 3, "they ride together: {:?}", calls(&stack, "kg"));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_weighs_more_than_a_batch_may_goes_alone() {
    let stack = TestStack::with(weighing(json!({}))).await;
    let mut tasks = register(&stack, "together", parcels(&[3.0, 11.0, 3.0, 500.0, 0.0])).await;
    tasks.extend(register_each(&stack, "apart", parcels(&[12.0, 0.0])).await);
    stack.drain().await;
    stack.assert_settled(&tasks, 100).await;
    assert_none_is_overloaded(&stack, 10.0);
}

/// A batch is full once its weight is: it does not wait for the linger.
#[tokio::test(start_paused = true)]
async fn a_batch_that_weighs_enough_does_not_linger() {
    let stack = TestStack::with(weighing(json!({"linger": 600}))).await;
    let begun = stack.world.now();
    let tasks = register(&stack, "full", parcels(&[5.0; 8])).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 2).await;
    let took = stack.world.now().since(begun);
    assert!(took < Duration::from_secs(600), "four full batches took {took:?}");
}

#[tokio::test(start_paused = true)]
async fn another_maximum_holds_from_the_next_batch_on_and_weights_stay() {
    let stack = TestStack::with(weighing(json!({}))).await;
    let mut tasks = register(&stack, "together", parcels(&[2.0; 10])).await;
    tasks.extend(register_each(&stack, "apart", parcels(&[2.0; 4])).await);
    // What a task weighs was computed when it came.
    stack.put_policy(policy(weighing(json!({"weight": "100.0", "max_weight": 4})))).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 2).await;
    assert_eq!(stack.api.seen().len(), 7, "{:?}", calls(&stack, "kg"));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_weight_is_none_is_refused_with_the_reason() {
    let stack = TestStack::with(weighing(json!({}))).await;
    for (kg, got) in [(json!("heavy"), "string"), (json!(-1), "-1"), (json!(1e9 + 1.0), "1000000001")] {
        let tasks = vec![parcel(json!({"kg": 1})), parcel(json!({"kg": kg}))];
        let error = stack.register.register(tasks, "request").await.unwrap_err();
        let RegisterError::Refused(faults) = error else { panic!("{error}") };
        assert_eq!((faults.len(), faults[0].path().as_str()), (1, "tasks[1].weight"));
        assert!(faults[0].problem.contains(&format!("gives {got}, a number of 0 to 1000000000")), "{}", faults[0]);
    }
    assert!(stack.scan("TasksTable").await.is_empty(), "nothing is half done");
}

/// A call has no more bytes than the policy says, or than the handle function bears.
#[tokio::test(start_paused = true)]
async fn a_call_is_no_larger_than_it_may_be() {
    for (changes, size, most) in [
        (json!({"max_batch": 100, "max_batch_bytes": 2_000}), 400, 2_000),
        (json!({"max_batch": 10_000}), CONTENT_BYTES_MAX - 100, 4 * 1_024 * 1_024),
    ] {
        let stack = TestStack::with(changes).await;
        let large = |n: usize| parcel(json!({"n": n, "note": "x".repeat(size)}));
        let mut tasks = register(&stack, "together", (0..40).map(large).collect()).await;
        tasks.extend(register_each(&stack, "apart", (0..10).map(large).collect()).await);
        stack.drain().await;
        stack.assert_settled(&tasks, 31).await;
        for seen in stack.api.seen() {
            let bytes: usize = seen.call.members.iter().map(|member| member.content.get().len() + MEMBER_BYTES).sum();
            let whole = serde_json::to_vec(&seen.call.members).unwrap().len();
            assert!(bytes <= most && whole <= most, "{} members have {bytes} bytes", seen.call.members.len());
        }
        assert!(stack.api.seen().len() < 25, "{} calls", stack.api.seen().len());
    }
}

/// Tasks that wait on their own because their bundle is dead weigh what they weighed in it.
#[tokio::test(start_paused = true)]
async fn tasks_of_a_dead_bundle_keep_their_weights() {
    let stack = TestStack::with(weighing(json!({}))).await;
    let load = |n: usize| Load { weight: Weight::from_whole(n as u64 + 3).unwrap(), ..Load::default() };
    let ids: Members = (1..7).map(|n| TaskId::Single(Uuid::from_u128(n))).collect();
    let (lane, loads) = ("parcel:0:117".parse().unwrap(), (0..6).map(load).collect::<Loads>());
    let bundle = Bundle::filling(stack.world.uuid(), lane, (ids.clone(), loads), stack.world.now());
    stack.tasks.begin_bundles(std::slice::from_ref(&bundle)).await.unwrap();
    let task = |(n, id): (usize, &TaskId)| NewTask {
        id: *id,
        lane: bundle.lane.clone(),
        content: json!({"depot": "117", "kg": n + 3}).to_string(),
        key: None,
        load: load(n),
        head_start: HeadStart::NONE,
        bundle: Some(bundle.id),
    };
    stack.tasks.insert(&ids.ids().iter().enumerate().map(task).collect::<Vec<_>>()).await.unwrap();
    for _ in 0..2 {
        stack.sweep().await;
        stack.drain().await;
    }
    assert!(stack.tasks.open_bundles(&[bundle.opened(Bits::ones(6))]).await.unwrap().contains(&bundle.id));
    stack.assert_settled(ids.ids(), 100).await;
    assert_none_is_overloaded(&stack, 10.0);
}

/// A policy without these fields costs what it cost: what tasks on their own take is not read.
#[tokio::test(start_paused = true)]
async fn what_tasks_take_is_read_only_where_it_matters() {
    let read = async |changes: Value| {
        let stack = TestStack::with(changes).await;
        let tasks = register_each(&stack, "apart", parcels(&[1.0; 9])).await;
        stack.drain().await;
        stack.assert_settled(&tasks, 10).await;
        stack.usage().by_operation["dynamodb.BatchGetItem"].requests
    };
    let (without, with) = (read(json!({})).await, read(weighing(json!({"max_batch": 10}))).await);
    assert!(without < with, "{without} reads without weights, {with} with");
}

/// Registers tasks with weights in bundles and on their own, with a worker that dies at one of its requests.
async fn run(crash: Crash) -> Option<String> {
    let changes = weighing(json!({"max_batch": 4}));
    let stack = TestStack::new(policy(changes), ScriptedApi::always_succeeds(), crash).await;
    let mut tasks = register(&stack, "together", parcels(&[4.0, 4.0, 4.0, 11.0])).await;
    tasks.extend(register_each(&stack, "apart", parcels(&[7.0, 7.0])).await);
    heal(&stack, &tasks, 4).await;
    assert_none_is_overloaded(&stack, 10.0);
    stack.crash.struck()
}

deaths!(
    run,
    20,
    dies_before_a_request: Before,
    dies_after_a_request: After,
);
