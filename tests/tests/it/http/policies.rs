//! `/policies`.

use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack};
use serde_json::{Value, json};

use super::{Server, parcel};

fn letter() -> Value {
    json!({"target": "content.town", "batch_api": {"url": "https://example.com/letters"}})
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_stored_and_returned() {
    let server = Server::start().await;
    let stored = server.put("/policies/letter", letter()).await.ok(200);
    assert_eq!((&stored["kind"], &stored["target"]), (&json!("letter"), &json!("content.town")));
    assert_eq!(stored["max_batch"], 100, "defaults are returned");
    assert_eq!(server.get("/policies/letter").await.ok(200), stored);
    let changed = server.put("/policies/letter", with(stored.clone(), "max_batch", json!(7))).await.ok(200);
    assert_eq!(changed["max_batch"], 7);
    assert_eq!(server.get("/policies/letter").await.ok(200), changed);
    let list = server.get("/policies").await.ok(200);
    let kinds: Vec<&Value> = list["policies"].as_array().unwrap().iter().map(|policy| &policy["kind"]).collect();
    assert_eq!(kinds, ["letter", "parcel"]);
    assert_eq!(list["policies"][0], changed);
    let tasks = json!({"tasks": [{"kind": "letter", "content": {"town": "Holtsville"}}]});
    let answer = server.post("/tasks", tasks).await.ok(202);
    let task = server.get(&format!("/tasks/{}", answer["tasks"][0]["id"].as_str().unwrap())).await.ok(200);
    assert_eq!(task["lane"], "letter:0:Holtsville");
}

fn with(mut policy: Value, field: &str, value: Value) -> Value {
    policy[field] = value;
    policy
}

#[tokio::test(start_paused = true)]
async fn a_policy_is_deleted_when_no_task_of_its_kind_waits() {
    let server = Server::start().await;
    let stored = server.put("/policies/letter", letter()).await.ok(200);
    server.post("/tasks", json!({"tasks": [{"kind": "parcel", "content": {"depot": "1"}}]})).await.ok(202);
    assert_eq!(server.delete("/policies/letter").await.ok(200), stored, "tasks of another kind are none of its own");
    server.get("/policies/letter").await.problem(404, "unknown_policy");
    assert_eq!(server.get("/policies").await.ok(200)["policies"].as_array().unwrap().len(), 1);
    assert!(server.delete("/policies/letter").await.problem(404, "unknown_policy").0.contains("`letter`"));
    // A kind whose name is the beginning of another one's is another.
    server.put("/policies/parc", letter()).await.ok(200);
    server.delete("/policies/parc?force=false").await.ok(200);
    server.stack.drain().await;
    server.delete("/policies/parcel").await.ok(200);
    let tasks = json!({"tasks": [{"kind": "parcel", "content": {"depot": "1"}}]});
    tokio::time::sleep(fanfold::limits::POLICY_CACHE_MAX).await;
    let (detail, fields) = server.post("/tasks", tasks).await.problem(422, "invalid_tasks");
    assert!(detail.contains("no policy") && fields == ["tasks[0].kind"], "{detail}");
}

/// At every stage of a task there is something that refuses: the task itself, its lane's leader, its batch.
#[tokio::test(start_paused = true)]
async fn a_policy_in_use_is_deleted_only_by_force() {
    let stack = TestStack::new(parcel(json!({"max_attempts": 9})), retries(), Crash::never()).await;
    let server = Server::over(stack);
    for tasks in [1, 3] {
        let task = json!({"kind": "parcel", "content": {"depot": "1"}});
        server.post("/tasks", json!({"tasks": vec![task; tasks]})).await.ok(202);
        for stage in ["registered", "led", "formed", "called"] {
            let (detail, _) = server.delete("/policies/parcel").await.problem(409, "policy_in_use");
            assert!(detail.contains("`parcel:0:1`") && detail.contains("?force=true"), "{stage}: {detail}");
            server.get("/policies/parcel").await.ok(200);
            tokio::time::sleep(std::time::Duration::from_secs(3)).await;
            let queue = match stage {
                "registered" => QueueName::Elect,
                "led" => QueueName::Group,
                _ => QueueName::Handle,
            };
            server.stack.deliver(queue).await;
        }
        server.stack.drain().await;
    }
    server.post("/tasks", json!({"tasks": [{"kind": "parcel", "content": {"depot": "1"}}]})).await.ok(202);
    let (_, fields) = server.delete("/policies/parcel?force=yes").await.problem(400, "invalid_parameter");
    assert!(fields.is_empty());
    assert_eq!(server.delete("/policies/parcel?force=true").await.ok(200)["kind"], "parcel");
    server.delete("/policies/parcel?force=true").await.problem(404, "unknown_policy");
}

/// A batch API that wants everything once more.
fn retries() -> std::sync::Arc<ScriptedApi> {
    ScriptedApi::new(|call| match call.attempt {
        1 => Err(fanfold_batch_api::CallError::again("500")),
        _ => Ok(fanfold_batch_api::Answer::AllSucceeded),
    })
}

#[tokio::test(start_paused = true)]
async fn an_unknown_policy_is_named() {
    let server = Server::start().await;
    assert!(server.get("/policies/letter").await.problem(404, "unknown_policy").0.contains("`letter`"));
}

#[tokio::test(start_paused = true)]
async fn every_field_that_is_wrong_is_named() {
    let server = Server::start().await;
    for (field, value, named) in [
        ("kind", json!("parcel"), vec!["kind"]),
        ("kind", json!("a:b"), vec!["kind", "kind"]),
        ("target", json!("content."), vec!["target"]),
        ("max_batch", json!(0), vec!["max_batch"]),
        ("linger", json!("16m"), vec!["linger"]),
        ("batch_api", json!({"url": "http://example.com/"}), vec!["batch_api.url"]),
        ("batch_api", json!({"command": ["rm"]}), vec!["batch_api.command"]),
        ("batch_api", json!({"command": []}), vec!["batch_api.command", "batch_api.command"]),
        ("notify", json!({"url": "ftp://example.com/"}), vec!["notify.url"]),
    ] {
        let reply = server.put("/policies/letter", with(letter(), field, value.clone())).await;
        assert_eq!(reply.problem(422, "invalid_policy").1, named, "{field}: {value}");
    }
    let many = json!({"target": "x", "key": "y", "max_batch": 0, "batch_api": {"command": ["rm"]}});
    let (_, fields) = server.put("/policies/letter", many).await.problem(422, "invalid_policy");
    assert_eq!(fields, ["target", "key", "max_batch", "batch_api.command"]);
    server.get("/policies/letter").await.problem(404, "unknown_policy");
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_another_shape_is_refused() {
    let server = Server::start().await;
    for (field, value, named) in [
        ("max_batch", json!("many"), "max_batch"),
        ("max_batch", json!(-1), "max_batch"),
        ("linger", json!("soon"), "linger"),
        ("batch_api", json!({"url": 5}), "batch_api.url"),
        ("batch_api", json!({"command": ["rm"], "url": "https://example.com/"}), "`batch_api`: has both"),
        ("batch_api", json!({}), "`batch_api`: does not say how it is called"),
        ("notify", json!({"mail": "a@example.com"}), "notify"),
        ("kind", json!(5), "kind"),
        ("backoff", json!({"base": []}), "backoff.base"),
        ("maxbatch", json!(5), "maxbatch"),
        ("target", json!(null), "target"),
    ] {
        let reply = server.put("/policies/letter", with(letter(), field, value.clone())).await;
        let (detail, _) = reply.problem(422, "invalid_body");
        assert!(detail.contains(named), "{field}: {value}: {detail}");
    }
    let (detail, _) = server.put("/policies/letter", json!({})).await.problem(422, "invalid_body");
    assert!(detail.contains("`target`"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn commands_are_taken_where_they_are_allowed() {
    let server = Server::start().await;
    let policy = with(letter(), "batch_api", json!({"command": ["./letters", "--fast"]}));
    let (detail, _) = server.put("/policies/letter", policy.clone()).await.problem(422, "invalid_policy");
    assert!(detail.contains("batch_api.command") && detail.contains("batch_api.url"), "{detail}");
    let server = server.with_commands();
    let stored = server.put("/policies/letter", policy).await.ok(200);
    assert_eq!(stored["batch_api"]["command"], json!(["./letters", "--fast"]));
    server.put("/policies/letter", letter()).await.ok(200);
}
