//! The description of problem documents: their schema, and those that every route may return.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use crate::Code;

/// What any route may return.
pub(super) const OF_ALL: [Code; 3] = [Code::NotForBrowsers, Code::Internal, Code::Unavailable];

/// What a route may return that takes a body.
pub(super) const OF_BODIES: [Code; 5] =
    [Code::MalformedJson, Code::UnreadableBody, Code::TooLarge, Code::UnsupportedMediaType, Code::InvalidBody];

/// The responses of a route's problems, one per status. Those common to many routes are in `shared`, by their codes.
pub(super) fn responses(
    codes: &BTreeSet<Code>,
    problem: &Value,
    shared: &mut Map<String, Value>,
) -> Map<String, Value> {
    let mut statuses: BTreeMap<StatusCode, Vec<Code>> = BTreeMap::new();
    for code in codes {
        statuses.entry(code.status()).or_default().push(*code);
    }
    let mut responses = Map::new();
    for (status, codes) in statuses {
        let mut response = response(status, &codes, problem);
        if let [code] = codes.as_slice()
            && OF_ALL.iter().chain(&OF_BODIES).any(|common| common == code)
        {
            shared.insert(code.name().to_owned(), response);
            response = json!({"$ref": format!("#/components/responses/{}", code.name())});
        }
        responses.insert(status.as_str().to_owned(), response);
    }
    responses
}

fn response(status: StatusCode, codes: &[Code], problem: &Value) -> Value {
    let names: Vec<&str> = codes.iter().map(|code| code.name()).collect();
    let described: Vec<String> = codes.iter().map(|code| format!("- `{}`: {}", code.name(), code.when())).collect();
    let narrowed = json!({"properties": {"status": {"const": status.as_u16()}, "code": {"enum": names}}});
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
