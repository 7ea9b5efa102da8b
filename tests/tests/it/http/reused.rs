//! An `Idempotency-Key` that was used is not used for anything else, however little that differs.

use fanfold::limits::{GROUP_ITEMS_MAX, ITEMS_PER_ADD_MAX};
use fanfold_tests::{QueueName, changed};
use serde_json::{Value, json};

use super::{NOBODY, Server};

#[tokio::test(start_paused = true)]
async fn a_used_key_adds_neither_fewer_items_nor_more() {
    let server = Server::start().await;
    let opened = server.post("/fanouts", json!({})).await.ok(201);
    let path = format!("/fanouts/{}", opened["id"].as_str().unwrap());
    let group = GROUP_ITEMS_MAX;
    let mut total = 0;
    for (first, others) in [
        (2 * group, vec![group, 3 * group, 1, 2 * group - 1, 2 * group + 1]),
        (group, vec![2 * group, ITEMS_PER_ADD_MAX, 5]),
        (5, vec![3, 6, group, group + 5]),
    ] {
        let (add, key) = (format!("{path}/items"), first.to_string());
        let added = server.post_once(&add, &key, json!({"items": first})).await.ok(201);
        total += first;
        for items in others {
            let reply = server.post_once(&add, &key, json!({"items": items})).await;
            assert!(reply.problem(422, "idempotency_key_reused").0.contains("`items`"), "{first}, then {items}");
        }
        assert_eq!(server.post_once(&add, &key, json!({"items": first})).await.ok(201), added);
    }
    assert_eq!(server.get(&path).await.ok(200)["total"], total, "nothing of what was refused was added");
}

fn orders(numbers: impl IntoIterator<Item = usize>) -> Vec<Value> {
    let order = |n| json!({"kind": "parcel", "content": {"depot": "117", "order": format!("ORD-{n}")}});
    numbers.into_iter().map(order).collect()
}

#[tokio::test(start_paused = true)]
async fn a_used_key_registers_no_other_tasks() {
    let server = Server::start().await;
    let first = server.post_once("/tasks", "k", json!({"tasks": orders(0..3)})).await.ok(202);
    server.stack.take(QueueName::Elect).await;
    let changed = |change: fn(&mut Vec<Value>)| {
        let mut tasks = orders(0..3);
        change(&mut tasks);
        tasks
    };
    for (what, tasks) in [
        ("shorter", orders(0..2)),
        ("one", orders(0..1)),
        ("longer", orders(0..5)),
        ("another order", orders([0, 2, 1])),
        ("another content", changed(|tasks| tasks[2]["content"]["order"] = json!("ORD-9"))),
        ("another field", changed(|tasks| tasks[0]["content"]["note"] = json!(null))),
        ("an id of its own", changed(|tasks| tasks[1]["id"] = json!(NOBODY))),
    ] {
        let reply = server.post_once("/tasks", "k", json!({"tasks": tasks})).await;
        assert!(reply.problem(422, "idempotency_key_reused").0.contains("`tasks`"), "{what}");
        assert_eq!(server.stack.backlog().await, 0, "{what}");
    }
    server.get(&format!("/tasks/{NOBODY}")).await.problem(404, "unknown_task");
    let again = server.post_once("/tasks", "k", json!({"tasks": orders(0..3)})).await.ok(202);
    for (first, again) in first["tasks"].as_array().unwrap().iter().zip(again["tasks"].as_array().unwrap()) {
        assert_eq!((&again["id"], &again["outcome"]), (&first["id"], &json!("known")));
    }
    server.stack.drain().await;
    let batched: usize = server.stack.all_batches().await.iter().map(|batch| batch.members.len()).sum();
    assert_eq!(batched, 3, "nothing of what was refused was stored");
}

