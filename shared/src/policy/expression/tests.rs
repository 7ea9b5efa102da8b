use super::*;
use serde_json::json;

fn evaluate(source: &str, content: serde_json::Value) -> Result<String, ExpressionError> {
    Expression::compile(source)?.evaluate(&Subject::new("parcel", &content)?)
}

#[test]
fn gives_targets() {
    let order = json!({"state": "NY", "depot": "117", "lines": 3, "express": true, "size": {"kg": 1.5}});
    assert_eq!(evaluate("content.state + '/' + content.depot", order.clone()).unwrap(), "NY/117");
    assert_eq!(
        evaluate("[kind, content.state, content.lines, content.express]", order.clone()).unwrap(),
        "parcel/NY/3/true"
    );
    assert_eq!(evaluate("content.size.kg", order.clone()).unwrap(), "1.5");
    assert_eq!(evaluate("content.depot.substring(0, 2)", order.clone()).unwrap(), "11");
    assert_eq!(evaluate("has(content.zone) ? content.zone : 'none'", order).unwrap(), "none");
}

#[test]
fn lists_that_differ_give_targets_that_differ() {
    assert_ne!(evaluate("['a/b', 'c']", json!({})), evaluate("['a', 'b/c']", json!({})));
}

#[test]
fn says_what_is_wrong() {
    assert!(matches!(evaluate("content.", json!({})), Err(ExpressionError::Syntax { .. })));
    assert!(
        matches!(evaluate("order.state", json!({})), Err(ExpressionError::Unknown { problem, .. }) if problem.contains("`order`"))
    );
    assert!(matches!(evaluate("content.state", json!({})), Err(ExpressionError::Evaluation { .. })));
    assert!(matches!(evaluate("content.a", json!({"a": null})), Err(ExpressionError::Type { .. })));
    for (content, found) in [
        (json!({"a": "x", "b": null}), "a list whose element 2 is null"),
        (json!({"a": ["x"], "b": null}), "a list whose element 1 is list"),
        (json!({"a": 1, "b": {}}), "a list whose element 2 is map"),
    ] {
        let error = evaluate("[content.a, content.b]", content).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`[content.a, content.b]` gives {found}, a string, ")), "{error}");
    }
    assert!(matches!(
        evaluate("content.a", json!({"a": "x".repeat(2_000)})),
        Err(ExpressionError::ValueTooLong { .. })
    ));
    assert!(matches!(Expression::compile(&"(".repeat(5_000)), Err(ExpressionError::TooLong(5_000))));
    assert!(matches!(Expression::compile(&"(".repeat(1_000)), Err(ExpressionError::TooDeep)));
}

#[test]
fn texts_in_place_of_other_values_are_recognized() {
    let content = json!({"text": "3", "number": 3.5});
    let subject = Subject::new("parcel", &content).unwrap();
    let finds_text = |source: &str| {
        let expression = Expression::compile(source).unwrap();
        let errors = [
            expression.evaluate(&subject).err(),
            expression.weight(&subject).err(),
            expression.flag(&subject).err(),
            expression.head_start(&subject).err(),
        ];
        errors.map(|error| error.is_some_and(|error| error.finds_text()))
    };
    assert_eq!(finds_text("content.text > 3.0 ? 'heavy' : 'light'"), [true; 4]);
    assert_eq!(finds_text("content.text + 1.0"), [true; 4]);
    assert_eq!(finds_text("content.text"), [false, true, true, true]);
    assert_eq!(finds_text("double(content.text) - 4.0"), [false; 4]);
    assert_eq!(finds_text("content.number.text"), [false; 4]);
    assert_eq!(finds_text("content.other"), [false; 4]);
}

