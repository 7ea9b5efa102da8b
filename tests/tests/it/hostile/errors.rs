//! What is logged of a bad message: the field, its value, what is allowed; and never more than a few lines.

use fanfold::members::Members;
use fanfold_tests::{NOBODY, QueueName, TestStack, delivery, listen, logged};
use serde_json::{Value, json};
use uuid::Uuid;

use super::hand;

/// Hands one message that fails, and returns what was logged of it.
async fn refusal(stack: &TestStack, queue: QueueName, body: impl ToString) -> String {
    logged();
    assert_eq!(hand(stack, queue, vec![delivery("the-bad-one", body)]).await, ["the-bad-one"]);
    logged()
}

/// What is wrong with a message, and words that have to be logged.
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn typical() -> Vec<(QueueName, Value, Vec<&'static str>)> {
    use QueueName::{Ack, Elect, Group, Handle, Notify, Register};
    let names = |count: u128| Members::new((0..count).map(|n| fanfold::ids::TaskId::Single(Uuid::from_u128(n))));
    let item = |index: &str| format!("{NOBODY}:{NOBODY}:{index}");
    let task = |id: &str| json!({"tasks": [{"kind": "parcel", "id": id, "content": {"depot": "1"}}]});
    vec![
        (Register, json!({}), vec!["`tasks`", "`kind`"]),
        (Register, json!({"kind": "parcel"}), vec!["missing field `content`"]),
        (Register, json!({"tasks": [{"kind": "parcel"}]}), vec!["`tasks[0].content`", "missing field `content`"]),
        (Register, json!({"tasks": [{"kind": 5, "content": 1}]}), vec!["`tasks[0].kind`", "`5`", "a string"]),
        (Register, json!({"task": []}), vec!["unknown field `task`", "`tasks`"]),
        (Register, json!({"tasks": []}), vec!["tasks: has 0 tasks", "1 to 10000"]),
        (Register, task("x"), vec!["`tasks[0].id`", "`x`", "a task id"]),
        (Register, task(&item("7168")), vec!["`tasks[0].id`", "7168` is not an item id", "below 7168"]),
        (Register, json!({"kind": "letter", "content": 1}), vec!["tasks[0].kind", "`letter`", "no policy"]),
        (Register, json!({"kind": "parcel", "content": {}}), vec!["tasks[0].target", "`content.depot`", "depot"]),
        (Elect, json!({"lane": "117", "workflow": NOBODY}), vec!["`lane`", "`117`", "<kind>:<partition>:<target>"]),
        (Elect, json!({"lane": "a b:0:1", "workflow": NOBODY}), vec!["`lane`", "`a b:0:1`", "is not a lane"]),
        (Elect, json!({"lane": "parcel:0:1", "workflow": "x"}), vec!["`workflow`", "UUID"]),
        (Elect, json!({"lane": "parcel:0:1", "workflow": NOBODY, "tries": -1}), vec!["`tries`", "`-1`", "below 2^32"]),
        (
            Elect,
            json!({"lane": "parcel:0:1", "workflow": NOBODY, "waiting": {"tasks": names(2_001)}}),
            vec!["`waiting`", "2001 records", "at most 2000"],
        ),
        (Group, json!({"lane": "parcel:0:1", "batch": NOBODY}), vec!["missing field `epoch`"]),
        (Group, json!({"lane": "parcel:0:1", "batch": NOBODY, "epoch": 1.5}), vec!["`epoch`", "1.5", "below 2^64"]),
        (
            Group,
            json!({"lane": "parcel:0:1", "batch": NOBODY, "epoch": 1, "waiting": {"tasks": "AQ=="}}),
            vec!["`waiting.tasks`", "not a packed list of task ids"],
        ),
        (
            Group,
            json!({"lane": "parcel:0:1", "batch": NOBODY, "epoch": 1, "waiting": {"tasks": names(2_001)}}),
            vec!["`waiting`", "2001 records", "at most 2000"],
        ),
        (Handle, json!([NOBODY, 1]), vec!["a JSON object is expected"]),
        (Handle, json!({"batch": NOBODY, "attempt": 4_294_967_296_u64}), vec!["`attempt`", "4294967296", "below 2^32"]),
        (Handle, json!({"batch": NOBODY, "attempt": 1}), vec!["there is no batch", NOBODY]),
        (Ack, json!({"items": [NOBODY]}), vec!["`items[0]`", "is not an item id", NOBODY]),
        (
            Ack,
            json!({"items": [item("0"), item("-1")]}),
            vec!["`items[1]`", "-1` is not a range of items", "below 7168"],
        ),
        (Ack, json!({"failed": [item("65536")]}), vec!["`failed[0]`", "65536` is not an item id"]),
        (Ack, json!({"items": [item("0")]}), vec!["there is no item group", NOBODY]),
        (Ack, json!({"batch": {"batch": NOBODY}}), vec!["`batch.lane`", "missing field `lane`"]),
        (Ack, json!({"batch": {"batch": NOBODY, "lane": "parcel:0:1"}}), vec!["there is no batch", NOBODY]),
        (Notify, json!({"fan-out": NOBODY}), vec!["unknown field `fan-out`", "`fanout`", "`batch`"]),
        (Notify, json!({"fanout": NOBODY}), vec!["there is no fan-out", NOBODY]),
        (Notify, json!({"batch": {"batch": NOBODY, "lane": "parcel:0:1"}}), vec!["there is no batch", NOBODY]),
    ]
}

