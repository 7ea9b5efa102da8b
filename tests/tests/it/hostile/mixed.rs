//! A stack at work, and at every queue hostile messages beside the right ones: only they fail.

use fanfold::delivery::Delivery;
use fanfold::ids::TaskId;
use fanfold::tracking::OpenRequest;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, delivery, order, policy};
use serde_json::json;

use super::bodies::{Holds, damaged, rubbish, truncated};
use super::{assert_unharmed, hand};

/// What there is to damage in a queue's messages.
fn fields(queue: QueueName) -> Vec<(&'static str, Holds)> {
    let (waiting, bundles) = (("/waiting", Holds::Object), ("/waiting/bundles", Holds::Text));
    match queue {
        QueueName::Produce => vec![("/fanout", Holds::Text), ("/partition", Holds::Small)],
        QueueName::Register => vec![
            ("/tasks", Holds::List),
            ("/tasks/0", Holds::Object),
            ("/tasks/0/kind", Holds::Text),
            ("/tasks/0/content", Holds::Object),
        ],
        QueueName::Elect => {
            vec![("/lane", Holds::Text), waiting, bundles, ("/workflow", Holds::Text), ("/tries", Holds::Small)]
        }
        QueueName::Group => {
            vec![("/lane", Holds::Text), ("/batch", Holds::Text), ("/epoch", Holds::Large), waiting, bundles]
        }
        QueueName::Handle => vec![("/batch", Holds::Text), ("/attempt", Holds::Small)],
        QueueName::Ack => vec![("/batch/batch", Holds::Text), ("/batch/lane", Holds::Text)],
        QueueName::Notify | QueueName::Notices => vec![("/fanout", Holds::Text)],
    }
}

/// Everything hostile that can be made of one right message.
fn hostile(queue: QueueName, right: &str) -> Vec<Delivery> {
    let mut bodies = rubbish();
    bodies.extend(truncated(right));
    // No bundles at all are nothing wrong in a hint.
    let harmless = |name: &str| name.starts_with("/waiting/bundles is \"\"");
    bodies.extend(damaged(right, &fields(queue)).into_iter().filter(|(name, _)| !harmless(name)));
    bodies.into_iter().map(|(name, body)| delivery(format!("bad: {name}"), body)).collect()
}

/// Hands the right messages with hostile ones before, between and after them. Returns how many right ones there were.
async fn mix(stack: &TestStack, queue: QueueName, right: Vec<Delivery>) -> usize {
    let bad = hostile(queue, &right.first().unwrap_or_else(|| panic!("nothing came to {queue:?}")).body);
    let mut expected: Vec<String> = bad.iter().map(|bad| bad.message_id.clone()).collect();
    expected.sort_unstable();
    let count = right.len();
    let mut mixed = Vec::new();
    let mut right = right.into_iter();
    for (n, bad) in bad.into_iter().enumerate() {
        mixed.push(bad);
        if n % 3 == 0 {
            // Every right message comes twice.
            mixed.extend(right.next().into_iter().flat_map(|right| [right.clone(), right]));
        }
    }
    mixed.extend(right);
    let failed = hand(stack, queue, mixed).await;
    let missed: Vec<&String> = expected.iter().filter(|id| !failed.contains(id)).collect();
    let wronged: Vec<&String> = failed.iter().filter(|id| !expected.contains(id)).collect();
    assert!(missed.is_empty() && wronged.is_empty(), "{queue:?} took {missed:?} and failed {wronged:?}");
    assert_eq!(failed, expected, "each once");
    count
}

#[tokio::test(start_paused = true)]
async fn hostile_messages_at_every_queue_fail_alone() {
    let stack = TestStack::with(json!({})).await;
    let (_, ids) = stack.open(7, true).await;
    let orders: Vec<_> = ids.iter().enumerate().map(|(n, id)| order(Some(*id), "117", n)).collect();
    let requests = orders.chunks(3).enumerate().map(|(n, tasks)| delivery(n, json!({"tasks": tasks}))).collect();
    mix(&stack, QueueName::Register, requests).await;
    for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle, QueueName::Ack, QueueName::Notify] {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        let right = stack.take(queue).await;
        mix(&stack, queue, right).await;
    }
    let tasks: Vec<TaskId> = ids.into_iter().map(TaskId::Item).collect();
    assert_eq!(stack.api.seen().len(), 1, "one batch, one call");
    assert_unharmed(&stack, &tasks, 0).await;
}

#[tokio::test(start_paused = true)]
async fn hostile_messages_to_producers_fail_alone() {
    let stack = TestStack::with(json!({})).await;
    let row = |n: usize| json!({"kind": "parcel", "content": {"depot": "117", "n": n}});
    stack.sources.answer(move |_| Ok(json!({"tasks": (0..5).map(row).collect::<Vec<_>>()})));
    let producer = json!({"source": {"url": "https://rows.example/"}, "partitions": 4, "key": "content.n"});
    let producer = Some(serde_json::from_value(producer).unwrap());
    let request = OpenRequest { producer, ..OpenRequest::default() };
    let id = stack.producing.open(&stack.tracking, request, None).await.unwrap().fanout.id;
    let right = stack.take(QueueName::Produce).await;
    assert_eq!(mix(&stack, QueueName::Produce, right).await, 4);
    stack.drain().await;
    let fanout = stack.tracking.fanouts.get(id).await.unwrap().unwrap();
    assert_eq!((fanout.complete(), fanout.total), (true, 5));
}

