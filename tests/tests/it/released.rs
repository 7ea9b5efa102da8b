//! Keys of tasks that failed: released once the batch API answered, kept after silence, and never taken back.

mod late;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fanfold::clock::{Clock, Timestamp, World};
use fanfold::config::variables;
use fanfold::control::{Resetting, Scope};
use fanfold::ids::TaskId;
use fanfold::limits::RETENTION;
use fanfold::messages::{HandleMessage, TaskRequest};
use fanfold_batch_api::{Answer, Call, CallError, Cause, MemberAnswer, MemberOutcome};
use fanfold_register::{Register, Registration};
use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack, changed, deaths, order};
use serde_json::{Value, json};
use uuid::Uuid;

type Said = Result<Answer, CallError>;

fn policy(changes: Value) -> Value {
    let policy = json!({
        "kind": "parcel", "target": "content.depot", "key": "content.order", "max_batch": 10, "max_attempts": 3,
        "backoff": {"base": 1, "max": 2}, "batch_api": {"command": ["truck"]}
    });
    changed(policy, changes)
}

async fn stack(changes: Value, script: impl Fn(&Call) -> Said + Send + Sync + 'static) -> TestStack {
    TestStack::new(policy(changes), ScriptedApi::new(script), Crash::never()).await
}

fn task(id: u128, number: usize) -> TaskRequest {
    TaskRequest { id: Some(single(id)), ..order(None, "117", number) }
}

fn single(id: u128) -> TaskId {
    TaskId::Single(Uuid::from_u128(id))
}

/// Registers a task under its own id; the producer repeats what fails.
async fn register(stack: &TestStack, id: u128, number: usize) -> Registration {
    stack.insist(async || stack.register.register(vec![task(id, number)], "r").await).await.remove(0).outcome
}

fn members(call: &Call, outcome: MemberOutcome) -> Said {
    let answer = |id| MemberAnswer::new(id, outcome);
    Ok(Answer::Members(call.members.iter().map(|member| answer(member.id)).collect()))
}

fn failed(call: &Call) -> Said {
    members(call, MemberOutcome::Failed)
}

fn silence() -> Said {
    Err(CallError::new(Cause::Silence, "no answer in time"))
}

/// What becomes of an order that is sent again after it failed so.
async fn again(changes: Value, script: impl Fn(&Call) -> Said + Send + Sync + 'static) -> Registration {
    let stack = stack(changes, script).await;
    assert_eq!(register(&stack, 1, 7).await, Registration::Registered);
    stack.drain().await;
    let batch =
        stack.batches.get(stack.tasks.get(&single(1)).await.unwrap().unwrap().batch.unwrap()).await.unwrap().unwrap();
    assert_eq!(batch.failed.count(), 1, "{batch:?}");
    register(&stack, 2, 7).await
}

