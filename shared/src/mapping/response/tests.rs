//! What does not fit together in a response mapping.

use serde_json::{Value, json};

use super::*;

fn faults(mapping: Value) -> Vec<(String, String)> {
    let mapping: ResponseMapping = serde_json::from_value(mapping).unwrap();
    let mut faults = Vec::new();
    mapping.compile("response", &mut |field, problem| faults.push((field.to_owned(), problem)));
    faults
}

#[test]
fn what_does_not_fit_together_is_named() {
    let id = |changes: Value| {
        let mut mapping = json!({"items": "/i", "match": "id", "id": "item.id", "ok": "item.ok"});
        mapping.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        mapping
    };
    assert_eq!(faults(id(json!({"member": "content.n", "statuses": [400]}))), Vec::new());
    for (mapping, field, problem) in [
        (json!({}), "response.match", "is missing"),
        (json!({"match": "none", "ok": "true"}), "response.ok", "with `match: none` an answer has none"),
        (json!({"match": "index", "ok": "true"}), "response.items", "is missing"),
        (json!({"match": "index", "items": ""}), "response.ok", "is missing"),
        (json!({"match": "exceptions", "items": ""}), "response.index", "is missing"),
        (id(json!({"echo": "item"})), "response.echo", "does not belong to this `match`"),
        (
            json!({"match": "index", "items": "", "ok": "true", "member": "id"}),
            "response.member",
            "it is for `id` and `echo`",
        ),
        (json!({"match": "index", "items": ["/a", "/b"], "ok": "true"}), "response.items", "names several lists"),
        (id(json!({"items": []})), "response.items", "names 0 lists, 1 to 8 are allowed"),
        (id(json!({"items": "?"})), "response.items", "begins with `/`"),
        (json!({"match": "none", "retry_after": "1"}), "response.retry_after", "with `match: none` an answer has none"),
        (json!({"match": "none", "code": "1"}), "response.code", "with `match: none` an answer has none"),
        (id(json!({"whole": {"status": "item.x"}})), "response.whole.status", "refers to `item`"),
        (id(json!({"items": "i"})), "response.items", "begins with `/`"),
        (id(json!({"items": "/${item}"})), "response.items", "refers to `item`"),
        (id(json!({"ok": "body.x"})), "response.ok", "refers to `body`"),
        (id(json!({"member": "item.x"})), "response.member", "refers to `item`"),
        (id(json!({"whole": {"retry": "item.x"}})), "response.whole.retry", "refers to `item`"),
        (id(json!({"statuses": [200]})), "response.statuses", "has 200, 300 to 599 are allowed"),
    ] {
        let found = faults(mapping.clone());
        assert!(found.iter().any(|(at, what)| at == field && what.contains(problem)), "{mapping}: {found:?}");
    }
}
