//! A kind whose policy is deleted while its tasks wait: nothing is called, nothing is lost, and everything goes on when there is a
//! policy of the kind again.

mod posted;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use fanfold::ids::TaskId;
use fanfold::limits::{BUNDLED_RETENTION, RETENTION};
use fanfold_api::Api;
use fanfold_batch_api::{Answer, CallError, Cause};
use fanfold_register::RegisterError;
use fanfold_tests::{
    Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, delivery, order, policy, until,
};
use serde_json::json;
use tower::ServiceExt;

fn parcel() -> serde_json::Value {
    policy(json!({"key": "content.order", "max_attempts": 9}))
}

/// A batch API whose second call succeeds.
fn api() -> Arc<ScriptedApi> {
    ScriptedApi::new(|call| match call.attempt {
        1 => Err(CallError::again("500")),
        _ => Ok(Answer::AllSucceeded),
    })
}

async fn stack() -> TestStack {
    TestStack::new(parcel(), api(), Crash::never()).await
}

/// Lets everything work for a while as it does without a policy; nothing is called, and nothing comes to a dead-letter queue.
async fn idle(stack: &TestStack) {
    let calls = stack.api.seen().len();
    stack.minutes(20).await;
    assert_eq!(stack.api.seen().len(), calls, "nothing is called without a policy");
    assert_eq!(stack.backlog().await, 0, "hints do not go round");
}

/// Puts the policy again; everything goes on by itself.
async fn goes_on(stack: &TestStack, tasks: &[TaskId]) {
    stack.put_policy(parcel()).await;
    stack.minutes(6).await;
    stack.drain().await;
    let by_task = stack.assert_settled(tasks, 10).await;
    assert!(tasks.iter().all(|id| by_task[id].succeeded.get(by_task[id].members.slot(id).unwrap())));
}

/// A batch waits for longer than claimed tasks are kept.
#[tokio::test(start_paused = true)]
async fn nothing_expires_in_months_without_a_policy() {
    for tasks in [1, 5, 12] {
        let stack = stack().await;
        let ids = stack.register_orders("117", 0..tasks).await;
        stack.pass(&[QueueName::Elect, QueueName::Group]).await;
        stack.delete_policy("parcel").await;
        stack.drain().await;
        stack.days(60).await;
        assert!(60 * 24 * 3_600 > 2 * BUNDLED_RETENTION.as_secs() && BUNDLED_RETENTION > RETENTION);
        assert_eq!(stack.claimed(&ids).await, tasks.min(10));
        goes_on(&stack, &ids).await;
    }
}

