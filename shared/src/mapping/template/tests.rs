use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::mapping::{Bindings, BodyFormat, RequestMapping};

fn request(mapping: Value) -> Result<crate::mapping::CompiledRequest, Vec<(String, String)>> {
    let mapping: RequestMapping = serde_json::from_value(mapping).unwrap();
    let mut faults = Vec::new();
    let request = mapping.compile("request", &mut |field, problem| faults.push((field.to_owned(), problem)));
    if faults.is_empty() { Ok(request) } else { Err(faults) }
}

fn rendered(mapping: Value, contents: &[&str]) -> Rendered {
    let request = request(mapping).unwrap();
    let contents: Vec<Box<RawValue>> =
        contents.iter().map(|content| RawValue::from_string((*content).to_owned()).unwrap()).collect();
    let members: Vec<Member<'_>> =
        contents.iter().enumerate().map(|(n, content)| Member { id: format!("id-{n}").into(), content }).collect();
    let (kind, with) = (json!("parcel"), json!({"index": "p\"q", "n": 5}));
    let batch = Bindings::default().with(Variable::Kind, &kind).with(Variable::With, &with);
    let render = Render { batch, members: &members, format: request.format, most: request.most };
    request.body.unwrap().render(&render).unwrap()
}

fn body(mapping: Value, contents: &[&str]) -> String {
    let rendered = rendered(mapping, contents);
    assert_eq!(rendered.unfit, Vec::new());
    String::from_utf8(rendered.body).unwrap()
}

#[test]
fn a_text_that_is_one_term_gives_its_value_and_others_are_joined() {
    let template = json!({"body": {
        "n": "${with.n}", "text": "n=${with.n} ${kind}", "plain": ["$", "$${x}", "}", 1, null],
        "items": {"${members}": {"at": "${index}", "id": "x-${id}", "is": "${content}", "a?": "${content.a}", "b?": "${content.?b.c}"}}
    }});
    let expected = json!({
        "n": 5, "text": "n=5 parcel", "plain": ["$", "${x}", "}", 1, null],
        "items": [
            {"at": 0, "id": "x-id-0", "is": {"a": 1}, "a": 1},
            {"at": 1, "id": "x-id-1", "is": {"b": {"c": [2]}}, "b": [2]},
        ]
    });
    let written = body(template, &[r#"{"a": 1}"#, r#"{"b": {"c": [2]}}"#]);
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), expected);
}

#[test]
fn a_content_is_sent_as_it_was_registered() {
    let content = r#"{"z":1.50,"a":{"y":1e2,"b":12345678901234567890123}}"#;
    let both = json!({"body": {"${members}": ["${content}", "${json(content)}"]}});
    let quoted = serde_json::to_string(content).unwrap();
    assert_eq!(body(both, &[content]), format!("[{content},{quoted}]"));
}

