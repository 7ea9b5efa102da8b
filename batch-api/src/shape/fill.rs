//! Filling in answers.

use serde_json::{Map, Value};

/// A form with values in the places of `${NAME}`. A text that is one name has the value itself. A field whose name ends with `?` is
/// left out if its value is null or an empty list.
pub(super) fn fill(form: &Value, values: &Map<String, Value>) -> Value {
    match form {
        Value::String(text) => fill_text(text, values),
        Value::Array(forms) => forms.iter().map(|form| fill(form, values)).collect(),
        Value::Object(fields) => {
            let field = |(name, form): (&String, &Value)| {
                let value = fill(form, values);
                let (name, optional) = name.strip_suffix('?').map_or((name.as_str(), false), |name| (name, true));
                let absent = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
                (!optional || !absent).then(|| (as_text(&fill_text(name, values)), value))
            };
            Value::Object(fields.iter().filter_map(field).collect())
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, values: &Map<String, Value>) -> Value {
    let value = |name: &str| value(name, values);
    if let Some(name) =
        text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).filter(|name| !name.contains('}'))
    {
        return value(name);
    }
    let mut parts = text.split("${");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        filled.push_str(&as_text(&value(name)));
        filled.push_str(rest);
    }
    filled.into()
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The value of a name, or of a field within the value of its first part: `content.id`.
fn value(name: &str, values: &Map<String, Value>) -> Value {
    if let Some(value) = values.get(name) {
        return value.clone();
    }
    let mut parts = name.split('.');
    let first = parts.next().and_then(|first| values.get(first));
    parts.fold(first, |value, part| value?.get(part)).cloned().unwrap_or_default()
}
