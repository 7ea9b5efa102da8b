//! A policy as YAML.

use serde_json::{Map, Value};

/// Fields that come first, in this order.
const FIRST: [&str; 4] = ["kind", "target", "key", "scope"];

/// Words that YAML does not take for texts.
const WORDS: [&str; 12] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"];

/// A document as YAML: a field per line, and the fields of an object below it.
pub(super) fn text(policy: &Value) -> String {
    let mut text = String::new();
    if let Value::Object(fields) = policy {
        write(fields, 0, &mut text);
    }
    text
}

fn write(fields: &Map<String, Value>, depth: usize, text: &mut String) {
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
    fields.sort_by_key(|(name, _)| (place(name), name.as_str()));
    for (name, value) in fields {
        text.push_str(&"  ".repeat(depth));
        text.push_str(&scalar(name));
        text.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                text.push('\n');
                write(inner, depth + 1, text);
            }
            Value::String(value) => text.push_str(&format!(" {}\n", scalar(value))),
            // JSON is YAML.
            value => text.push_str(&format!(" {value}\n")),
        }
    }
}

/// A text as it is if YAML takes it for one, otherwise in quotes.
fn scalar(value: &str) -> String {
    let plain = value.starts_with(|first: char| first.is_ascii_alphabetic())
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte))
        && !WORDS.contains(&value.to_ascii_lowercase().as_str());
    if plain { value.to_owned() } else { Value::from(value).to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::job::yaml;

    #[test]
    fn a_policy_is_written_as_people_do() {
        let policy = json!({
            "batch_api": {"command": ["./a", "b c"], "timeout": "10s"}, "kind": "row", "max_batch": 7,
            "target": "content.shop", "key": "content.a + ': #'",
        });
        let expected = "kind: row\ntarget: content.shop\nkey: \"content.a + ': #'\"\nbatch_api:\n  \
                        command: [\"./a\",\"b c\"]\n  timeout: \"10s\"\nmax_batch: 7\n";
        assert_eq!(text(&policy), expected);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in "[ -~äß\\n\\t]{0,20}", word in "[a-zA-Z]{1,5}", number: i64) {
            let document = json!({"a": value, "b": {"c": word, "d": [number, value, null, true]}, "e": {}});
            let read: Value = yaml::read(Path::new("p"), &text(&document), "it").unwrap_or_else(|_| panic!("{document}"));
            prop_assert_eq!(read, document);
        }
    }
}
