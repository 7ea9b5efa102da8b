//! `/tasks` and `/batches`.

use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold_batch_api::{Answer, CallError, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack};
use serde_json::{Value, json};

use super::{NOBODY, Server, parcel};

fn orders(depot: &str, numbers: std::ops::Range<usize>) -> Vec<Value> {
    numbers.map(|n| json!({"kind": "parcel", "content": {"depot": depot, "order": format!("ORD-{n}")}})).collect()
}

/// The ids of the tasks in an answer; all must have that outcome.
fn ids(answer: &Value, outcome: &str) -> Vec<String> {
    let tasks = answer["tasks"].as_array().unwrap();
    assert!(tasks.iter().all(|task| task["outcome"] == outcome), "{answer}");
    tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_task_is_shown_from_its_registration_to_its_end() {
    let server = Server::start().await;
    let answer = server.post("/tasks", json!({"tasks": orders("117", 0..2)})).await.ok(202);
    let tasks = ids(&answer, "registered");
    let path = format!("/tasks/{}", tasks[0]);
    let created = server.get(&path).await.ok(200);
    for (field, value) in [
        ("id", json!(tasks[0])),
        ("kind", json!("parcel")),
        ("target", json!("117")),
        ("partition", json!(0)),
        ("lane", json!("parcel:0:117")),
        ("status", json!("created")),
        ("content", json!({"depot": "117", "order": "ORD-0"})),
    ] {
        assert_eq!(created[field], value, "{field}");
    }
    assert!(created["created_at"].is_u64() && created.get("batch").is_none() && created.get("error").is_none());
    server.stack.drain().await;
    let done = server.get(&path).await.ok(200);
    assert_eq!(done["status"], "succeeded");
    let batch = server.get(&format!("/batches/{}", done["batch"].as_str().unwrap())).await.ok(200);
    for (field, value) in [
        ("id", done["batch"].clone()),
        ("kind", json!("parcel")),
        ("target", json!("117")),
        ("partition", json!(0)),
        ("status", json!("done")),
        ("attempts", json!(1)),
    ] {
        assert_eq!(batch[field], value, "{field}");
    }
    let mut members = tasks.clone();
    members.sort_unstable();
    let members: Vec<Value> = members.iter().map(|id| json!({"id": id, "outcome": "succeeded"})).collect();
    assert_eq!(batch["members"], json!(members));
    assert!(batch["created_at"].as_u64() <= batch["updated_at"].as_u64());
}

/// A batch API that fails ORD-0 for good, and wants ORD-1 again.
fn picky() -> std::sync::Arc<ScriptedApi> {
    ScriptedApi::new(|call| {
        let answer = |id: TaskId, content: &str| {
            let (outcome, error) = match () {
                () if content.contains("ORD-0") => (MemberOutcome::Failed, Some("too heavy".to_owned())),
                () if content.contains("ORD-1") => (MemberOutcome::Retry, None),
                () => (MemberOutcome::Succeeded, None),
            };
            MemberAnswer { error, ..MemberAnswer::new(id, outcome) }
        };
        Ok(Answer::Members(call.members.iter().map(|member| answer(member.id, member.content.get())).collect()))
    })
}

#[tokio::test(start_paused = true)]
async fn outcomes_are_shown_by_task_and_by_batch() {
    let server = Server::over(TestStack::new(parcel(json!({"max_attempts": 3})), picky(), Crash::never()).await);
    let answer = server.post("/tasks", json!({"tasks": orders("117", 0..3)})).await.ok(202);
    let tasks = ids(&answer, "registered");
    let mut statuses: Vec<(String, Value)> = Vec::new();
    for _ in 0..100 {
        if server.stack.deliver(QueueName::Handle).await > 0 {
            break;
        }
        for queue in [QueueName::Elect, QueueName::Group] {
            server.stack.deliver(queue).await;
        }
        let status = server.get(&format!("/tasks/{}", tasks[2])).await.ok(200)["status"].clone();
        statuses.push((tasks[2].clone(), status));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    assert_eq!(statuses.last().unwrap().1, "batched", "claimed, not called");
    let mut statuses = Vec::new();
    let mut batch = Value::Null;
    for id in &tasks {
        let task = server.get(&format!("/tasks/{id}")).await.ok(200);
        statuses.push((task["status"].clone(), task["error"].clone()));
        batch = task["batch"].clone();
    }
    let expected = [("failed", json!("too heavy")), ("in_progress", Value::Null), ("succeeded", Value::Null)];
    assert_eq!(statuses, expected.map(|(status, error)| (json!(status), error)));
    let batch = server.get(&format!("/batches/{}", batch.as_str().unwrap())).await.ok(200);
    assert_eq!(batch["status"], "in_progress");
    assert!(batch["retry_at"].is_u64());
    assert_eq!(batch["last_error"], "failed, without an error message");
    let member =
        |id: &str| batch["members"].as_array().unwrap().iter().find(|member| member["id"] == id).unwrap().clone();
    assert_eq!(member(&tasks[0]), json!({"id": tasks[0], "outcome": "failed", "error": "too heavy"}));
    assert_eq!(member(&tasks[1]), json!({"id": tasks[1], "outcome": "pending"}));
    assert_eq!(member(&tasks[2]), json!({"id": tasks[2], "outcome": "succeeded"}));
    server.stack.drain().await;
    assert_eq!(server.get(&format!("/tasks/{}", tasks[1])).await.ok(200)["status"], "failed");
}

#[tokio::test(start_paused = true)]
async fn a_whole_batch_that_failed_says_why() {
    let api = ScriptedApi::new(|_| Err(CallError::for_good("the depot is closed")));
    let server = Server::over(TestStack::new(parcel(json!({})), api, Crash::never()).await);
    let task = ids(&server.post("/tasks", json!({"tasks": orders("117", 0..1)})).await.ok(202), "registered").remove(0);
    server.stack.drain().await;
    let task = server.get(&format!("/tasks/{task}")).await.ok(200);
    assert_eq!(task["status"], "failed");
    assert!(task["error"].as_str().unwrap().contains("the depot is closed"));
}

#[tokio::test(start_paused = true)]
async fn attempts_that_do_not_count_are_told_from_those_that_do() {
    for (status, counts) in [(401, false), (500, true)] {
        let (_, api) = ScriptedApi::answering(status);
        let server = Server::over(TestStack::new(parcel(json!({})), api, Crash::never()).await);
        let answer = server.post("/tasks", json!({"tasks": orders("117", 0..1)})).await.ok(202);
        server.stack.seconds(30).await;
        let task = server.get(&format!("/tasks/{}", ids(&answer, "registered")[0])).await.ok(200);
        let batch = server.get(&format!("/batches/{}", task["batch"].as_str().unwrap())).await.ok(200);
        let [attempts, refused, formed, begun] =
            ["attempts", "refused", "created_at", "begun_at"].map(|field| batch[field].as_u64().unwrap());
        assert!(attempts > 0 && refused == if counts { 0 } else { attempts }, "{status}: {batch}");
        assert!(formed <= begun && begun <= server.stack.world.now().0, "{batch}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_registration_gives_the_same_tasks() {
    let server = Server::start().await;
    let body = json!({"tasks": orders("117", 0..3)});
    let first = ids(&server.post_once("/tasks", "k", body.clone()).await.ok(202), "registered");
    let again = ids(&server.post_once("/tasks", "k", body.clone()).await.ok(202), "known");
    assert_eq!(first, again);
    let other = ids(&server.post_once("/tasks", "other", body.clone()).await.ok(202), "registered");
    let bare = ids(&server.post("/tasks", body.clone()).await.ok(202), "registered");
    let more = ids(&server.post("/tasks", body).await.ok(202), "registered");
    let all: std::collections::BTreeSet<&String> = [&first, &other, &bare, &more].into_iter().flatten().collect();
    assert_eq!(all.len(), 12, "every request without a key is its own");
    server.stack.drain().await;
    let again = server.post_once("/tasks", "k", json!({"tasks": orders("117", 0..3)})).await.ok(202);
    assert_eq!(ids(&again, "known"), first, "even when they are done");
}

#[tokio::test(start_paused = true)]
async fn a_key_is_not_used_for_other_tasks() {
    let server = Server::start().await;
    let first =
        ids(&server.post_once("/tasks", "k", json!({"tasks": orders("117", 0..3)})).await.ok(202), "registered");
    for tasks in [orders("117", 5..6), orders("900", 0..3), [orders("117", 0..2), orders("117", 9..12)].concat()] {
        let reply = server.post_once("/tasks", "k", json!({"tasks": tasks})).await;
        reply.problem(422, "idempotency_key_reused");
    }
    server.stack.drain().await;
    let batched: usize = server.stack.all_batches().await.iter().map(|batch| batch.members.len()).sum();
    assert_eq!(batched, first.len(), "nothing of the refused requests was stored");
}

/// The first task's key belongs to another task, so only those after it show the first request.
#[tokio::test(start_paused = true)]
async fn a_key_is_not_used_for_other_tasks_behind_a_duplicate() {
    let stack =
        TestStack::new(parcel(json!({"key": "content.order"})), ScriptedApi::always_succeeds(), Crash::never()).await;
    let server = Server::over(stack);
    server.post("/tasks", json!({"tasks": orders("117", 0..1)})).await.ok(202);
    server.post_once("/tasks", "k", json!({"tasks": orders("117", 0..2)})).await.ok(202);
    let mut tasks = orders("117", 0..2);
    tasks[1]["content"]["weight"] = json!(5);
    server.post_once("/tasks", "k", json!({"tasks": tasks})).await.problem(422, "idempotency_key_reused");
}

#[tokio::test(start_paused = true)]
async fn an_idempotency_key_is_no_message_id() {
    let server = Server::start().await;
    let body = json!({"tasks": orders("117", 0..1)});
    server.stack.send(QueueName::Register, &body).await;
    let message = server.stack.receive(QueueName::Register).await.remove(0);
    let delivery = fanfold::delivery::Delivery {
        message_id: message.message_id().unwrap().to_owned(),
        body: body.to_string(),
        receive_count: 1,
    };
    assert!(server.stack.hand(QueueName::Register, vec![delivery]).await.is_empty());
    let answer = server.post_once("/tasks", message.message_id().unwrap(), body).await.ok(202);
    ids(&answer, "registered");
}

#[tokio::test(start_paused = true)]
async fn ids_of_the_clients_own_and_duplicates_are_returned() {
    let stack =
        TestStack::new(parcel(json!({"key": "content.order"})), ScriptedApi::always_succeeds(), Crash::never()).await;
    let server = Server::over(stack);
    let opened = server.post("/fanouts", json!({"items": 2})).await.ok(201);
    let fanout = opened["id"].as_str().unwrap();
    let item = |index| format!("{fanout}:{}:{index}", opened["groups"][0]["id"].as_str().unwrap());
    let mut tasks = orders("117", 0..1);
    tasks.push(tasks[0].clone());
    tasks[0]["id"] = json!(item(0));
    tasks[1]["id"] = json!(item(1));
    let answer = server.post("/tasks", json!({"tasks": tasks})).await.ok(202);
    assert_eq!(answer["tasks"][0], json!({"id": item(0), "outcome": "registered"}));
    assert_eq!(answer["tasks"][1], json!({"id": item(1), "outcome": "duplicate", "of": item(0)}));
    let again = server.post("/tasks", json!({"tasks": tasks})).await.ok(202);
    assert_eq!(again["tasks"][0], json!({"id": item(0), "outcome": "known"}));
    assert_eq!(again["tasks"][1], answer["tasks"][1]);
    assert_eq!(server.get(&format!("/tasks/{}", item(0))).await.ok(200)["id"], json!(item(0)));
    assert_eq!(server.get(&format!("/tasks/{}", item(1))).await.ok(200)["duplicate_of"], json!(item(0)));
}

#[tokio::test(start_paused = true)]
async fn every_task_that_is_wrong_is_named() {
    let server = Server::start().await;
    let mut tasks = orders("117", 0..6);
    tasks[1]["kind"] = json!("letter");
    tasks[2]["content"] = json!({});
    tasks[3]["content"] = (0..33).fold(json!(1), |inner, _| json!([inner]));
    tasks[4]["content"]["note"] = json!("x".repeat(128 * 1_024));
    tasks[5]["id"] = json!(NOBODY);
    tasks.push(tasks[5].clone());
    let (detail, fields) = server.post("/tasks", json!({"tasks": tasks})).await.problem(422, "invalid_tasks");
    assert_eq!(fields, ["tasks[1].kind", "tasks[2].target", "tasks[3].content", "tasks[4].content", "tasks[6].id"]);
    assert!(detail.contains("`letter`"), "{detail}");
    server.get(&format!("/tasks/{NOBODY}")).await.problem(404, "unknown_task");
    assert_eq!(server.stack.backlog().await, 0, "nothing was registered");
    for kind in ["", "a:b", &"k".repeat(65), &"k".repeat(5_000)] {
        let mut tasks = orders("117", 0..2);
        tasks[1]["kind"] = json!(kind);
        let (_, fields) = server.post("/tasks", json!({"tasks": tasks})).await.problem(422, "invalid_tasks");
        assert_eq!(fields, ["tasks[1].kind"]);
    }
    for tasks in [vec![], orders("117", 0..10_001)] {
        let (detail, fields) = server.post("/tasks", json!({"tasks": tasks})).await.problem(422, "invalid_tasks");
        assert_eq!(fields, ["tasks"]);
        assert!(detail.contains(&tasks.len().to_string()) && detail.contains("10000"), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_task_or_batch_is_named() {
    let server = Server::start().await;
    for (path, code) in [
        (format!("/tasks/{NOBODY}"), "unknown_task"),
        (format!("/tasks/{NOBODY}:{NOBODY}:3"), "unknown_task"),
        (format!("/batches/{NOBODY}"), "unknown_batch"),
    ] {
        assert!(server.get(&path).await.problem(404, code).0.contains(path.rsplit('/').next().unwrap()));
    }
}

/// As an operator asks: what became of order 4711?
#[tokio::test(start_paused = true)]
async fn a_task_is_found_by_its_key() {
    let server = Server::over(
        TestStack::new(parcel(json!({"key": "content.order"})), ScriptedApi::always_succeeds(), Crash::never()).await,
    );
    let task = |order: &str| json!({"kind": "parcel", "content": {"depot": "x", "order": order}});
    let alone = server.post("/tasks", json!({"tasks": [task("ORD 1"), task("ORD 1")]})).await.ok(202);
    let fanout = server.post("/fanouts", json!({"tasks": [task("ORD 1")]})).await.ok(201);
    let item = format!("{0}:{0}:0", fanout["id"].as_str().unwrap());
    let found = async |query: &str| server.get(&format!("/tasks?kind=parcel&key=ORD%201{query}")).await.ok(200);
    assert_eq!(found("").await["id"], alone["tasks"][0]["id"], "the first of two has it");
    let of_fanout = format!("&fanout={}", fanout["id"].as_str().unwrap());
    assert_eq!(found(&of_fanout).await["id"], json!(item));
    server.stack.drain().await;
    assert_eq!(found(&of_fanout).await["status"], "succeeded");
    for (query, status, code) in [
        ("?kind=parcel&key=ORD%202", 404, "unknown_task"),
        ("?kind=letter&key=ORD%201", 404, "unknown_task"),
        ("?kind=parcel&key=ORD%201&scope=x", 404, "unknown_task"),
        ("?kind=parcel", 400, "invalid_parameter"),
        ("?key=ORD%201", 400, "invalid_parameter"),
        (&format!("?kind=parcel&key=x&scope=x{of_fanout}"), 400, "invalid_parameter"),
    ] {
        let refused = server.get(&format!("/tasks{query}")).await;
        assert_eq!((refused.status, &refused.body["code"]), (status, &json!(code)), "{query}: {}", refused.body);
    }
    // With a scope, fan-outs share their keys.
    server.stack.put_policy(parcel(json!({"key": "content.order", "scope": "content.depot"}))).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let scoped = server.post("/tasks", json!({"tasks": [task("ORD 1")]})).await.ok(202);
    assert_eq!(found("&scope=x").await["id"], scoped["tasks"][0]["id"]);
}
