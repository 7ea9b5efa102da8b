use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::policy::{Expression, Subject};

fn value(source: &str, content: &Value) -> Result<Value, String> {
    let term = Term::read(source, &[Variable::Kind, Variable::Content, Variable::Item])?;
    let kind = json!("parcel");
    let bindings = Bindings::default().with(Variable::Content, content).with(Variable::Kind, &kind);
    term.value(&bindings).map(std::borrow::Cow::into_owned).map_err(|error| error.to_string())
}

#[test]
fn terms_have_values() {
    let content = json!({
        "a": "Ab\u{e4}", "n": 7, "f": 1.5, "big": u64::MAX, "l": ["x", {"y": null}], "m": {"z-z": 1}, "t": true, "none": null
    });
    for (source, expected) in [
        ("content.a", json!("Ab\u{e4}")),
        ("content", content.clone()),
        ("content.l[1].y == null && content.none == null", json!(true)),
        ("content.m['z-z'] + 1 * 2 - -3", json!(6)),
        ("content.n / 2 + content.n % 4u", json!(6)),
        ("content.f * 2.0", json!(3.0)),
        ("content.big > 9223372036854775807", json!(true)),
        ("content.big - 1", json!(u64::MAX - 1)),
        ("1 == 1.0 && [1, 'a'] == [1.0, \"a\"]", json!(true)),
        ("content.n >= 7 || content.missing", json!(true)),
        ("content.missing || content.t", json!(true)),
        ("content.missing && false", json!(false)),
        ("has(content.a) && !has(content.b)", json!(true)),
        ("content.?b.c.orValue('none') + content.?a.orValue('')", json!("noneAb\u{e4}")),
        ("content.?b.hasValue()", json!(false)),
        ("content.l[?7].orValue(3)", json!(3)),
        ("'x' in content.l && 'a' in content && !(2 in [1])", json!(true)),
        ("content.n > 5 ? 'large' : content.n > 1 ? 'small' : 'none'", json!("large")),
        ("size(content.a) + content.l.size()", json!(5)),
        ("string(content.n) + string(content.t) + string(1.0) + string(1.5)", json!("7true11.5")),
        ("int('12') + int(2.9) + int(-2.9)", json!(12)),
        ("double('1.5') + double(2)", json!(3.5)),
        ("content.a.lowerAscii() + 'x'.upperAscii() + ' y '.trim()", json!("ab\u{e4}Xy")),
        ("content.a.substring(1) + content.a.substring(0, 1)", json!("b\u{e4}A")),
        ("content.a.contains('b') && content.a.startsWith('A') && !content.a.endsWith('b')", json!(true)),
        ("json(content.m)", json!("{\"z-z\":1}")),
        ("base64(json(content.l))", json!("WyJ4Iix7InkiOm51bGx9XQ==")),
        ("'it\\'s' + \"\\n\\\\\"", json!("it's\n\\")),
        ("(kind)", json!("parcel")),
        ("[content.n, 'x',]", json!([7, "x"])),
    ] {
        assert_eq!(value(source, &content), Ok(expected), "{source}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let wide = vec!["1"; 70].join("+");
    for (source, problem) in [
        ("", "ends where a value is expected"),
        ("content.", "has no name after a dot"),
        ("content.a b", "has `b` where it should end"),
        ("order.id", "refers to `order`; here there are `kind`, `content`, `item`"),
        ("content.a.frob()", "calls `frob`, which no value has; values have size, contains"),
        ("frob(kind)", "calls `frob`, which does not exist; there are has, size"),
        ("size(kind, 1)", "calls `size` with 2 arguments, 1 is allowed"),
        ("kind.substring()", "calls `substring` with 0 arguments, 1 or 2 are allowed"),
        ("has(kind)", "calls `has` of no field"),
        ("'open", "has a text without its closing '"),
        ("'\\q'", "has `\\q` in a text"),
        ("kind # 1", "has `#`, which is not part of an expression"),
        ("(kind", "has its end where `)` is expected"),
        ("kind ? 1", "has its end where `:` is expected"),
        ("18446744073709551616", "has the number 18446744073709551616, which is too large"),
        ("1e999", "too large"),
        (wide.as_str(), "has 69 operator characters, at most 64 are allowed"),
    ] {
        let error = value(source, &Value::Null).unwrap_err();
        assert!(error.contains(problem), "{source}: {error}");
    }
    assert!(value(&"(".repeat(25), &Value::Null).unwrap_err().contains("24 deep"));
    assert!(value(&"x".repeat(1_025), &Value::Null).unwrap_err().contains("1025 bytes"));
}

#[test]
fn what_has_no_value_says_why() {
    let content = json!({"a": "x", "n": 1, "l": []});
    for (source, problem) in [
        ("content.b", "finds no field `b`"),
        ("content.?b", "has no value"),
        ("content.?b + 'x'", "uses a value that is not there; `.orValue(…)` gives another"),
        ("content.n.b", "looks for the field `b` of a number"),
        ("content.l[0]", "finds no element 0"),
        ("content.l[-1]", "finds no element -1"),
        ("content.a + content.n", "calculates with a text and a number"),
        ("content.n + 1.0", "mixes a whole number with a fraction"),
        ("content.n / 0", "divides by 0"),
        ("1.0 / 0.0", "gives a number that is too large"),
        ("9223372036854775807 * 9223372036854775807", "gives a number that is too large"),
        ("content.n ? 1 : 2", "uses a number where true or false is expected"),
        ("content.a < 1", "compares a text with a number"),
        ("content.a.substring(2)", "takes the letters from 2 to 1 of a text of 1"),
        ("string(content.l)", "makes a text of a list; `json(…)` does"),
        ("base64(content)", "encodes an object, a text is expected"),
        ("item", "refers to `item`, which has no value here"),
    ] {
        let error = value(source, &content).unwrap_err();
        assert!(error.contains(problem), "{source}: {error}");
    }
}

#[test]
fn texts_within_texts_do_not_grow_without_bound() {
    let content = Value::String("\"".repeat(128 * 1_024));
    let nested = format!("{}content{}", "json(".repeat(20), ")".repeat(20));
    assert!(value(&nested, &content).unwrap_err().contains("at most 8388608 are allowed"));
    let joined = vec!["content"; 60].join(" + ");
    assert_eq!(value(&joined, &content).unwrap().as_str().unwrap().len(), 60 * 128 * 1_024);
}

#[test]
fn secrets_are_found() {
    let secrets = |source: &str| {
        let term = Term::read(source, &[Variable::Secret, Variable::Kind]).unwrap();
        term.secrets().map(|names| names.into_iter().map(str::to_owned).collect::<BTreeSet<String>>())
    };
    assert_eq!(
        secrets("base64(kind + ':' + secret.A) + secret.B").unwrap(),
        BTreeSet::from(["A".to_owned(), "B".to_owned()])
    );
    for source in ["secret", "json(secret)", "secret[kind]", "secret.?A.orValue('')", "has(secret.A)"] {
        assert!(secrets(source).unwrap_err().contains("without a name"), "{source}");
    }
}

/// Terms that are expressions of CEL, too, over `content.a` to `content.f`.
fn common() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "content.a",
            "content.b",
            "content.c",
            "content.d",
            "content.e",
            "content.f",
            "kind"
        ])
        .prop_map(str::to_owned),
        (-9_i64..9).prop_map(|number| if number < 0 { format!("({number})") } else { number.to_string() }),
        prop::sample::select(vec!["true", "false", "null", "'x'", "'Ab'", "1.5", "0.0", "''"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 20, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let signs = vec!["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "in"];
        prop_oneof![
            (two.clone(), prop::sample::select(signs))
                .prop_map(|((one, other), sign)| format!("({one} {sign} {other})")),
            (two.clone(), inner.clone()).prop_map(|((asked, yes), no)| format!("({asked} ? {yes} : {no})")),
            inner.clone().prop_map(|inner| format!("!({inner})")),
            inner.clone().prop_map(|inner| format!("[{inner}]")),
            inner.clone().prop_map(|inner| format!("size({inner})")),
            inner.clone().prop_map(|inner| format!("({inner}).lowerAscii()")),
            two.prop_map(|(one, other)| format!("({one}).contains({other})")),
        ]
    })
}