#[tokio::test(start_paused = true)]
async fn a_key_is_free_after_an_answered_failure() {
    let scripts: [fn(&Call) -> Said; 4] = [
        failed,
        |_| Err(CallError::for_good("400")),
        |_| Err(CallError::again("500")),
        |call| members(call, MemberOutcome::Retry),
    ];
    for script in scripts {
        assert_eq!(again(json!({}), script).await, Registration::Registered);
        assert_eq!(
            again(json!({"key_after_failure": "keep"}), script).await,
            Registration::Duplicate { of: single(1) }
        );
    }
    // What the first call did is not known, but the second answer says it of this very member.
    let answer = |call: &Call| if call.attempt == 1 { silence() } else { failed(call) };
    assert_eq!(again(json!({}), answer).await, Registration::Registered);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_kept_after_silence() {
    let scripts: [fn(&Call) -> Said; 5] = [
        |_| silence(),
        |call| if call.attempt == 1 { silence() } else { members(call, MemberOutcome::Retry) },
        |call| if call.attempt == 1 { silence() } else { Err(CallError::for_good("400")) },
        |call| if call.attempt == 3 { silence() } else { Err(CallError::again("503")) },
        |_| Err(CallError::new(Cause::BadAnswer, "<html>")),
    ];
    for script in scripts {
        assert_eq!(again(json!({}), script).await, Registration::Duplicate { of: single(1) });
    }
}

/// The failed task comes late once more, when its key is free and when another one that had it failed, too.
#[tokio::test(start_paused = true)]
async fn a_task_that_had_its_turn_does_not_take_its_key_back() {
    let stack = stack(json!({}), failed).await;
    assert_eq!(register(&stack, 1, 7).await, Registration::Registered);
    stack.drain().await;
    assert_eq!(register(&stack, 1, 7).await, Registration::Known);
    assert_eq!(register(&stack, 2, 7).await, Registration::Registered);
    assert_eq!(register(&stack, 1, 7).await, Registration::Known, "while another one has it");
    assert_eq!(register(&stack, 3, 7).await, Registration::Duplicate { of: single(2) });
    stack.drain().await;
    for id in [1, 2] {
        assert_eq!(register(&stack, id, 7).await, Registration::Known);
    }
    assert_eq!(
        register(&stack, 3, 7).await,
        Registration::Duplicate { of: single(2) },
        "it is a duplicate, and stays so"
    );
    assert_eq!(register(&stack, 4, 7).await, Registration::Registered);
    stack.drain().await;
    stack.assert_settled(&[single(1), single(2), single(4)], 10).await;
}

/// Of several at once that want the key of a failed task, one gets it.
#[tokio::test(start_paused = true)]
async fn a_released_key_goes_to_one() {
    let stack = stack(json!({}), |call| {
        let first = call.members.iter().any(|member| member.id == single(1));
        if first { failed(call) } else { Ok(Answer::AllSucceeded) }
    })
    .await;
    register(&stack, 1, 7).await;
    stack.drain().await;
    let requests = (2..12).map(|id| stack.register.register(vec![task(id, 7), task(id + 100, 7)], "r"));
    let answers = futures::future::join_all(requests).await;
    // Another request may stand in for the one that got it.
    let outcomes = answers.into_iter().flat_map(Result::unwrap);
    assert_eq!(outcomes.filter(|task| !matches!(task.outcome, Registration::Duplicate { .. })).count(), 1);
    stack.drain().await;
    assert_eq!(stack.api.seen().iter().map(|seen| seen.call.members.len()).sum::<usize>(), 2);
}

/// A task that was dropped just when its key was released, and got it by an earlier read: the next task takes it over.
#[tokio::test(start_paused = true)]
async fn a_key_whose_owner_was_dropped_is_free() {
    use fanfold::store::tasks::{Duplicate, Key, KeyRequest};
    let stack = stack(json!({}), failed).await;
    let key = Key { scope: "parcel".to_owned(), value: "ORD-7".to_owned() };
    let dropped = Duplicate { id: single(2), lane: "parcel:0:117".parse().unwrap(), of: single(1) };
    stack.tasks.insert_duplicates(&[dropped]).await.unwrap();
    stack.tasks.take_keys(&[KeyRequest { key, owner: single(2) }]).await.unwrap();
    assert_eq!(register(&stack, 2, 7).await, Registration::Duplicate { of: single(1) });
    assert_eq!(register(&stack, 3, 7).await, Registration::Registered);
}

/// A clock that is ahead.
struct Ahead(Arc<dyn Clock>, Duration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        self.0.now().plus(self.1)
    }
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// What becomes of a task that is registered so much later, when DynamoDB has deleted what expired until then.
async fn later(stack: &TestStack, days: u32, id: u128) -> Registration {
    let clock: Arc<dyn Clock> = Arc::new(Ahead(Arc::clone(&stack.world.clock), days * DAY));
    let now = clock.now().seconds();
    let surroundings = stack.surroundings();
    let scan = surroundings.dynamodb.scan().table_name("TasksTable").send().await.unwrap();
    for item in scan.items() {
        let ttl = item.get("ttl").map(|ttl| ttl.as_n().unwrap().parse::<u64>().unwrap());
        if ttl.is_some_and(|ttl| ttl < now) {
            stack.delete_record("TasksTable", item["id"].as_s().unwrap()).await;
        }
    }
    let mut surroundings = surroundings.clone();
    surroundings.world = World { clock, ..stack.world.clone() };
    let register = Register::from_environment(&surroundings).unwrap();
    register.register(vec![task(id, 7)], "r").await.unwrap().remove(0).outcome
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_long_keeps_its_key_and_one_that_ended_long_ago_does_not() {
    let stack = stack(json!({}), |_| Ok(Answer::AllSucceeded)).await;
    remembers_keys_for(&stack, RETENTION.as_secs() as u32 / DAY.as_secs() as u32).await;
}

#[tokio::test(start_paused = true)]
async fn keys_are_remembered_for_as_long_as_a_deployment_keeps_tasks() {
    let api = ScriptedApi::new(|_| Ok(Answer::AllSucceeded));
    let days = [(variables::RETENTION_DAYS, "120")];
    let stack = TestStack::deployed(policy(json!({})), api, Crash::never(), &days).await;
    remembers_keys_for(&stack, 120).await;
}

/// A task that failed two days after a batch had claimed it is registered again when its own record has expired, but not yet its
/// key's: it takes the key, which is not free any more.
#[tokio::test(start_paused = true)]
async fn a_key_that_its_own_task_takes_again_is_not_free() {
    let calls = AtomicUsize::new(0);
    let fails_late = move |call: &Call| match calls.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => {
            let again = |id| MemberAnswer {
                retry_after: Some(Duration::from_secs(20 * 3_600)),
                ..MemberAnswer::new(id, MemberOutcome::Retry)
            };
            Ok(Answer::Members(call.members.iter().map(|member| again(member.id)).collect()))
        }
        2 => failed(call),
        _ => Ok(Answer::AllSucceeded),
    };
    let stack = stack(json!({}), fails_late).await;
    assert_eq!(register(&stack, 1, 7).await, Registration::Registered);
    stack.drain().await;
    let batch = stack.only_batch().await;
    assert_eq!(later(&stack, 13, 1).await, Registration::Registered);
    // The record of the batch that failed is still there: its message comes once more, and what failed is reset.
    stack.handle_message(HandleMessage::awaited(&batch).unwrap().0).await;
    let resetting = Resetting::from_environment(stack.surroundings()).unwrap();
    assert_eq!(resetting.reset_page(&Scope::All, None).await.unwrap().reset, 0, "its work waits already");
    assert_eq!(register(&stack, 2, 7).await, Registration::Duplicate { of: single(1) });
    stack.drain().await;
    assert_eq!(register(&stack, 3, 7).await, Registration::Duplicate { of: single(1) });
    assert_eq!(stack.api.seen().len(), 4);
}

/// The key of a task is remembered for so many days after a batch claimed the task, but for much longer while it waits.
async fn remembers_keys_for(stack: &TestStack, remembered: u32) {
    register(stack, 1, 7).await;
    assert_eq!(later(stack, remembered + 1, 2).await, Registration::Duplicate { of: single(1) }, "it waits");
    stack.drain().await;
    assert_eq!(
        later(stack, remembered - 1, 3).await,
        Registration::Duplicate { of: single(1) },
        "it was claimed lately"
    );
    assert_eq!(later(stack, remembered + 1, 4).await, Registration::Registered, "it was claimed long ago");
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 2);
}