/// Each of these took hours, or all memory, for some content of 128 KiB.
#[test]
fn what_has_no_bound_is_refused() {
    let loops = ["content.a.all(kind, content.a.all(kind, true))", "[content].map(kind, kind + kind)"];
    for source in loops {
        assert!(matches!(Expression::compile(source), Err(ExpressionError::Loop { .. })), "{source}");
    }
    for source in [
        "content.a.replace('', content.a)",
        "content.a.replace(content.a, 'x')",
        "[content.a.join(content.b)]",
        "{'x': content.a.indexOf(content.b)}.x",
        "content.a.matches(content.b)",
    ] {
        assert!(matches!(Expression::compile(source), Err(ExpressionError::Pattern { .. })), "{source}");
    }
    let ten = ".replace('7', '7777777777')";
    for source in [
        format!("'7'{}", ten.repeat(20)),
        format!("[content.a{}][0]{ten}", ten),
        format!("content.a.split('').join('{}')", "x".repeat(64)),
        format!("{}content.a{}", "strings.quote(".repeat(7), ")".repeat(7)),
    ] {
        assert!(matches!(Expression::compile(&source), Err(ExpressionError::Growth { .. })), "{source}");
    }
    let error = Expression::compile("content.a.replace('', content.b)").unwrap_err().to_string();
    assert!(error.contains("`replace`") && error.contains("`content.a.replace('', content.b)`"), "{error}");
}

#[test]
fn what_has_a_bound_is_evaluated() {
    let content = json!({"a": "a-b-c", "l": ["x", "y"], "n": 7});
    for (source, value) in [
        ("content.a.replace('-', '/')", "a/b/c"),
        ("content.a.split('-').join(', ')", "a, b, c"),
        ("content.l.join('-').upperAscii()", "X-Y"),
        ("content.a.indexOf('b')", "2"),
        ("content.a.matches('^a.*c$') ? 'yes' : 'no'", "yes"),
        ("'%s:%d'.format([kind, content.n]).replace('%', '')", "parcel:7"),
        ("'x' in content.l", "true"),
    ] {
        assert_eq!(evaluate(source, content.clone()).unwrap(), value, "{source}");
    }
}

#[test]
fn hostile_expressions_are_refused_or_evaluated() {
    // As much of each as the limits let through to the parser, and one step more.
    let repeat = |part: &str| {
        let operators = part.bytes().filter(|byte| b"+?:|.!-".contains(byte)).count().max(1);
        part.repeat((EXPRESSION_OPERATORS_MAX / operators).min(EXPRESSION_BYTES_MAX / part.len() - 2))
    };
    for source in [
        repeat("content."),
        format!("{}kind", repeat("!")),
        format!("{}1", repeat("-")),
        format!("{}1", repeat("1+")),
        format!("{}1", repeat("true?1:")),
        format!("{}kind", repeat("kind||")),
        format!("content{}", repeat("[0]")),
        format!("kind{}", repeat(".a()")),
        "[".repeat(EXPRESSION_DEPTH_MAX),
        "{1:".repeat(EXPRESSION_DEPTH_MAX),
        format!("{}kind{}", "(".repeat(EXPRESSION_DEPTH_MAX), ")".repeat(EXPRESSION_DEPTH_MAX)),
        repeat("\""),
    ] {
        if let Ok(expression) = Expression::compile(&source) {
            let _ = expression.evaluate(&Subject::new("parcel", &json!({})).unwrap());
        }
    }
}

#[test]
fn head_starts_are_numbers_texts_or_null() {
    let head_start = |source: &str, content: serde_json::Value| {
        Expression::compile(source)?.head_start(&Subject::new("parcel", &content)?).map(HeadStart::seconds)
    };
    for (value, seconds) in [
        (json!(null), 0),
        (json!(0), 0),
        (json!(45), 45),
        (json!(45.9), 45),
        (json!("10m"), 600),
        (json!("1h 30m"), 5_400),
        (json!(604_800), 604_800),
    ] {
        assert_eq!(head_start("content.p", json!({ "p": value })), Ok(seconds));
    }
    for (value, got) in [
        (json!(-1), "-1"),
        (json!(604_801), "604801"),
        (json!(1e30), "1000000000000000000000000000000"),
        (json!("soon"), "`soon`"),
        (json!("8days"), "`8days`"),
        (json!("10"), "`10`"),
        (json!(true), "bool"),
        (json!([60]), "list"),
        (json!("é".repeat(2_000)), "…`"),
    ] {
        let error = head_start("content.p", json!({ "p": value })).unwrap_err();
        let ExpressionError::HeadStart { got: shown, .. } = &error else { panic!("{error}") };
        assert!(shown.ends_with(got) && shown.len() < 100, "{error}");
        let text = error.to_string();
        assert!(text.contains("`content.p`") && text.contains("from 0 to 604800 (7days)"), "{text}");
    }
    assert!(matches!(head_start("content.p", json!({})), Err(ExpressionError::Evaluation { .. })));
}