#[tokio::test(start_paused = true)]
async fn a_used_key_opens_no_fanout_of_which_a_field_differs() {
    let server = Server::start().await;
    let url = |host: &str| json!({"url": format!("https://{host}.example/")});
    let items = json!({"items": 2, "user_key": "a", "notify": url("a"), "idle_limit": {"open": "1h"}});
    let tasks = json!({"tasks": orders([0])});
    let produced = json!({"producer": {"source": url("rows"), "partitions": 1}});
    for (key, first, others) in [
        (
            "items",
            items,
            json!({"mode": "estimated", "items": 3, "seal": true, "user_key": "b", "notify": url("b"),
                "notify_on": {"ends": ["failed"]}, "tolerated_failures": 1, "idle_limit": {"open": "2h"},
                "parent": format!("{NOBODY}:{NOBODY}:0"), "then": {"kind": "parcel", "content": {"depot": "117"}}}),
        ),
        ("tasks", tasks, json!({"tasks": orders([1])})),
        ("producer", produced, json!({"producer": {"source": url("rows"), "partitions": 2, "key": "content.order"}})),
    ] {
        let opened = server.post_once("/fanouts", key, first.clone()).await.ok(201);
        for (field, other) in others.as_object().unwrap() {
            let reply = server.post_once("/fanouts", key, changed(first.clone(), json!({field: other}))).await;
            let (detail, _) = reply.problem(422, "idempotency_key_reused");
            assert!(detail.contains(&format!("`{field}` differs")), "{field}: {detail}");
        }
        assert_eq!(server.post_once("/fanouts", key, first.clone()).await.ok(201)["id"], opened["id"]);
    }
}

/// Each fan-out of a request has an id of its own, so others would be opened beside those of the first request.
#[tokio::test(start_paused = true)]
async fn a_used_key_opens_no_other_fanouts() {
    let server = Server::start().await;
    let fanout = |number: &usize| json!({"tasks": orders([*number])});
    let request = |numbers: &[usize]| json!({"fanouts": numbers.iter().map(fanout).collect::<Vec<_>>()});
    let first = server.post_once("/fanouts/open", "k", request(&[0])).await.ok(201);
    for others in [&[1][..], &[1, 2], &[0, 1]] {
        let reply = server.post_once("/fanouts/open", "k", request(others)).await;
        assert!(reply.problem(422, "idempotency_key_reused").0.contains("`fanouts`"), "{others:?}");
    }
    server.stack.rest().await;
    assert_eq!(server.get("/fanouts").await.ok(200)["fanouts"].as_array().unwrap().len(), 1);
    assert_eq!(server.stack.api.seen().iter().map(|seen| seen.call.members.len()).sum::<usize>(), 1);
    let again = server.post_once("/fanouts/open", "k", request(&[0])).await.ok(201);
    assert_eq!(again["fanouts"][0]["id"], first["fanouts"][0]["id"]);
    server.post_once("/fanouts/open", "k", request(&[0, 0])).await.problem(422, "idempotency_key_reused");
}

#[tokio::test(start_paused = true)]
async fn a_key_is_used_only_by_what_was_valid() {
    let server = Server::start().await;
    let nothing = json!({"fanouts": [{"tasks": [{"kind": "letter", "content": 1}]}]});
    server.post_once("/fanouts/open", "k", nothing).await.problem(422, "invalid_tasks");
    server.post_once("/fanouts/open", "k", json!({"fanouts": [{"items": 1}]})).await.ok(201);
    let mut tasks = orders(0..3);
    tasks[1]["kind"] = json!("letter");
    server.post_once("/tasks", "k", json!({"tasks": tasks})).await.problem(422, "invalid_tasks");
    server.post_once("/tasks", "k", json!({"tasks": orders(0..3)})).await.ok(202);
}

/// Ids that the client chose do not follow from the key, so only the note shows it.
#[tokio::test(start_paused = true)]
async fn a_used_key_registers_no_others_with_ids_of_their_own() {
    let server = Server::start().await;
    let mut tasks = orders(0..2);
    for (n, task) in tasks.iter_mut().enumerate() {
        task["id"] = json!(uuid::Uuid::from_u128(7 + n as u128));
    }
    server.post_once("/tasks", "k", json!({"tasks": tasks[..1]})).await.ok(202);
    server.post_once("/tasks", "k", json!({"tasks": tasks[1..]})).await.problem(422, "idempotency_key_reused");
    server.get(&format!("/tasks/{}", tasks[1]["id"].as_str().unwrap())).await.problem(404, "unknown_task");
}
