//! Grouping: leaders, claims and attempts, with messages repeated, reordered and late.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::delivery::Delivery;
use fanfold::ids::TaskId;
use fanfold::limits::LOST_ATTEMPTS;
use fanfold::members::Members;
use fanfold::messages::{ElectMessage, GroupMessage, HandleMessage};
use fanfold_handle::api::{Answer, CallError};
use fanfold_register::Outcome;
use fanfold_tests::{Crash, QueueName, ScriptedApi, Stack, order, policy};
use futures::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

/// That of the policy's calls.
const TIMEOUT: Duration = Duration::from_secs(10);

async fn stack(changes: Value) -> Stack {
    Stack::new(policy(changes), ScriptedApi::always_succeeds(), Crash::never()).await
}

async fn register(stack: &Stack, depot: &str, numbers: std::ops::Range<usize>) -> Vec<TaskId> {
    let request = format!("{depot}-{numbers:?}");
    let tasks = numbers.map(|n| order(None, depot, n)).collect();
    stack.register.register(tasks, &request).await.unwrap().into_iter().map(|task| task.id).collect()
}

#[tokio::test(start_paused = true)]
async fn tasks_of_one_target_share_batches() {
    let stack = stack(json!({})).await;
    let mut tasks = register(&stack, "117", 0..25).await;
    tasks.extend(register(&stack, "900", 0..3).await);
    stack.drain().await;
    let by_task = stack.assert_settled(&tasks, 10).await;
    let batches: BTreeSet<Uuid> = by_task.values().map(|batch| batch.id).collect();
    assert_eq!(batches.len(), 4, "25 tasks in 3 batches of up to 10, 3 tasks in one");
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_where_one_is_allowed() {
    let stack = stack(json!({"max_in_flight": 1, "max_batch": 5})).await;
    let tasks = register(&stack, "117", 0..40).await;
    let lane = "parcel:0:117".parse().unwrap();
    for _ in 0..10_000 {
        for queue in QueueName::STEPS {
            stack.deliver(queue).await;
            assert!(stack.locks.get(&lane).await.unwrap().in_flight.len() <= 1);
        }
        if stack.backlog().await == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let by_task = stack.assert_settled(&tasks, 5).await;
    let batches: BTreeSet<Uuid> = by_task.values().map(|batch| batch.id).collect();
    assert_eq!(batches.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn many_leaders_compete_for_a_lane() {
    let stack = stack(json!({"max_batch": 7, "max_in_flight": 50})).await;
    let tasks = register(&stack, "117", 0..200).await;
    stack.take(QueueName::Elect).await;
    // Every task has a workflow of its own, and all of them are delivered at once, each to a worker of its own.
    let elections = tasks.iter().map(|task| {
        let message = ElectMessage {
            lane: "parcel:0:117".parse().unwrap(),
            tasks: Members::new([*task]),
            workflow: stack.world.uuid(),
            tries: 0,
        };
        let body = serde_json::to_string(&message).unwrap();
        stack.hand(QueueName::Elect, vec![Delivery { message_id: task.to_string(), body, receive_count: 1 }])
    });
    assert!(join_all(elections).await.iter().all(Vec::is_empty));
    let lock = stack.locks.get(&"parcel:0:117".parse().unwrap()).await.unwrap();
    assert_eq!(lock.epoch, 1, "one was elected");
    // Once the linger is over, all leaders there are come forward.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let leaders = stack.take(QueueName::Group).await;
    let batch = |leader: &Delivery| serde_json::from_str::<GroupMessage>(&leader.body).unwrap().batch;
    assert_eq!(leaders.iter().map(batch).collect::<Vec<_>>(), [lock.holder.unwrap()]);
    assert!(stack.hand(QueueName::Group, leaders).await.is_empty());
    let batches = stack.all_batches().await;
    assert_eq!((batches.len(), batches[0].members.len(), stack.tasks.claimed(&tasks).await.unwrap().len()), (1, 7, 7));
    stack.drain().await;
    stack.assert_settled(&tasks, 7).await;
}

#[tokio::test(start_paused = true)]
async fn every_message_twice_and_in_any_order() {
    for seed in 0..10 {
        let stack = stack(json!({"max_batch": 4, "key": "content.order"})).await;
        let mut random = fastrand::Rng::with_seed(seed);
        let (_, ids) = stack.open(30, true).await;
        let requests: Vec<_> =
            ids.iter().enumerate().map(|(n, id)| order(Some(*id), ["117", "900", "331"][n % 3], n)).collect();
        for chunk in requests.chunks(7) {
            stack.send(QueueName::Register, json!({ "tasks": chunk })).await;
        }
        let mut late: Vec<(QueueName, Delivery)> = Vec::new();
        for round in 0..5_000 {
            let mut queues = QueueName::STEPS;
            random.shuffle(&mut queues);
            for queue in queues {
                let mut deliveries = stack.take(queue).await;
                late.extend(deliveries.iter().filter(|_| random.bool()).map(|delivery| (queue, delivery.clone())));
                random.shuffle(&mut deliveries);
                for delivery in deliveries {
                    let again = random.bool();
                    let failed = stack.hand(queue, vec![delivery.clone()]).await;
                    if again || !failed.is_empty() {
                        stack.hand(queue, vec![delivery]).await;
                    }
                }
            }
            // Copies that come much later, in the wrong order.
            if round % 20 == 19 {
                random.shuffle(&mut late);
                for (queue, delivery) in late.split_off(late.len() / 2) {
                    stack.hand(queue, vec![delivery]).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            if round > 200 && stack.backlog().await == 0 {
                break;
            }
        }
        stack.sweep().await;
        stack.drain().await;
        let tasks: Vec<TaskId> = ids.into_iter().map(TaskId::Item).collect();
        stack.assert_settled(&tasks, 4).await;
        let completions = stack.completions().await;
        assert_eq!(completions.len(), 1, "seed {seed}");
        assert_eq!((completions[0].succeeded, completions[0].failed), (30, 0), "seed {seed}");
    }
}

/// The plain algorithm's flaw: two workers act in one leader's name, one of them late.
#[tokio::test(start_paused = true)]
async fn a_leader_that_wakes_up_late_dispatches_nothing_twice() {
    let stack = stack(json!({"max_batch": 3})).await;
    let mut tasks = register(&stack, "117", 0..8).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let message = stack.take(QueueName::Group).await;
    stack.hand(QueueName::Group, message.clone()).await;
    tasks.extend(register(&stack, "117", 8..12).await);
    stack.drain().await;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    for _ in 0..3 {
        stack.hand(QueueName::Group, message.clone()).await;
    }
    stack.drain().await;
    stack.assert_settled(&tasks, 3).await;
}

#[tokio::test(start_paused = true)]
async fn two_workers_form_one_batch_at_once() {
    let stack = stack(json!({"max_batch": 3})).await;
    let tasks = register(&stack, "117", 0..10).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let message = stack.take(QueueName::Group).await;
    let workers = (0..5).map(|_| stack.hand(QueueName::Group, message.clone()));
    assert!(join_all(workers).await.iter().all(Vec::is_empty));
    stack.drain().await;
    stack.assert_settled(&tasks, 3).await;
}

/// A crash between claiming and dispatching: the plain algorithm loses the tasks it marked.
#[tokio::test(start_paused = true)]
async fn a_batch_whose_message_is_lost_is_found_by_its_lock() {
    let stack = stack(json!({})).await;
    let tasks = register(&stack, "117", 0..4).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 1, "the leader's message is lost");
    stack.sweep().await;
    stack.deliver(QueueName::Group).await;
    assert_eq!(stack.take(QueueName::Handle).await.len(), 1, "the batch's message is lost");
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn tasks_whose_messages_are_lost_are_found_in_the_index() {
    let stack = stack(json!({"max_batch": 3})).await;
    let tasks = register(&stack, "117", 0..10).await;
    stack.take(QueueName::Elect).await;
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&tasks, 3).await;
}

#[tokio::test(start_paused = true)]
async fn a_fanout_whose_ack_is_lost_completes_by_a_sweep() {
    let stack = stack(json!({})).await;
    let (_, ids) = stack.open(4, true).await;
    stack.register(ids.iter().enumerate().map(|(n, id)| order(Some(*id), "117", n)).collect()).await;
    for _ in 0..6 {
        for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
            stack.deliver(queue).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(stack.take(QueueName::Ack).await.len(), 1, "the ack is lost");
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 0);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
    stack.assert_locks_free().await;
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_and_end() {
    let api = ScriptedApi::new(|_| Err(CallError::again("503")));
    let stack = Stack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = register(&stack, "117", 0..2).await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((stack.api.seen().len(), batch.attempts, batch.failed.count()), (4, 4, 2));
    let keys: BTreeSet<String> = stack.api.seen().into_iter().map(|seen| seen.key).collect();
    assert_eq!(keys.len(), 1, "a batch of which nothing was done keeps its key");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_running_attempt_does_not_call() {
    let stack = stack(json!({})).await;
    let tasks = register(&stack, "117", 0..2).await;
    for queue in [QueueName::Elect, QueueName::Group] {
        tokio::time::sleep(Duration::from_secs(2)).await;
        stack.deliver(queue).await;
    }
    let message = stack.take(QueueName::Handle).await;
    let both = (0..2).map(|_| stack.hand(QueueName::Handle, message.clone()));
    join_all(both).await;
    assert_eq!(stack.api.seen().len(), 1);
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 1);
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_accepted_once() {
    let stack = stack(json!({"key": "content.order"})).await;
    let (_, ids) = stack.open(3, true).await;
    let first = stack.register.register(vec![order(Some(ids[0]), "117", 1)], "a").await.unwrap();
    assert_eq!(first[0].outcome, Outcome::Registered);
    let again = stack.register.register(vec![order(Some(ids[0]), "117", 1)], "a").await.unwrap();
    assert_eq!(again[0].outcome, Outcome::Known, "a repeated request gets through");
    let other = vec![order(Some(ids[1]), "117", 1), order(Some(ids[2]), "117", 2)];
    let other = stack.register.register(other, "b").await.unwrap();
    assert_eq!(other[0].outcome, Outcome::Duplicate { of: TaskId::Item(ids[0]) });
    assert_eq!(other[1].outcome, Outcome::Registered);
    stack.drain().await;
    stack.assert_settled(&[TaskId::Item(ids[0]), TaskId::Item(ids[2])], 10).await;
    let completions = stack.completions().await;
    assert_eq!(completions.len(), 1, "the duplicate's item was acked");
    assert_eq!((completions[0].total, completions[0].succeeded, completions[0].duplicates), (3, 2, 1));
}

/// A request takes a key and dies; the next one with that key must not be dropped for a task that never comes.
#[tokio::test(start_paused = true)]
async fn a_duplicate_stands_in_for_a_task_that_was_never_stored() {
    use fanfold::store::tasks::{Key, KeyClaim};
    let stack = stack(json!({"key": "content.order"})).await;
    let lost = TaskId::Single(Uuid::from_u128(1));
    let key = Key { scope: "parcel".to_owned(), value: "ORD-1".to_owned() };
    assert_eq!(stack.tasks.take_keys(&[KeyClaim { key, owner: lost }]).await.unwrap()[0].owner, lost);
    let registered = stack.register.register(vec![order(None, "117", 1)], "b").await.unwrap();
    assert_eq!(registered[0].outcome, Outcome::Duplicate { of: lost });
    stack.drain().await;
    stack.assert_settled(&[lost], 10).await;
}

#[tokio::test(start_paused = true)]
async fn partitions_split_a_target() {
    let stack = stack(json!({"partitions": 4, "key": "content.order"})).await;
    let tasks = register(&stack, "117", 0..60).await;
    stack.drain().await;
    let by_task = stack.assert_settled(&tasks, 10).await;
    let lanes: BTreeSet<u32> = by_task.values().map(|batch| batch.lane.partition).collect();
    assert_eq!(lanes.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_request_with_a_bad_task_stores_nothing() {
    let stack = stack(json!({})).await;
    let mut bad = order(None, "117", 2);
    bad.content = json!({"no_depot": true});
    let error = stack.register.register(vec![order(None, "117", 1), bad], "a").await.unwrap_err();
    assert!(error.to_string().contains("tasks[1].target"), "{error}");
    assert_eq!(stack.backlog().await, 0);
    assert_eq!(stack.tasks.pending(&"parcel:0:117".parse().unwrap(), 10).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn only_the_bad_message_of_several_fails() {
    let stack = stack(json!({})).await;
    let delivery =
        |id: &str, body: Value| Delivery { message_id: id.to_owned(), body: body.to_string(), receive_count: 1 };
    let good = json!({"tasks": [{"kind": "parcel", "content": {"depot": "117"}}]});
    let single = json!({"kind": "parcel", "content": {"depot": "900"}});
    let deliveries = vec![
        delivery("good", good),
        delivery("single", single),
        delivery("unknown kind", json!({"tasks": [{"kind": "letter", "content": {}}]})),
        delivery("garbage", json!("x")),
        delivery("empty", json!({"tasks": []})),
    ];
    let mut failed = stack.hand(QueueName::Register, deliveries).await;
    failed.sort_unstable();
    assert_eq!(failed, ["empty", "garbage", "unknown kind"]);
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn forged_messages_change_nothing() {
    let stack = stack(json!({})).await;
    let tasks = register(&stack, "117", 0..3).await;
    let batch = Uuid::from_u128(9);
    let lane = || "parcel:0:117".parse().unwrap();
    let group = GroupMessage { lane: lane(), batch, epoch: 3, tasks: Members::new(tasks.clone()) };
    let bodies = [
        (QueueName::Handle, serde_json::to_string(&HandleMessage { batch, attempt: 1 }).unwrap(), 1),
        (QueueName::Elect, "{\"lane\":\"nonsense\"}".to_owned(), 1),
        (QueueName::Group, "[]".to_owned(), 1),
    ];
    for (queue, body, failures) in bodies {
        let failed = stack.hand(queue, vec![Delivery { message_id: "m".to_owned(), body, receive_count: 1 }]).await;
        assert_eq!(failed.len(), failures, "{queue:?}");
    }
    // A leader that was never elected claims nothing.
    let body = serde_json::to_string(&group).unwrap();
    stack.hand(QueueName::Group, vec![Delivery { message_id: "m".to_owned(), body, receive_count: 1 }]).await;
    assert_eq!((stack.all_batches().await.len(), stack.tasks.claimed(&tasks).await.unwrap().len()), (0, 0));
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_lease_does_not_count_twice() {
    let api = ScriptedApi::new(|_| Ok(Answer::AllSucceeded));
    let stack = Stack::new(policy(json!({})), api, Crash::never()).await;
    let tasks = register(&stack, "117", 0..2).await;
    for queue in [QueueName::Elect, QueueName::Group] {
        tokio::time::sleep(Duration::from_secs(2)).await;
        stack.deliver(queue).await;
    }
    // A worker begins and falls asleep; after its lease another one does the work.
    let message: HandleMessage =
        serde_json::from_str(&stack.receive(QueueName::Handle).await[0].body.clone().unwrap()).unwrap();
    let asleep = stack.batches.begin(message.batch, message.attempt, TIMEOUT).await.unwrap().done().unwrap();
    tokio::time::sleep(Duration::from_secs(130)).await;
    stack.handle_message(message).await;
    let late = fanfold::store::batches::Settlement {
        succeeded: fanfold::bits::Bits::default(),
        silent: fanfold::bits::Bits::default(),
        failed: fanfold::bits::Bits::ones(2),
        errors: vec![("too late".to_owned(), fanfold::bits::Bits::ones(2))],
        refused: 0,
        rounds: 0,
        last_error: None,
        retry_at: None,
    };
    assert!(!stack.batches.settle(&asleep, late).await.unwrap().is_done(), "the late outcome is refused");
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.failed.count(), batch.attempts), (2, 0, 2));
}

/// A worker that dies while it calls is no failure of the batch API: it uses up no attempt of the policy.
#[tokio::test(start_paused = true)]
async fn lost_workers_use_up_no_attempts() {
    let api = ScriptedApi::always_succeeds();
    let stack = Stack::new(policy(json!({"max_attempts": 2})), api, Crash::never()).await;
    let tasks = register(&stack, "117", 0..3).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stack.deliver(QueueName::Group).await;
    let batch = stack.all_batches().await.remove(0).id;
    for attempt in 1..=10_u32 {
        // The worker began the attempt, and died.
        let lost = attempt.saturating_sub(1).max(1);
        assert!(stack.batches.begin(batch, lost, TIMEOUT).await.unwrap().is_done());
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    stack.sweep().await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.attempts, batch.ended), (3, 11, 1));
}

/// But a batch that kills every worker ends.
#[tokio::test(start_paused = true)]
async fn a_batch_that_kills_its_workers_ends() {
    let stack = stack(json!({})).await;
    let tasks = register(&stack, "117", 0..3).await;
    stack.deliver(QueueName::Elect).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stack.deliver(QueueName::Group).await;
    let batch = stack.all_batches().await.remove(0).id;
    for attempt in 1..=LOST_ATTEMPTS {
        let lost = attempt.saturating_sub(1).max(1);
        assert!(stack.batches.begin(batch, lost, TIMEOUT).await.unwrap().is_done());
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    stack.sweep().await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.failed.count(), stack.api.seen().len()), (3, 0));
    assert!(batch.error(0).unwrap().contains("workers were lost"));
}