#[tokio::test(start_paused = true)]
async fn errors_name_the_field_its_value_and_what_is_allowed() {
    listen();
    let stack = TestStack::with(json!({})).await;
    for (queue, body, words) in typical() {
        let logged = refusal(&stack, queue, &body).await;
        for word in words {
            assert!(logged.contains(word), "{queue:?} logs {body} without {word}:\n{logged}");
        }
    }
    assert_eq!(stack.backlog().await, 0);
}

#[tokio::test(start_paused = true)]
async fn errors_name_the_place_at_which_json_breaks_off() {
    listen();
    let stack = TestStack::with(json!({})).await;
    for queue in QueueName::STEPS {
        assert!(refusal(&stack, queue, "").await.contains("is empty, JSON is expected"), "{queue:?}");
        for body in ["x", "{\"x\": NaN}", "{\"x\": [", "{} {}"] {
            let logged = refusal(&stack, queue, body).await;
            assert!(logged.contains("not JSON") && logged.contains("line 1 column"), "{queue:?}, {body}: {logged}");
            assert!(logged.contains("the-bad-one"), "{queue:?}: {logged}");
        }
        for body in ["null", "[]", "5", "\"fanout\""] {
            let logged = refusal(&stack, queue, body).await;
            assert!(logged.contains("a JSON object is expected"), "{queue:?}, {body}: {logged}");
        }
        let deep = format!("{{\"x\": {}", "[".repeat(100_000));
        let logged = refusal(&stack, queue, deep).await;
        assert!(logged.contains("recursion limit") || logged.contains("EOF"), "{queue:?}: {logged}");
    }
}

/// A log that swallowed a mebibyte a message would be a weapon.
#[tokio::test(start_paused = true)]
async fn a_huge_value_is_shortened() {
    listen();
    let stack = TestStack::with(json!({})).await;
    let huge = "x".repeat(1_024 * 1_024);
    for queue in QueueName::STEPS {
        let fields = ["tasks", "kind", "lane", "batch", "items", "failed", "fanout"];
        let values = fields.map(|field| json!({field: huge}));
        for body in values.into_iter().chain([json!({huge.clone(): 1}), json!({"tasks": [{huge.clone(): huge}]})]) {
            let logged = refusal(&stack, queue, &body).await;
            assert!((1..4_096).contains(&logged.len()), "{queue:?} logs {} bytes", logged.len());
        }
    }
}