#[test]
fn several_values_per_member_are_one_list_and_ndjson_has_a_line_for_each() {
    let template = json!({"${members}": [{"${with.index}": {"_id": "${id}"}}, "${content}"]});
    let mapping = json!({"format": "ndjson", "body": template});
    let written = body(mapping, &["{\"a\":\n 1}", "2"]);
    assert_eq!(
        written, "{\"p\\\"q\":{\"_id\":\"id-0\"}}\n{\"a\":  1}\n{\"p\\\"q\":{\"_id\":\"id-1\"}}\n2\n",
        "a line break within a content would end its line"
    );
    let within = json!({"body": ["first", {"${members}": "${index}"}, "last"]});
    assert_eq!(body(within.clone(), &["1", "2"]), r#"["first",0,1,"last"]"#);
    assert_eq!(body(json!({"format": "ndjson", "body": within["body"]}), &["1", "2"]), "\"first\"\n0\n1\n\"last\"\n");
}

/// Numbers keep their digits, and texts their line breaks.
#[test]
fn a_line_of_ndjson_is_the_content_as_it_was_registered() {
    let content = "{\n  \"n\": 12345678901234567890123,\r\n  \"t\": \"a\\nb\"}";
    let written = body(json!({"format": "ndjson", "body": {"${members}": "${content}"}}), &[content]);
    assert_eq!(written, "{   \"n\": 12345678901234567890123,    \"t\": \"a\\nb\"}\n");
}

#[test]
fn a_member_that_cannot_be_written_is_left_out_everywhere() {
    let mapping = json!({"body": {"ids": {"${members}": "${index}"}, "names": {"${members}": "${content.name}"}}});
    let rendered = rendered(mapping, &[r#"{"name": "a"}"#, "{}", r#"{"name": "c"}"#, "7"]);
    assert_eq!(String::from_utf8(rendered.body).unwrap(), r#"{"ids":[0,1],"names":["a","c"]}"#);
    assert_eq!(rendered.sent, [0, 2]);
    let unfit: Vec<(usize, &str)> = rendered.unfit.iter().map(|(at, problem)| (*at, problem.as_str())).collect();
    assert_eq!(
        unfit,
        [(1, "`content.name` finds no field `name`"), (3, "`content.name` looks for the field `name` of a number")]
    );
}

#[test]
fn a_body_beyond_its_limit_is_an_error() {
    let mapping = request(json!({"max_bytes": 20, "body": {"${members}": "${content}"}})).unwrap();
    let content = RawValue::from_string("\"0123456789\"".to_owned()).unwrap();
    let render = |members: &[Member<'_>]| {
        let render = Render { batch: Bindings::default(), members, format: BodyFormat::Json, most: mapping.most };
        mapping.body.as_ref().unwrap().render(&render)
    };
    let one = [Member { id: json!("a"), content: &content }];
    assert_eq!(render(&one).unwrap().body.len(), 14);
    assert_eq!(render(&[one[0].clone(), one[0].clone()]), Err(RenderError::TooLarge(20)));
}

#[test]
fn faults_are_named_by_their_place() {
    for (mapping, field, problem) in [
        (
            json!({"body": {"a": [{"${members}": {"x": "${content.}"}}]}}),
            "request.body.a[0].${members}.x",
            "has no name after a dot",
        ),
        (
            json!({"body": [{"${members}": 1}, {"x": "${id}"}]}),
            "request.body[1].x",
            "refers to `id`; here there are `kind`",
        ),
        (json!({"body": {"${members}": ["${item}"]}}), "request.body.${members}[0]", "refers to `item`"),
        (json!({"body": {"x": 1}}), "request.body", "has no `${members}`"),
        (json!({"body": {"${members}": 1, "x": 2}}), "request.body", "beside other fields"),
        (json!({"body": {"${members}": {"${members}": 1}}}), "request.body.${members}", "within"),
        (json!({"body": {"${members}": "${kind"}}), "request.body.${members}", "without the `}` of its `${`"),
        (
            json!({"body": {"${members}": {"${kind + }": 1}}}),
            "request.body.${members}.${kind + }",
            "ends where a value",
        ),
        (json!({"headers": {"Host": "x"}}), "request.headers.Host", "set by Fanfold or by HTTP itself"),
        (
            json!({"headers": {"fanfold-token": "x"}}),
            "request.headers.fanfold-token",
            "set by Fanfold or by HTTP itself",
        ),
        (
            json!({"headers": {"idempotency-KEY": "x"}}),
            "request.headers.idempotency-KEY",
            "`${idempotency_key}` gives it to another one",
        ),
        (json!({"headers": {"a b": "x"}}), "request.headers.a b", "a name that no header may have"),
        (json!({"headers": {"X": "a\nb"}}), "request.headers.X", "without control characters"),
        (json!({"headers": {"X": "${secret}"}}), "request.headers.X", "without a name; `secret.NAME` is one"),
        (json!({"headers": {"X": "${content.a}"}}), "request.headers.X", "refers to `content`"),
        (json!({"query": {"q": "${id}"}}), "request.query.q", "refers to `id`"),
        (json!({"max_bytes": 0}), "request.max_bytes", "is 0, 1 to 50331648 is allowed"),
        (json!({"sign": {"aws": "SQS"}}), "request.sign.aws", "is `SQS`"),
        (json!({"sign": {"webhook": "a-b"}}), "request.sign.webhook", "is `a-b`"),
        (json!({"headers": {"X": "x".repeat(17_000)}}), "request", "at most 16384 are allowed"),
    ] {
        let faults = request(mapping.clone()).unwrap_err();
        assert!(faults.iter().any(|(at, what)| at == field && what.contains(problem)), "{mapping}: {faults:?}");
    }
}

#[test]
fn a_mapping_has_a_bounded_number_of_terms_and_a_bounded_depth() {
    let many: Vec<Value> = (0..70).map(|_| json!("${kind}")).collect();
    let faults = request(json!({"body": [many, {"${members}": "${kind}"}]})).unwrap_err();
    assert_eq!(faults.len(), 1, "it is said once: {faults:?}");
    assert_eq!(faults[0].0, "request.body[0][64]");
    assert!(faults[0].1.contains("at most 64 are allowed"), "{faults:?}");
    let deep = (0..30).fold(json!(1), |inner, _| json!([inner]));
    assert!(request(json!({"body": [deep, {"${members}": 1}]})).unwrap_err()[0].1.contains("nested more than 24 deep"));
}