proptest! {
    /// Where CEL has a value, terms have it.
    #[test]
    fn terms_are_what_cel_says(source in common()) {
        let content = json!({"a": "Ab", "b": -3, "c": 2.5, "d": true, "e": ["x", "y"], "f": {"x": "y"}});
        let Ok(expression) = Expression::compile(&source) else { return Ok(()) };
        let Ok(expected) = expression.evaluate(&Subject::new("parcel", &content).unwrap()) else { return Ok(()) };
        let ours = value(&source, &content);
        // A division by 0.0 is an infinity in CEL, which JSON has not. The crate adds an object's keys to a list, which CEL does not.
        let differs = |error: &String| {
            let too_large = source.contains(" / ") && error.ends_with("gives a number that is too large");
            too_large || error.ends_with("calculates with a list and an object")
        };
        if ours.as_ref().is_err_and(differs) {
            return Ok(());
        }
        prop_assert!(ours.is_ok(), "{}: CEL has {}, {:?}", source, expected, ours);
        let ours = Expression::compile("content").unwrap().evaluate(&Subject::new("parcel", &ours.unwrap()).unwrap());
        prop_assert_eq!(ours, Ok(expected), "{}", source);
    }

    #[test]
    fn any_text_is_read_or_refused(source in ".{0,60}") {
        let _ = value(&source, &json!({"a": 1}));
    }
}