/// Whichever request of those that follow the failure is lost with its worker: the key is free in the end.
#[tokio::test(start_paused = true)]
async fn a_crash_around_the_failure_does_not_keep_the_key() {
    for at in 1.. {
        let script = |call: &Call| {
            let first = call.members.iter().any(|member| member.id == single(1));
            if first { failed(call) } else { Ok(Answer::AllSucceeded) }
        };
        // One that died after the call makes it again, and hears the same.
        let stack = TestStack::new(policy(json!({})), ScriptedApi::new(script), Crash::new(at, Moment::After)).await;
        register(&stack, 1, 7).await;
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        let outcome = register(&stack, 2, 7).await;
        let taken = matches!(outcome, Registration::Registered | Registration::Known);
        assert!(taken, "{at} {:?}: {outcome:?}", stack.crash.struck());
        if stack.crash.struck().is_none() {
            assert!(at > 15, "{at} requests");
            break;
        }
    }
}

/// A stack whose crash begins now: the first task failed, its record is gone, and calls work from now on.
async fn failed_and_gone(crash: Crash) -> TestStack {
    let calls = AtomicUsize::new(0);
    let fails_once = move |call: &Call| match calls.fetch_add(1, Ordering::Relaxed) {
        0 => failed(call),
        _ => Ok(Answer::AllSucceeded),
    };
    let stack = TestStack::new(policy(json!({})), ScriptedApi::new(fails_once), crash.waiting()).await;
    register(&stack, 1, 7).await;
    stack.drain().await;
    stack.delete_record("TasksTable", &single(1).to_string()).await;
    stack.crash.begin();
    stack
}

/// Registers a task again that failed and whose record is gone, with a worker that dies at one of its requests. Another task does
/// not get its key.
async fn taken_again(crash: Crash) -> Option<String> {
    let stack = failed_and_gone(crash).await;
    register(&stack, 1, 7).await;
    assert_eq!(register(&stack, 2, 7).await, Registration::Duplicate { of: single(1) });
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(register(&stack, 3, 7).await, Registration::Duplicate { of: single(1) });
    let called: Vec<TaskId> =
        stack.api.seen().iter().flat_map(|seen| seen.call.members.iter().map(|member| member.id)).collect();
    assert!(called.len() > 1 && called.iter().all(|id| *id == single(1)), "{called:?}");
    stack.crash.struck()
}

deaths!(
    taken_again,
    10,
    dies_before_a_request: Before,
    dies_after_a_request: After,
    loses_an_answer: AnswerLost,
);