async fn waits_from(queues: &[QueueName]) {
    for tasks in [1, 12] {
        let stack = stack().await;
        let ids = stack.register_orders("117", 0..tasks).await;
        stack.pass(queues).await;
        stack.delete_policy("parcel").await;
        idle(&stack).await;
        goes_on(&stack, &ids).await;
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_that_no_batch_has_claimed_wait() {
    waits_from(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_waits() {
    waits_from(&[QueueName::Elect]).await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_to_be_called_waits() {
    waits_from(&[QueueName::Elect, QueueName::Group]).await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_to_be_called_again_waits() {
    waits_from(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
}

/// A call that is under way when the policy is deleted ends, and its outcomes count.
#[tokio::test(start_paused = true)]
async fn a_call_in_progress_ends_and_counts() {
    let slow = ScriptedApi::slow(|_| Duration::from_secs(8), |_| Ok(Answer::AllSucceeded));
    let stack = TestStack::new(parcel(), slow, Crash::never()).await;
    let pumps = stack.pumps();
    let (fanout, items) = stack.open(3, true).await;
    let ids = stack.register_items(&items).await;
    until(async || !stack.api.seen().is_empty()).await;
    stack.delete_policy("parcel").await;
    until(async || stack.header(fanout).await.complete()).await;
    drop(pumps);
    stack.drain().await;
    stack.assert_settled(&ids, 10).await;
}

/// Tasks that come while there is no policy are refused, and those that waited before keep their keys.
#[tokio::test(start_paused = true)]
async fn keys_are_kept_meanwhile() {
    let stack = stack().await;
    let ids = stack.register_orders("117", 0..3).await;
    stack.delete_policy("parcel").await;
    let refused = stack.register.register(vec![order(None, "117", 9)], "r").await.unwrap_err();
    assert!(matches!(refused, RegisterError::Refused(faults) if faults[0].problem.contains("no policy")));
    let message = json!({"kind": "parcel", "content": {"depot": "117", "order": "ORD-7"}});
    assert_eq!(stack.hand(QueueName::Register, vec![delivery("m", message)]).await, ["m"], "it comes again");
    stack.put_policy(parcel()).await;
    let again = stack.register.register(vec![order(None, "117", 1)], "s").await.unwrap();
    let outcome = serde_json::to_value(&again[0]).unwrap();
    assert_eq!((&outcome["outcome"], &outcome["of"]), (&json!("duplicate"), &json!(ids[1])));
    goes_on(&stack, &ids).await;
}

/// A worker dies while it forms a batch, its messages are lost, and then there is no policy for longer than claimed tasks are kept.
async fn forms_without_a_policy(crash: Crash) -> Option<String> {
    let stack = TestStack::new(parcel(), api(), crash).await;
    let (_, items) = stack.open(3, true).await;
    let ids = stack.register_items(&items).await;
    for queue in [QueueName::Elect, QueueName::Group] {
        tokio::time::sleep(Duration::from_secs(5)).await;
        stack.deliver(queue).await;
    }
    let struck = stack.crash.struck()?;
    stack.delete_policy("parcel").await;
    for queue in QueueName::STEPS {
        stack.take(queue).await;
    }
    let weeks = RETENTION.as_secs() / (7 * 24 * 3_600) + 2;
    for _ in 0..weeks {
        for _ in 0..2 {
            stack.sweep().await;
            stack.seconds(5).await;
        }
        stack.clock.skip(RETENTION / 2);
        let now = stack.world.now().seconds();
        for item in stack.scan("TasksTable").await {
            let is_task = item["id"].as_s().unwrap().parse::<TaskId>().is_ok();
            let ttl = item.get("ttl").map(|ttl| ttl.as_n().unwrap().parse::<u64>().unwrap());
            assert!(!is_task || ttl.is_none_or(|ttl| ttl > now), "{struck}: {item:?} expires");
        }
    }
    assert!(stack.api.seen().is_empty(), "nothing is called without a policy");
    goes_on(&stack, &ids).await;
    Some(struck)
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_claimed_tasks_forms_its_batch_without_a_policy() {
    for moment in [Moment::Before, Moment::After, Moment::AnswerLost] {
        let struck = at_every_request(moment, forms_without_a_policy).await;
        assert!(
            struck.len() > 10 && struck.iter().any(|request| request.contains("BatchExecuteStatement")),
            "{struck:?}"
        );
    }
}

/// A worker dies over a task that fails, and the policy that says whether its key is free is deleted. Returns whether the failure was
/// recorded by then.
async fn fails_without_a_policy(crash: Crash) -> Option<bool> {
    let api = ScriptedApi::new(|_| Err(CallError::new(Cause::Status(400), "no")));
    let stack = TestStack::new(parcel(), api, crash.waiting()).await;
    let ids = stack.register_orders("117", 0..1).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    stack.crash.begin();
    stack.deliver(QueueName::Handle).await;
    let struck = stack.crash.struck()?;
    let recorded = stack.all_batches().await[0].failed.count() == 1;
    stack.delete_policy("parcel").await;
    stack.minutes(6).await;
    let lock = stack.locks.get(&stack.all_batches().await[0].lane).await.unwrap();
    assert_eq!(lock.idle(), recorded, "{struck}: {lock:?}");
    stack.put_policy(parcel()).await;
    stack.minutes(6).await;
    stack.drain().await;
    let batch = &stack.assert_settled(&ids, 10).await[&ids[0]];
    assert_eq!(batch.failed.count(), 1);
    let again = stack.register.register(vec![order(None, "117", 0)], "again").await.unwrap();
    // A call that a dead worker made may have worked: then the key is kept.
    let outcome = if batch.silent.is_zero() { "registered" } else { "duplicate" };
    assert_eq!(serde_json::to_value(&again[0]).unwrap()["outcome"], json!(outcome), "{struck}");
    Some(recorded)
}

#[tokio::test(start_paused = true)]
async fn the_key_of_a_task_that_failed_before_the_deletion_is_released_afterwards() {
    for moment in [Moment::Before, Moment::After] {
        let recorded = at_every_request(moment, fails_without_a_policy).await;
        assert!(recorded.contains(&true) && recorded.contains(&false), "{recorded:?}");
    }
}

/// Everything dies at once while there is no policy; a call that may go on keeps its place until its time is over.
#[tokio::test(start_paused = true)]
async fn a_restart_without_a_policy_loses_nothing() {
    let stack = stack().await;
    let ids = stack.register_orders("117", 0..25).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    stack.delete_policy("parcel").await;
    for queue in QueueName::STEPS {
        stack.take(queue).await;
    }
    let request = fanfold_sweep::SweepRequest { min_age: Duration::ZERO, workers_dead: true };
    stack.sweeper.sweep(request).await.unwrap();
    idle(&stack).await;
    goes_on(&stack, &ids).await;
}

/// The status of `DELETE /policies/parcel`, by a worker that may die.
async fn ask(stack: &TestStack, query: &str) -> u16 {
    let router = fanfold_api::router(Arc::new(Api::from_environment(stack.surroundings()).unwrap()));
    let request = Request::delete(format!("/policies/parcel{query}")).body(Body::empty()).unwrap();
    let status = router.oneshot(request).await.unwrap().status().as_u16();
    stack.crash.revive();
    status
}

/// The worker dies during the deletion, which is then requested again. Returns the first status, if the worker died.
async fn dies(crash: Crash) -> Option<u16> {
    let stack = TestStack::new(parcel(), api(), crash).await;
    let first = ask(&stack, "?force=true").await;
    // From here on the worker lives.
    stack.crash.struck()?;
    let again = ask(&stack, "?force=true").await;
    match first {
        200 => assert_eq!(again, 404),
        503 => assert!(matches!(again, 200 | 404), "{again}"),
        other => panic!("{other}"),
    }
    assert_eq!(ask(&stack, "").await, 404);
    stack.put_policy(parcel()).await;
    let ids = stack.register_orders("117", 0..3).await;
    stack.drain().await;
    stack.assert_settled(&ids, 10).await;
    Some(first)
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_worker_dies_is_repeated() {
    for moment in [Moment::Before, Moment::After] {
        let statuses = at_every_request(moment, dies).await;
        assert!(statuses.contains(&503), "{statuses:?}");
    }
    // The SDK repeats what got no answer.
    assert!(at_every_request(Moment::AnswerLost, dies).await.iter().all(|status| *status == 200));
}

/// The policy is deleted and stored again and again while tasks come: every accepted task is handled.
#[tokio::test(start_paused = true)]
async fn registrations_and_deletions_race() {
    let stack = stack().await;
    let pumps = stack.pumps();
    let mut accepted = Vec::new();
    for round in 0..12 {
        let tasks = |half: usize| (0..5).map(|n| order(None, "117", round * 10 + half * 5 + n)).collect::<Vec<_>>();
        let (name, late) = (format!("{round}"), format!("{round}-late"));
        let (one, deleted, two) = tokio::join!(
            stack.register.register(tasks(0), &name),
            ask(&stack, if round % 2 == 0 { "?force=true" } else { "" }),
            stack.register.register(tasks(1), &late),
        );
        assert!(matches!(deleted, 200 | 404 | 409), "{deleted}");
        for registered in [one, two] {
            match registered {
                Ok(tasks) => accepted.extend(tasks.into_iter().map(|task| task.id)),
                Err(RegisterError::Refused(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        if round % 3 == 2 {
            stack.put_policy(parcel()).await;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert!(accepted.len() > 10, "{}", accepted.len());
    drop(pumps);
    goes_on(&stack, &accepted).await;
    for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
        assert!(stack.dead(queue).await.is_empty(), "{queue:?}");
    }
}

/// A sweep does not wake lanes of kinds without a policy, and says that they wait.
#[tokio::test(start_paused = true)]
async fn a_sweep_says_what_waits() {
    fanfold_tests::listen();
    let stack = stack().await;
    stack.register_orders("117", 0..3).await;
    stack.delete_policy("parcel").await;
    stack.drain().await;
    fanfold_tests::logged();
    let report = stack.sweep().await;
    assert_eq!((report.lanes, stack.backlog().await), (0, 0));
    let logged = fanfold_tests::logged();
    assert!(logged.contains("there is no policy of their kind") && logged.contains("parcel"), "{logged}");
}
