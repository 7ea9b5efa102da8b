//! The items of an answer.

use fanfold::mapping::{Bindings, CompiledResponse};
use serde_json::Value;

/// An item, and the list it is in.
pub(super) type Item<'a> = (&'a str, &'a Value);

/// The items of all lists of a body. A list that is missing or null is empty; none at all is a problem unless items are exceptions.
pub(super) fn of<'a>(
    response: &'a CompiledResponse,
    body: &'a Value,
    bindings: &Bindings<'_>,
) -> Result<Vec<Item<'a>>, String> {
    let mut items: Vec<Item<'a>> = Vec::new();
    let mut found = false;
    for (name, steps) in &response.lists {
        let mut at = Some(body);
        for step in steps {
            let step = step.join(bindings).map_err(|error| error.to_string())?;
            at = match at {
                Some(Value::Object(fields)) => fields.get(&step),
                Some(Value::Array(values)) => step.parse().ok().and_then(|at: usize| values.get(at)),
                _ => None,
            };
        }
        match at {
            None | Some(Value::Null) => {}
            Some(Value::Array(values)) => {
                found = true;
                items.extend(values.iter().map(|item| (name.as_str(), item)));
            }
            Some(_) => return Err(format!("has no list at `{name}`, but another value")),
        }
    }
    if found || response.matching.lists_exceptions() && body.is_object() {
        return Ok(items);
    }
    let names: Vec<String> = response.lists.iter().map(|(name, _)| format!("`{name}`")).collect();
    Err(format!("has no list at {}", names.join(" or ")))
}