/// The other forms a message may have: a task on its own, acks by item, failures to be reported.
#[tokio::test(start_paused = true)]
async fn hostile_messages_of_users_fail_alone() {
    let api = ScriptedApi::new(|_| Err(fanfold_batch_api::CallError::for_good("404")));
    let changes = json!({"notify": {"queue": "notices"}});
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    let single = json!({"kind": "parcel", "content": {"depot": "117"}}).to_string();
    let mut bad: Vec<Delivery> = truncated(&single).into_iter().map(|(name, body)| delivery(name, body)).collect();
    let named = damaged(&single, &[("/kind", Holds::Text)]);
    bad.extend(named.into_iter().map(|(name, body)| delivery(name, body)));
    let count = bad.len();
    bad.push(delivery("right", &single));
    assert_eq!(hand(&stack, QueueName::Register, bad).await.len(), count);
    let (fanout, ids) = stack.open(3, true).await;
    let acks = json!({"items": ids[..2], "failed": ids[2..]}).to_string();
    let lists =
        [("/items", Holds::List), ("/failed", Holds::List), ("/items/0", Holds::Text), ("/failed/0", Holds::Text)];
    let mut bad: Vec<Delivery> = truncated(&acks).into_iter().map(|(name, body)| delivery(name, body)).collect();
    bad.extend(damaged(&acks, &lists).into_iter().map(|(name, body)| delivery(name, body)));
    let count = bad.len();
    assert_eq!(hand(&stack, QueueName::Ack, bad).await.len(), count);
    let header = stack.tracking.fanouts.get(fanout).await.unwrap().unwrap();
    assert_eq!(header.inline_group().unwrap().pending.count(), 3, "nothing of a bad message was applied");
    assert!(hand(&stack, QueueName::Ack, vec![delivery("right", &acks)]).await.is_empty());
    for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        stack.deliver(queue).await;
    }
    let notices = stack.take(QueueName::Notify).await;
    let batch = notices.iter().find(|notice| notice.body.contains("batch")).unwrap();
    let named = [("/batch", Holds::Object), ("/batch/batch", Holds::Text), ("/batch/lane", Holds::Text)];
    let mut bad: Vec<Delivery> = truncated(&batch.body).into_iter().map(|(name, body)| delivery(name, body)).collect();
    bad.extend(damaged(&batch.body, &named).into_iter().map(|(name, body)| delivery(name, body)));
    let count = bad.len();
    bad.extend(notices);
    assert_eq!(hand(&stack, QueueName::Notify, bad).await.len(), count);
    stack.drain().await;
    stack.assert_locks_free().await;
    let end = stack.completions().await.remove(0);
    assert_eq!((end.total, end.succeeded, end.failed), (3, 2, 1));
}

/// Right requests of another size, kind or content than is allowed.
#[tokio::test(start_paused = true)]
async fn tasks_beyond_the_limits_fail_alone() {
    let stack = TestStack::with(json!({})).await;
    let task = |content: serde_json::Value| json!({"tasks": [{"kind": "parcel", "content": content}]});
    let kind = |kind: &str| json!({"tasks": [{"kind": kind, "content": {"depot": "117"}}]});
    let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
    let id = "01890000-0000-7000-8000-000000000001";
    let twin = json!({"kind": "parcel", "id": id, "content": {"depot": "117"}});
    let bad = [
        ("no tasks", json!({"tasks": []})),
        ("too many tasks", json!({"tasks": vec![&twin; 10_001]})),
        ("one id twice", json!({"tasks": [twin, twin]})),
        ("an unknown kind", kind("letter")),
        ("no kind", kind("")),
        ("a kind with a colon", kind("parcel:0")),
        ("a huge kind", kind(&"k".repeat(100_000))),
        ("no depot", task(json!({}))),
        ("a depot that is none", task(json!({"depot": null}))),
        ("a depot of objects", task(json!({"depot": [{}]}))),
        ("a huge depot", task(json!({"depot": "7".repeat(1_025)}))),
        ("a huge content", task(json!({"depot": "117", "note": "x".repeat(128 * 1_024)}))),
        ("a deep content", task(json!({"depot": "117", "note": deep}))),
        ("both forms", json!({"tasks": [twin], "kind": "parcel", "content": {"depot": "117"}})),
        ("an index beyond", json!({"kind": "parcel", "id": format!("{id}:{id}:7168"), "content": {"depot": "117"}})),
        ("a negative index", json!({"kind": "parcel", "id": format!("{id}:{id}:-1"), "content": {"depot": "117"}})),
    ];
    let mut expected: Vec<String> = bad.iter().map(|(name, _)| (*name).to_owned()).collect();
    expected.sort_unstable();
    let mut deliveries: Vec<Delivery> = bad.into_iter().map(|(name, body)| delivery(name, body)).collect();
    deliveries.insert(5, delivery("right", &twin));
    assert_eq!(hand(&stack, QueueName::Register, deliveries).await, expected);
    stack.drain().await;
    stack.assert_settled(&[id.parse().unwrap()], 10).await;
}
