//! JSON that is right, malformed, of another shape, and hostile.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::messages::RegisterRequest;
use crate::policy::Policy;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Outer {
    #[serde(deserialize_with = "crate::whole::u32")]
    items: u32,
    inner: Vec<Inner>,
    place: Option<Place>,
    size: Size,
    any: Value,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    name: String,
    weight: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Place {
    Url(String),
    Queue(Size),
    Row { inner: Inner },
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Size {
    #[default]
    Small,
    Large,
}

/// The field and what is wrong with it.
fn wrong(body: &str) -> (String, String) {
    match read::<Outer>(body.as_bytes()).unwrap_err() {
        JsonError::Field(fault) => (fault.field, fault.problem),
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn a_field_of_another_shape_is_named_with_what_is_allowed() {
    for (body, field, problem) in [
        (r#"{"place": {}}"#, "place", "is an empty object, exactly one of `url`, `queue`, `row` is expected"),
        (r#"{"place": []}"#, "place", "invalid type: list, expected one of `url`, `queue`, `row`"),
        (r#"{"place": 5}"#, "place", "invalid type: integer `5`, expected one of `url`, `queue`, `row`"),
        (r#"{"place": true}"#, "place", "invalid type: boolean `true`, expected one of `url`, `queue`, `row`"),
        (
            r#"{"place": "url"}"#,
            "place.url",
            "invalid type: string \"url\", expected an object with one of `url`, `queue`, `row`",
        ),
        (
            r#"{"place": {"url": "x", "queue": "small"}}"#,
            "place",
            "has several fields, exactly one of `url`, `queue`, `row` is allowed",
        ),
        (r#"{"place": {"mail": "x"}}"#, "place.mail", "unknown variant `mail`, expected one of `url`, `queue`, `row`"),
        (r#"{"place": {"url": 5}}"#, "place.url", "invalid type: integer `5`, expected a string"),
        (r#"{"place": {"url": null}}"#, "place.url", "invalid type: null, expected a string"),
        (
            r#"{"place": {"queue": {}}}"#,
            "place.queue",
            "is an empty object, exactly one of `small`, `large` is expected",
        ),
        (r#"{"place": {"queue": []}}"#, "place.queue", "invalid type: list, expected one of `small`, `large`"),
        (r#"{"place": {"row": []}}"#, "place.row", "invalid type: list, expected an object"),
        (r#"{"place": {"row": {"inner": ["a", 1]}}}"#, "place.row.inner", "invalid type: list, expected an object"),
        (r#"{"size": {"small": null}}"#, "size.small", "invalid type: object, expected one of `small`, `large`"),
        (r#"{"size": "huge"}"#, "size.huge", "unknown variant `huge`, expected `small` or `large`"),
        (r#"{"size": null}"#, "size", "invalid type: null, expected one of `small`, `large`"),
        (r#"{"items": "3"}"#, "items", "invalid type: string \"3\", expected a whole number below 2^32"),
        (
            r#"{"items": 4294967296}"#,
            "items",
            "invalid value: integer `4294967296`, expected a whole number below 2^32",
        ),
        (r#"{"items": 1e999}"#, "items", "holds a number beyond what a double holds"),
        (r#"{"any": {"deep": [1, -1e999]}}"#, "any.deep[1]", "holds a number beyond what a double holds"),
        (
            r#"{"any": ["\ud800"]}"#,
            "any[0]",
            "holds half a pair of surrogates (`\\ud800` to `\\udfff`), which is not a character",
        ),
        (r#"{"inner": {}}"#, "inner", "invalid type: object, expected a list"),
        (r#"{"inner": [["a", 1.5]]}"#, "inner[0]", "invalid type: list, expected an object"),
        (r#"{"inner": [{"name": "a"}, {}]}"#, "inner[1].name", "missing field `name`"),
        (r#"{"inner": [{"name": "a", "name": "b"}]}"#, "inner[0].name", "duplicate field `name`"),
        (r#"{"items": 1, "items": 2}"#, "items", "duplicate field `items`"),
        (r#"{"inner": [{"name": "a", "x": 1}]}"#, "inner[0].x", "unknown field `x`, expected `name` or `weight`"),
    ] {
        let reported = wrong(body);
        // Of an enum the path may name the variant, too.
        assert!(
            reported.0 == field || field.strip_prefix(&reported.0).is_some_and(|rest| rest.starts_with('.')),
            "{body}: {reported:?}"
        );
        assert_eq!(reported.1, problem, "{body}");
    }
}

#[test]
fn only_what_is_no_json_is_called_so() {
    for body in ["{", "{\"items\": 3} x", "x", "{\"items\": 3,}", "{\"any\": [}", "{\"items\": 03}"] {
        assert!(matches!(read::<Outer>(body.as_bytes()), Err(JsonError::Malformed(_))), "{body}");
    }
    assert!(matches!(read::<Outer>(b"{\"any\": \"\xff\"}"), Err(JsonError::Malformed(_))));
    assert_eq!(read::<Outer>(b""), Err(JsonError::Empty));
    for body in ["[]", " [3, []]", "null", "3", "\"x\""] {
        assert!(matches!(read::<Outer>(body.as_bytes()), Err(JsonError::Shape(_))), "{body}");
    }
    let nested = |levels| format!("{{\"any\": {}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(read::<Outer>(nested(100).as_bytes()).is_ok());
    let (field, problem) = wrong(&nested(500));
    assert!(field.starts_with("any[0]") && field.len() < 200, "{field}");
    assert_eq!(problem, "is nested more than 127 deep, which is not read");
}

#[test]
fn what_is_right_is_read() {
    let outer = read::<Outer>(
        b" {\"items\": 3.0, \"place\": {\"queue\": \"large\"}, \"inner\": [{\"name\": \"a\", \"weight\": 2}]}\n",
    );
    let inner = Inner { name: "a".to_owned(), weight: Some(2.0) };
    let expected = Outer { items: 3, place: Some(Place::Queue(Size::Large)), inner: vec![inner], ..Outer::default() };
    assert_eq!(outer, Ok(expected));
    let row = read::<Outer>(br#"{"place": {"row": {"inner": {"name": "b"}}}, "size": "large"}"#).unwrap();
    assert_eq!(row.place, Some(Place::Row { inner: Inner { name: "b".to_owned(), weight: None } }));
}

#[test]
fn a_list_of_values_is_no_object_wherever_one_is_wanted() {
    let tasks = read::<RegisterRequest>(br#"{"tasks": [["01890000-0000-7000-8000-000000000001", "a", {}]]}"#);
    assert!(matches!(&tasks, Err(JsonError::Field(fault)) if fault.field == "tasks[0]"), "{tasks:?}");
    let batch_api = json!({"kind": "a", "target": "kind", "batch_api": ["https://example.com", null, "5s"]});
    let policy = shape::<Policy>(batch_api);
    assert!(matches!(&policy, Err(JsonError::Field(fault)) if fault.field == "batch_api"), "{policy:?}");
}

#[test]
fn of_two_fields_of_one_name_none_is_dropped() {
    for (body, field) in [
        (r#"{"a": 1, "a": 1}"#, "a"),
        (r#"{"x": {"b": 1, "c": [], "b": 2}}"#, "x.b"),
        (r#"{"x": [1, {"c": null, "c": true}]}"#, "x[1].c"),
    ] {
        let error = read::<Unique>(body.as_bytes()).unwrap_err();
        assert!(matches!(&error, JsonError::Field(fault) if fault.field == field), "{body}: {error:?}");
    }
    let value = json!({"a": [1, -1, 1.5, "x", true, null], "b": {"a": {}}});
    assert_eq!(read::<Unique>(value.to_string().as_bytes()), Ok(Unique(value.as_object().unwrap().clone())));
}

/// What a derived type writes, it reads.
fn places() -> impl Strategy<Value = Option<Place>> {
    let inner = || (".{0,3}", prop::option::of(-5.0..5.0)).prop_map(|(name, weight)| Inner { name, weight });
    prop::option::of(prop_oneof![
        ".{0,5}".prop_map(Place::Url),
        prop::bool::ANY.prop_map(|large| Place::Queue(if large { Size::Large } else { Size::Small })),
        inner().prop_map(|inner| Place::Row { inner }),
    ])
}

proptest! {
    #[test]
    fn what_is_written_is_read(items: u32, place in places(), names in prop::collection::vec(".{0,3}", 0..3)) {
        let inner = names.into_iter().map(|name| Inner { name, weight: None }).collect();
        let outer = Outer { items, inner, place, ..Outer::default() };
        let value = serde_json::to_value(&outer).unwrap();
        prop_assert_eq!(&read::<Outer>(value.to_string().as_bytes()).unwrap(), &outer);
        prop_assert_eq!(&shape::<Outer>(value).unwrap(), &outer);
    }

    #[test]
    fn nothing_breaks_the_reader(body in "[{}\\[\\]\",:a-c0-9\\\\ ]{0,40}") {
        let json = serde_json::from_str::<IgnoredAny>(&body).is_ok();
        let malformed = matches!(read::<Outer>(body.as_bytes()), Err(JsonError::Malformed(_) | JsonError::Empty));
        prop_assert_eq!(malformed, !json);
    }
}
