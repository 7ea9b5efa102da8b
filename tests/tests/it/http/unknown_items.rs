//! Tasks that name items which do not exist are refused; what vanishes later is shown, logged and counted.

use fanfold_tests::{QueueName, listen, logged};
use serde_json::{Value, json};

use super::{NOBODY, Opened, Server};

fn task(id: String, number: usize) -> Value {
    json!({"id": id, "kind": "parcel", "content": {"depot": "117", "order": format!("ORD-{number}")}})
}

#[tokio::test(start_paused = true)]
async fn a_task_that_names_no_item_is_refused() {
    let server = Server::start().await;
    let Opened { fanout: large, groups, .. } = server.open(json!({"items": 7_170})).await;
    let Opened { fanout: small, .. } = server.open(json!({"items": 3, "seal": true})).await;
    let good =
        [format!("{large}:{}:7167", groups[0]), format!("{large}:{}:1", groups[1]), format!("{small}:{small}:2")];
    let bad = [
        format!("{NOBODY}:{NOBODY}:0"),
        format!("{NOBODY}:{}:0", groups[0]),
        format!("{large}:{NOBODY}:0"),
        format!("{large}:{}:2", groups[1]),
        format!("{large}:{large}:0"),
        format!("{small}:{small}:3"),
        format!("{small}:{}:0", groups[0]),
    ];
    let ids: Vec<&String> = good.iter().chain(&bad).collect();
    let tasks: Vec<Value> = ids.iter().enumerate().map(|(n, id)| task((*id).clone(), n)).collect();
    for reply in [
        server.post("/tasks", json!({"tasks": tasks})).await,
        server.post_once("/tasks", "k", json!({"tasks": tasks})).await,
    ] {
        let (detail, fields) = reply.problem(422, "invalid_tasks");
        assert_eq!(fields, (3..10).map(|n| format!("tasks[{n}].id")).collect::<Vec<_>>());
        assert!(detail.contains(&bad[0]), "{detail}");
        let problem = |at: usize| reply.body["errors"][at]["problem"].as_str().unwrap().to_owned();
        assert!(problem(3).contains("has 2 items") && problem(3).contains("0 to 1 is allowed"), "{}", problem(3));
        assert!(problem(5).contains("0 to 2 is allowed"), "{}", problem(5));
        assert!(problem(1).contains("has no item group"), "{}", problem(1));
    }
    for id in &good {
        server.get(&format!("/tasks/{id}")).await.problem(404, "unknown_task");
    }
    assert_eq!(server.stack.backlog().await, 0, "nothing was registered");
    // The key was not used: what it stood for was refused.
    let tasks: Vec<Value> = good.iter().enumerate().map(|(n, id)| task(id.clone(), n)).collect();
    server.post_once("/tasks", "k", json!({"tasks": tasks})).await.ok(202);
    server.stack.drain().await;
    for id in &good {
        let task = server.get(&format!("/tasks/{id}")).await.ok(200);
        assert_eq!((&task["status"], &task["item"]), (&json!("succeeded"), &json!("succeeded")));
    }
}

#[tokio::test(start_paused = true)]
async fn over_the_queue_only_the_message_that_names_no_item_fails() {
    let server = Server::start().await;
    let Opened { fanout, .. } = server.open(json!({"items": 2, "seal": true})).await;
    let item = |index: usize| format!("{fanout}:{fanout}:{index}");
    for (n, tasks) in
        [vec![item(0)], vec![item(1), item(2)], vec![format!("{NOBODY}:{NOBODY}:0")]].into_iter().enumerate()
    {
        let tasks: Vec<Value> = tasks.into_iter().map(|id| task(id, n)).collect();
        server.stack.send(QueueName::Register, json!({"tasks": tasks})).await;
    }
    listen();
    let deliveries = server.stack.take(QueueName::Register).await;
    let failed = server.stack.hand(QueueName::Register, deliveries.clone()).await;
    let good = deliveries.iter().find(|delivery| delivery.body.contains("ORD-0")).unwrap();
    assert_eq!(failed.len(), 2);
    assert!(!failed.contains(&good.message_id));
    let logged = logged();
    assert!(logged.contains("tasks[1].id") && logged.contains(NOBODY), "{logged}");
    assert_eq!(server.get(&format!("/tasks/{}", item(0))).await.ok(200)["item"], "pending");
    for id in [item(1), item(2)] {
        server.get(&format!("/tasks/{id}")).await.problem(404, "unknown_task");
    }
}

/// The record of its item goes while the task waits: its registration can no longer be refused, but the lost ack is logged.
#[tokio::test(start_paused = true)]
async fn an_ack_of_an_item_that_is_gone_is_logged_and_shown() {
    let server = Server::start().await;
    let Opened { fanout, groups, .. } = server.open(json!({"items": 2})).await;
    let id = format!("{fanout}:{}:0", groups[0]);
    server.post("/tasks", json!({"tasks": [task(id.clone(), 0)]})).await.ok(202);
    server.stack.delete_record("GroupsTable", &groups[0]).await;
    listen();
    server.stack.drain().await;
    let logged = logged();
    assert!(logged.contains("acks of items that do not exist") && logged.contains(&groups[0]), "{logged}");
    let task = server.get(&format!("/tasks/{id}")).await.ok(200);
    assert_eq!((&task["status"], &task["item"]), (&json!("succeeded"), &json!("unknown")));
}
