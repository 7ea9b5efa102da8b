//! Well-formed messages that no step sent, about lanes and tasks: to the queues `elect` and `register`.

use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::{ElectMessage, TaskRequest};
use fanfold::waiting::Waiting;
use fanfold_tests::{QueueName, TestStack, delivery, message, order};
use serde_json::json;
use uuid::Uuid;

use super::{assert_unharmed, hand};

fn elect(lane: &str, tasks: &[TaskId]) -> ElectMessage {
    let waiting = Waiting::alone(tasks.iter().copied());
    ElectMessage::stored(lane.parse().unwrap(), waiting, Uuid::from_u128(7))
}

/// A bundle that is not there.
fn unknown_bundle() -> Waiting {
    Waiting { bundles: [(Uuid::max(), 7)].into(), ..Waiting::default() }
}

/// Elections of lanes that no task is in, for tasks that are elsewhere or nowhere, in another's name and number.
fn forgeries(right: &ElectMessage, tasks: &[TaskId]) -> Vec<ElectMessage> {
    let nowhere = ItemId { fanout: Uuid::nil(), group: Uuid::nil(), index: 7_167 };
    let strangers = [TaskId::Single(Uuid::max()), TaskId::Item(nowhere)];
    vec![
        elect("parcel:0:900", tasks),
        elect("parcel:1:117", tasks),
        elect("parcel:4294967295:", &[]),
        elect("parcel:0:\u{0}\u{ffff}::", &strangers),
        elect(&format!("parcel:0:{}", "7".repeat(1_024)), tasks),
        elect("parcel:0:117", &strangers),
        ElectMessage { workflow: right.workflow, ..elect("parcel:0:900", tasks) },
        ElectMessage { lane: "parcel:0:900".parse().unwrap(), ..right.clone() },
        ElectMessage { waiting: unknown_bundle(), ..right.clone() },
        ElectMessage { tries: u32::MAX, ..right.clone() },
        ElectMessage { waiting: Waiting::default(), ..right.clone() },
        ElectMessage { workflow: Uuid::nil(), ..right.clone() },
    ]
}

/// An election is a hint: each leader finds the lane's own tasks, and no others. Each forgery at each stage.
#[tokio::test(start_paused = true)]
async fn forged_elections_do_no_harm_at_any_stage() {
    let queues = [QueueName::Elect, QueueName::Group, QueueName::Handle, QueueName::Ack];
    for stage in 0..=queues.len() {
        let stack = TestStack::with(json!({"max_batch": 5})).await;
        let (_, ids) = stack.open(12, true).await;
        let tasks = stack.register_items(&ids).await;
        let right: ElectMessage = serde_json::from_str(&stack.take(QueueName::Elect).await[0].body).unwrap();
        stack.send(QueueName::Elect, serde_json::to_string(&right).unwrap()).await;
        stack.pass(&queues[..stage]).await;
        let forged = forgeries(&right, &tasks);
        let deliveries = forged.iter().enumerate().map(|(n, forged)| message(n, forged)).collect();
        assert_eq!(hand(&stack, QueueName::Elect, deliveries).await, Vec::<String>::new());
        assert_unharmed(&stack, &tasks, 0).await;
    }
}

/// DynamoDB refuses a key of more than 2,048 bytes, and with it a whole read of many lanes.
#[tokio::test(start_paused = true)]
async fn a_lane_that_can_be_no_key_does_not_stop_all_elections() {
    let stack = TestStack::with(json!({})).await;
    let (_, ids) = stack.open(3, true).await;
    let tasks = stack.register_items(&ids).await;
    let mut elections = stack.take(QueueName::Elect).await;
    let lanes = [
        ("a huge target", format!("parcel:0:{}", "7".repeat(1_025))),
        ("a huge kind", format!("{}:0:117", "k".repeat(65))),
        ("a mebibyte", format!("parcel:0:{}", "7".repeat(1_024 * 1_024))),
        ("no kind at all", ":0:117".to_owned()),
        ("a kind with a blank", "a b:0:117".to_owned()),
    ];
    let mut expected: Vec<&str> = lanes.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    for (name, lane) in &lanes {
        elections.insert(0, delivery(name, json!({"lane": lane, "workflow": Uuid::nil()})));
    }
    assert_eq!(hand(&stack, QueueName::Elect, elections).await, expected);
    assert_unharmed(&stack, &tasks, 0).await;
}

/// A task that is stored stays as it is: registering its id again, in any form, changes neither content nor lane.
#[tokio::test(start_paused = true)]
async fn a_task_is_registered_once_however_it_comes_again() {
    let stack: TestStack = TestStack::with(json!({})).await;
    let (_, ids) = stack.open(3, true).await;
    let right = |n: usize| order(Some(ids[n]), "117", n);
    let forged = |n: usize| TaskRequest { content: json!({"depot": "900", "order": "forged"}), ..right(n) };
    let body = |name: &str, tasks: Vec<TaskRequest>| delivery(name, json!({"tasks": tasks}));
    let first = vec![
        body("first", vec![right(0), right(1)]),
        body("forged beside the first", vec![forged(1), right(2)]),
        message("forged alone", &forged(0)),
    ];
    assert!(hand(&stack, QueueName::Register, first).await.is_empty());
    for _ in 0..2 {
        let again = vec![body("forged", (0..3).map(forged).collect()), body("again", (0..3).map(right).collect())];
        assert!(hand(&stack, QueueName::Register, again).await.is_empty());
        stack.drain().await;
    }
    let tasks: Vec<TaskId> = ids.iter().copied().map(TaskId::Item).collect();
    for task in &tasks {
        let stored = stack.tasks.get(task).await.unwrap().unwrap();
        assert_eq!(stored.lane.target, "117");
        let content = stored.content.unwrap();
        assert!(!content.contains("forged"), "{content}");
    }
    assert_unharmed(&stack, &tasks, 0).await;
}
