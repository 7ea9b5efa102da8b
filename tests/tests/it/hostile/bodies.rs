//! Hostile bodies: rubbish, and what comes of a right message by damage.

use serde_json::Value;

/// What no queue takes, by name.
pub(super) fn rubbish() -> Vec<(String, String)> {
    let mebibyte = 1_024 * 1_024;
    let deep = 100_000;
    [
        ("nothing", String::new()),
        ("blank", " \n\t".to_owned()),
        ("control characters", "\0\u{1}\u{7f}\u{ffff}".to_owned()),
        ("byte order mark", "\u{feff}{}".to_owned()),
        ("words", "truck 117 is late".to_owned()),
        ("html", "<html><body>502 Bad Gateway</body></html>".to_owned()),
        ("null", "null".to_owned()),
        ("true", "true".to_owned()),
        ("a number", "-1".to_owned()),
        ("a number beyond all", "1e400".to_owned()),
        ("NaN", "NaN".to_owned()),
        ("an empty list", "[]".to_owned()),
        ("a list of empty lists", "[[], []]".to_owned()),
        ("half a surrogate", r#"{"\ud800": 1}"#.to_owned()),
        ("an unknown field", r#"{"surprise": 1}"#.to_owned()),
        ("a mebibyte of one letter", "x".repeat(mebibyte)),
        ("a mebibyte of text", format!("\"{}\"", "x".repeat(mebibyte))),
        ("a mebibyte of an unknown field", format!("{{\"{}\": 1}}", "x".repeat(mebibyte))),
        ("a mebibyte of brackets", "[".repeat(mebibyte)),
        ("deep lists", "[".repeat(deep) + &"]".repeat(deep)),
        ("deep objects", "{\"a\":".repeat(deep) + "1" + &"}".repeat(deep)),
        ("a deep unknown field", format!("{{\"a\": {}{}}}", "[".repeat(deep), "]".repeat(deep))),
        ("two messages", "{} {}".to_owned()),
    ]
    .into_iter()
    .map(|(name, body)| (name.to_owned(), body))
    .collect()
}

/// The beginnings of a message, cut at every byte.
pub(super) fn truncated(body: &str) -> Vec<(String, String)> {
    let cuts = (1..body.len()).filter(|at| body.is_char_boundary(*at));
    cuts.map(|at| (format!("cut at byte {at}"), body[..at].to_owned())).collect()
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// A text of a certain form.
    Text,
    /// A whole number of 32 bits.
    Small,
    /// A whole number of 64 bits.
    Large,
    /// A list.
    List,
    /// An object.
    Object,
}

/// JSON that a field of this sort does not take.
fn wrong(holds: Holds) -> Vec<String> {
    let mut values: Vec<String> =
        ["-1", "1.5", "1e400", "-1e400", "NaN", "Infinity", "true", "null", "[[]]", "[-1]", "1,"]
            .map(str::to_owned)
            .to_vec();
    values.extend(["18446744073709551616", "340282366920938463463374607431768211456"].map(str::to_owned));
    values.extend(["\"NaN\"", "\"-1\"", "\"x\"", "\"\"", "\"\\u0000\"", "{\"x\": 1}"].map(str::to_owned));
    values.push(format!("\"{}\"", "x".repeat(1_024 * 1_024)));
    values.push(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)));
    match holds {
        Holds::Text => values.extend(["0", "[]", "{}"].map(str::to_owned)),
        Holds::Small => values.extend(["4294967296", "\"1\"", "[]", "{}"].map(str::to_owned)),
        Holds::Large => values.extend(["\"1\"", "[]", "{}"].map(str::to_owned)),
        Holds::List => values.extend(["0", "{}", "[null]", "[0]", "[\"x\"]"].map(str::to_owned)),
        // As a list serde would read an object's fields in their order.
        Holds::Object => values.extend(["0", "[]", "[{}]", "[\"x\", \"y\"]"].map(str::to_owned)),
    }
    values
}

/// A right message with one thing wrong: a field of another sort, given twice, or unknown. `fields` are JSON pointers.
pub(super) fn damaged(body: &str, fields: &[(&str, Holds)]) -> Vec<(String, String)> {
    const MARK: &str = "\"HERE\"";
    let right: Value = serde_json::from_str(body).unwrap();
    let mut bodies = Vec::new();
    for (pointer, holds) in fields {
        let mut marked = right.clone();
        let field = marked.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} in {body}"));
        let value = std::mem::replace(field, Value::from("HERE")).to_string();
        let marked = marked.to_string();
        for wrong in wrong(*holds) {
            let name: String = wrong.chars().take(40).collect();
            bodies.push((format!("{pointer} is {name}"), marked.replace(MARK, &wrong)));
        }
        let name = pointer.rsplit('/').next().unwrap_or_default();
        if name.parse::<usize>().is_err() {
            let twice = format!("{value},\"{name}\":{value}");
            bodies.push((format!("{pointer} stands twice"), marked.replace(MARK, &twice)));
            bodies
                .push((format!("{pointer} has a neighbour"), marked.replace(MARK, &format!("{value},\"surprise\":1"))));
        }
    }
    bodies
}
