//! JSON of a shape that no route takes: each field that is wrong is named, with its value and what is allowed.

use serde_json::json;

use super::{NOBODY, Server};

/// A body of `POST /tasks` with one task of these fields.
fn tasks(fields: &str) -> String {
    format!("{{\"tasks\": [{{\"kind\": \"parcel\", \"content\": {{\"depot\": 1}}}}, {fields}]}}")
}

/// A body of `PUT /policies/letter` with this field.
fn policy(field: &str) -> String {
    format!("{{\"target\": \"kind\", \"batch_api\": {{\"url\": \"https://example.com/\"}}, {field}}}")
}

#[tokio::test(start_paused = true)]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
async fn json_of_a_wrong_shape_is_refused_by_its_field() {
    let server = Server::start().await;
    let items = format!("/fanouts/{NOBODY}/items");
    let seal = format!("/fanouts/{NOBODY}/seal");
    let bodies: Vec<(&str, &str, String, &str, &str)> = [
        (r#"{"notify": {}}"#, "notify", "exactly one of `url`, `queue`"),
        (r#"{"notify": []}"#, "notify", "expected one of `url`, `queue`"),
        (
            r#"{"notify": "https://example.com/"}"#,
            "notify",
            "unknown variant `https://example.com/`, expected one of `url`, `queue`, `sqs`",
        ),
        (
            r#"{"notify": {"url": "https://example.com/", "queue": "notices"}}"#,
            "notify",
            "exactly one of `url`, `queue`",
        ),
        (
            r#"{"notify": {"mail": "a@example.com"}}"#,
            "notify",
            "unknown variant `mail`, expected one of `url`, `queue`, `sqs`",
        ),
        (r#"{"notify": {"queue": "mine"}}"#, "notify.queue", "unknown variant `mine`, expected `notices`"),
        (r#"{"notify": {"queue": {}}}"#, "notify.queue", "exactly one of `notices`"),
        (r#"{"notify": {"url": 5}}"#, "notify.url", "integer `5`"),
        (r#"{"items": 1e999}"#, "items", "beyond"),
        (r#"{"items": -1}"#, "items", "`-1`"),
        (r#"{"items": 1, "items": 1}"#, "items", "duplicate"),
        (r#"{"seal": "yes"}"#, "seal", "expected a boolean"),
        (r#"{"user_key": {}}"#, "user_key", "expected a string"),
        (r#"{"user_key": "\ud800"}"#, "user_key", "surrogates"),
        (r#"{"surprise": 1}"#, "surprise", "expected one of `mode`, `items`, `seal`, `user_key`, `notify`"),
    ]
    .into_iter()
    .map(|(body, field, named)| ("POST", "/fanouts", body.to_owned(), field, named))
    .chain([
        ("POST", items.as_str(), "{}".to_owned(), "items", "missing"),
        ("POST", items.as_str(), r#"{"items": {}}"#.to_owned(), "items", "invalid type: object"),
        ("POST", seal.as_str(), r#"{"items": 1}"#.to_owned(), "items", "unknown field"),
        ("POST", "/acks", r#"{"items": {}}"#.to_owned(), "items", "expected a list"),
        ("POST", "/acks", r#"{"items": ["x"]}"#.to_owned(), "items[0]", "`x` is not an item id"),
        ("POST", "/acks", r#"{"failed": [[]]}"#.to_owned(), "failed[0]", "list"),
        ("POST", "/acks", r#"{"items": [], "items": []}"#.to_owned(), "items", "duplicate"),
        ("POST", "/tasks", "{}".to_owned(), "tasks", "missing"),
        ("POST", "/tasks", tasks("[]"), "tasks[1]", "expected an object"),
        ("POST", "/tasks", tasks(&format!("[\"{NOBODY}\", \"parcel\", {{}}]")), "tasks[1]", "expected an object"),
        ("POST", "/tasks", tasks(r#"{"kind": "parcel"}"#), "tasks[1].content", "missing"),
        ("POST", "/tasks", tasks(r#"{"kind": 7, "content": 1}"#), "tasks[1].kind", "`7`"),
        ("POST", "/tasks", tasks(r#"{"id": 7, "kind": "parcel", "content": 1}"#), "tasks[1].id", "`7`"),
        ("POST", "/tasks", tasks(r#"{"kind": "parcel", "content": {"n": [1e999]}}"#), "tasks[1].content", "beyond"),
        ("POST", "/tasks", tasks(r#"{"kind": "parcel", "content": 1, "key": "a"}"#), "tasks[1].key", "unknown field"),
        ("PUT", "/policies/letter", policy(r#""batch_api": {}"#), "batch_api", "duplicate"),
        ("PUT", "/policies/letter", policy(r#""backoff": {"base": "1s", "base": "2s"}"#), "backoff.base", "duplicate"),
        ("PUT", "/policies/letter", policy(r#""backoff": ["1s", "2s"]"#), "backoff", "expected an object"),
        ("PUT", "/policies/letter", policy(r#""backoff": {"base": "soon"}"#), "backoff.base", "\"soon\""),
        ("PUT", "/policies/letter", policy(r#""max_batch": 1.5"#), "max_batch", "`1.5`"),
        ("PUT", "/policies/letter", policy(r#""max_batch": 1e999"#), "max_batch", "beyond"),
        ("PUT", "/policies/letter", policy(r#""notify": {}"#), "notify", "exactly one of `url`, `queue`"),
        (
            "PUT",
            "/policies/letter",
            policy(r#""notify": {"url": "https://a.example/", "queue": "notices"}"#),
            "notify",
            "exactly",
        ),
        ("PUT", "/policies/letter", r#"{"target": "kind"}"#.to_owned(), "batch_api", "missing"),
    ])
    .collect();
    for (method, path, body, field, named) in bodies {
        let reply = server.send(method, path, &[], body.clone()).await;
        let (detail, fields) = reply.problem(422, "invalid_body");
        assert!(detail.contains(named), "{body}: {detail}");
        let [named] = fields.as_slice() else { panic!("{body}: {fields:?}") };
        // Of a choice the path may name what was chosen, too.
        let within = named.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        assert!(within, "{body}: {named}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_names_only_what_there_is() {
    let server = Server::start().await;
    for (field, expression, named) in [
        ("target", "content.town.lowercase()", "`lowercase`"),
        ("target", "lower(content.town)", "`lower`"),
        ("target", "content.town.substring()", "1 or 2 are allowed"),
        ("target", "order.town", "`kind` and `content`"),
        ("key", "uuid()", "`uuid`"),
        ("key", "1 / 0", "fails for every task"),
    ] {
        let mut policy = json!({"target": "kind", "batch_api": {"url": "https://example.com/"}});
        policy[field] = expression.into();
        let (detail, fields) = server.put("/policies/letter", policy).await.problem(422, "invalid_policy");
        assert_eq!(fields, [field], "{expression}");
        assert!(detail.contains(named) && detail.contains(expression), "{expression}: {detail}");
    }
}
