//! Problem documents as they are described: the schema of all of them, and what every route may return.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use fanfold::limits::BODY_BYTES;
use serde_json::{Map, Value, json};

/// The code of a problem, and when a route returns it.
pub(super) type Cause = (&'static str, String);

/// Problems of one route by status.
pub(super) type Causes = BTreeMap<StatusCode, Vec<Cause>>;

/// What any route may return.
pub(super) fn of_all() -> [(StatusCode, Cause); 3] {
    let cause = |code, when: &str| (code, when.to_owned());
    [
        (StatusCode::FORBIDDEN, cause("not_for_browsers", "the local API only: a web page sends this")),
        (StatusCode::INTERNAL_SERVER_ERROR, cause("internal", "something is wrong inside Fanfold; its log says what")),
        (
            StatusCode::SERVICE_UNAVAILABLE,
            cause("unavailable", "a table or queue cannot be reached or is overloaded; repeat the request later"),
        ),
    ]
}

/// What a route may return that takes a body.
pub(super) fn of_bodies() -> [(StatusCode, Cause); 5] {
    let cause = |code, when: &str| (code, when.to_owned());
    [
        (StatusCode::BAD_REQUEST, cause("malformed_json", "the body is not JSON")),
        (StatusCode::BAD_REQUEST, cause("unreadable_body", "the body did not arrive in full")),
        (StatusCode::PAYLOAD_TOO_LARGE, ("too_large", format!("the body has more than {BODY_BYTES} bytes"))),
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, cause("unsupported_media_type", "the body is said not to be JSON")),
        (StatusCode::UNPROCESSABLE_ENTITY, cause("invalid_body", "the body is JSON, but not what this route takes")),
    ]
}

/// The responses of a route's problems, one a status. Those that many routes give alike are in `shared`, by their codes.
pub(super) fn responses(causes: &Causes, problem: &Value, shared: &mut Map<String, Value>) -> Map<String, Value> {
    let mut responses = Map::new();
    for (status, causes) in causes {
        let mut response = response(*status, causes, problem);
        if let [cause @ (code, _)] = causes.as_slice()
            && of_all().into_iter().chain(of_bodies()).any(|(_, common)| common == *cause)
        {
            shared.insert((*code).to_owned(), response);
            response = json!({"$ref": format!("#/components/responses/{code}")});
        }
        responses.insert(status.as_str().to_owned(), response);
    }
    responses
}

fn response(status: StatusCode, causes: &[Cause], problem: &Value) -> Value {
    let codes: Vec<&str> = causes.iter().map(|(code, _)| *code).collect();
    let described: Vec<String> = causes.iter().map(|(code, when)| format!("- `{code}`: {when}")).collect();
    let narrowed = json!({"properties": {"status": {"const": status.as_u16()}, "code": {"enum": codes}}});
    let mut response = json!({
        "description": described.join("\n"),
        "content": {"application/problem+json": {"schema": {"allOf": [problem, narrowed]}}},
    });
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response["headers"] = json!({
            "Retry-After": {
                "description": "Seconds to wait.",
                "required": true,
                "schema": {"type": "integer", "minimum": 0},
            },
        });
    }
    response
}
