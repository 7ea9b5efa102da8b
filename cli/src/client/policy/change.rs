//! How a policy would change, field by field.

use std::collections::BTreeMap;

use fanfold::policy::Policy;
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;

/// How a policy in a file differs from the one in the stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Difference {
    pub(super) kind: String,
    pub(super) change: Sort,
    /// The fields that differ.
    pub(super) fields: Vec<Field>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sort {
    /// The stack has no policy of the kind.
    New,
    /// The stack has another policy of the kind.
    Changed,
    /// It is the same.
    Same,
}

/// A field that differs; a value that is absent is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Field {
    pub(super) field: String,
    pub(super) from: Option<Value>,
    pub(super) to: Option<Value>,
}

impl Difference {
    /// What storing `wanted` would change. Fields that were left out have their defaults in both.
    pub(super) fn between(stored: Option<&Value>, wanted: &Policy) -> Result<Self, Failure> {
        let kind = wanted.kind.clone();
        let wanted = document(wanted)?;
        let Some(stored) = stored else { return Ok(Self { kind, change: Sort::New, fields: Vec::new() }) };
        let (before, after) = (flat(stored), flat(&wanted));
        let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let field = |name: &String| {
            let (from, to) = (before.get(name).copied().cloned(), after.get(name).copied().cloned());
            (from != to).then(|| Field { field: name.clone(), from, to })
        };
        let fields: Vec<Field> = names.into_iter().filter_map(field).collect();
        let change = if fields.is_empty() { Sort::Same } else { Sort::Changed };
        Ok(Self { kind, change, fields })
    }

    /// As text, in several lines.
    pub(super) fn text(&self) -> String {
        let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "(none)".to_owned(), Value::to_string);
        let head = match self.change {
            Sort::New => format!("{}: new", self.kind),
            Sort::Same => format!("{}: the same", self.kind),
            Sort::Changed => format!("{}: changed", self.kind),
        };
        let line = |field: &Field| format!("  {}: {} -> {}", field.field, shown(&field.from), shown(&field.to));
        std::iter::once(head).chain(self.fields.iter().map(line)).collect::<Vec<_>>().join("\n")
    }
}

/// A policy as the API takes it.
pub(super) fn document(policy: &Policy) -> Result<Value, Failure> {
    serde_json::to_value(policy).map_err(|error| Failure::Internal(error.to_string()))
}

/// The fields of a document by their dotted paths; a list is one value.
fn flat(value: &Value) -> BTreeMap<String, &Value> {
    fn add<'a>(path: &str, value: &'a Value, fields: &mut BTreeMap<String, &'a Value>) {
        match value {
            Value::Object(inner) => {
                for (name, value) in inner {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    add(&path, value, fields);
                }
            }
            value => drop(fields.insert(path.to_owned(), value)),
        }
    }
    let mut fields = BTreeMap::new();
    add("", value, &mut fields);
    fields
}

/// Several differences, as one document.
pub(super) fn documents(differences: &[Difference]) -> Value {
    json!({"policies": differences})
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn policy(changes: Value) -> Policy {
        let mut value = json!({"kind": "row", "target": "content.a", "batch_api": {"url": "https://example.com/"}});
        value.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn fields_that_differ_are_named_with_both_values() {
        let before = document(&policy(json!({"max_batch": 7, "key": "content.k"}))).unwrap();
        let wanted = policy(json!({"weight": "1", "max_weight": 2, "batch_api": {"command": ["a", "b"]}}));
        let difference = Difference::between(Some(&before), &wanted).unwrap();
        assert_eq!(difference.change, Sort::Changed);
        let text = difference.text();
        let expected = "row: changed\n  batch_api.command: (none) -> [\"a\",\"b\"]\n  \
                        batch_api.url: \"https://example.com/\" -> (none)\n  key: \"content.k\" -> (none)\n  \
                        max_batch: 7 -> 100\n  max_weight: (none) -> 2\n  weight: (none) -> \"1\"";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_left_out_is_its_default() {
        let stored = document(&policy(json!({"max_batch": 100, "backoff": {"base": "1s"}}))).unwrap();
        let difference = Difference::between(Some(&stored), &policy(json!({}))).unwrap();
        assert_eq!((difference.change, difference.text().as_str()), (Sort::Same, "row: the same"));
        assert_eq!(Difference::between(None, &policy(json!({}))).unwrap().change, Sort::New);
    }
}
