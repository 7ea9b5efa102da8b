//! Bodies that are right, malformed, misshapen and hostile.
#![allow(clippy::unwrap_used)]

use axum::body::Body;
use serde::Deserialize;

use super::*;
use fanfold::limits::BODY_BYTES_MAX;

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    items: u32,
    #[serde(default)]
    inner: Vec<Inner>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    name: String,
    #[serde(default)]
    content: serde_json::Value,
}

fn request(kind: Option<&str>, body: impl Into<Body>) -> Request {
    let mut request = Request::new(body.into());
    if let Some(kind) = kind {
        request.headers_mut().insert(header::CONTENT_TYPE, kind.parse().unwrap());
    }
    request
}

async fn extract(kind: Option<&str>, body: impl Into<Body>) -> Result<Shape, Problem> {
    let Json(shape) = <Json<Shape> as FromRequest<()>>::from_request(request(kind, body), &()).await?;
    Ok(shape)
}

async fn problem(body: impl Into<Body>) -> Problem {
    extract(None, body).await.unwrap_err()
}

fn shown(problem: &Problem) -> (u16, &'static str) {
    (problem.code().status().as_u16(), problem.code().name())
}

#[tokio::test]
async fn json_of_any_name_is_taken() {
    let right =
        [None, Some("application/json"), Some("Application/JSON; charset=utf-8"), Some("application/vnd.fanfold+json")];
    for kind in right {
        assert_eq!(extract(kind, r#"{"items": 3}"#).await.unwrap(), Shape { items: 3, inner: Vec::new() }, "{kind:?}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", "+json", ""] {
        let problem = extract(Some(kind), r#"{"items": 3}"#).await.unwrap_err();
        assert_eq!(shown(&problem), (415, "unsupported_media_type"), "{kind}");
        assert!(problem.detail().contains(&format!("`{kind}`")));
    }
}

#[tokio::test]
async fn malformed_json_is_placed() {
    for (body, place) in [
        ("{\"items\": 3", "line 1 column 11"),
        ("{\n \"items\": 3,}", "line 2 column"),
        ("{\"items\": 3} x", "trailing characters at line 1 column 14"),
        ("nothing", "line 1 column 2"),
        (" ", "line 1 column"),
        ("{\"items\": \"three\", \"x\"}", "line 1 column 23"),
    ] {
        let problem = problem(body).await;
        assert_eq!(shown(&problem), (400, "malformed_json"), "{body}");
        assert!(problem.detail().contains(place), "{body}: {}", problem.detail());
    }
    let empty = problem("").await;
    assert_eq!(shown(&empty), (400, "malformed_json"));
    assert_eq!(empty.detail(), "the body is empty, JSON is expected");
    assert_eq!(shown(&problem(b"{\"items\": 3, \"inner\": [{\"name\": \"\xff\"}]}".to_vec()).await).0, 400);
}

#[tokio::test]
async fn a_wrong_shape_is_named() {
    for (body, field, named) in [
        (r#"{"items": "three"}"#, Some("items"), "expected a whole number below 2^32"),
        (r#"{"items": -1}"#, Some("items"), "`-1`"),
        (r#"{"items": 4294967296}"#, Some("items"), "4294967296"),
        (r#"{"items": 1.5}"#, Some("items"), "1.5"),
        (r#"{"items": null}"#, Some("items"), "null"),
        (r#"{"items": 1, "inner": [{"name": "a"}, {"name": 5}]}"#, Some("inner[1].name"), "expected a string"),
        (r#"{"items": 1, "inner": [{}]}"#, Some("inner[0].name"), "`name`"),
        (r#"{"items": 1, "inner": [["a"]]}"#, Some("inner[0]"), "expected an object"),
        (r#"{"items": 1, "inner": {}}"#, Some("inner"), "expected a list"),
        (r#"{"inner": []}"#, Some("items"), "missing"),
        (r#"{"items": 1, "items": 2}"#, Some("items"), "duplicate"),
        (r#"{"items": 1, "seals": true}"#, Some("seals"), "expected `items` or `inner`"),
        ("[]", None, "object"),
        (" [3, []]", None, "object"),
        ("null", None, "object"),
        ("3", None, "object"),
    ] {
        let problem = problem(body).await;
        assert_eq!(shown(&problem), (422, "invalid_body"), "{body}");
        assert!(problem.detail().contains(named), "{body}: {}", problem.detail());
        let fields: Vec<&str> = problem.errors().iter().map(|error| error.field.as_str()).collect();
        if let Some(field) = field {
            assert_eq!(fields, [field], "{body}");
        }
    }
}

#[test]
fn the_text_of_a_code_says_the_limit() {
    assert_eq!(Code::TooLarge.when(), format!("the body has more than {} MiB", BODY_BYTES_MAX / (1_024 * 1_024)));
}

#[tokio::test]
async fn hostile_bodies_are_refused() {
    let exact = |pad: usize| format!(r#"{{"items": 1, "inner": [{{"name": "{}"}}]}}"#, "x".repeat(pad));
    let exact = exact(BODY_BYTES_MAX - exact(0).len());
    assert_eq!(exact.len(), BODY_BYTES_MAX);
    assert!(extract(None, exact.clone()).await.is_ok());
    assert_eq!(shown(&problem(format!("{exact} ")).await), (413, "too_large"));
    for open in ["[", "{\"a\":"] {
        let deep = format!(r#"{{"items": 1, "inner": [{{"name": "a", "content": {}"#, open.repeat(100_000));
        assert_eq!(shown(&problem(deep).await), (400, "malformed_json"));
    }
    let deep =
        format!(r#"{{"items": 1, "inner": [{{"name": "a", "content": {}{}}}]}}"#, "[".repeat(500), "]".repeat(500));
    let deep = problem(deep).await;
    assert_eq!(shown(&deep), (422, "invalid_body"));
    assert!(
        deep.detail().contains("is nested more than 127 deep") && deep.detail().starts_with("`inner[0].content[0]"),
        "{}",
        deep.detail()
    );
    let long = format!(r#"{{"items": "{}", "{}": 1}}"#, "x".repeat(1_000_000), "y".repeat(1_000_000));
    let problem = problem(long).await;
    assert_eq!(shown(&problem), (422, "invalid_body"));
    assert!(problem.detail().len() < 2_000);
}

#[tokio::test]
async fn a_body_may_be_absent() {
    let extract = |kind, body: &'static str| async move {
        let json = <Json<Shape> as OptionalFromRequest<()>>::from_request(request(kind, body), &()).await?;
        Ok::<_, Problem>(json.map(|Json(shape)| shape.items))
    };
    assert_eq!(extract(None, "").await.unwrap(), None);
    // curl says this of a body it was given none for.
    assert_eq!(extract(Some("application/x-www-form-urlencoded"), "").await.unwrap(), None);
    assert_eq!(extract(None, r#"{"items": 3}"#).await.unwrap(), Some(3));
    assert_eq!(shown(&extract(None, "x").await.unwrap_err()), (400, "malformed_json"));
    assert_eq!(shown(&extract(Some("text/plain"), r#"{"items": 3}"#).await.unwrap_err()).0, 415);
}
