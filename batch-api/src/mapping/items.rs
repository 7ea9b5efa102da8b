//! The items of an answer.

use fanfold::mapping::{Bindings, CompiledResponse, ItemList};
use serde_json::Value;

/// An item, and the list it is in.
pub(super) type Item<'a> = (&'a str, &'a Value);

/// The items of all lists of a body. `differs`: the answer says that outcomes differ, so a list must be there in any case.
/// One of the lists must be there, unless each is one that may be missing: then what it would stand
/// in must be there. So an answer that was not meant is no success.
pub(super) fn of<'a>(
    response: &'a CompiledResponse,
    body: &'a Value,
    bindings: &Bindings<'_>,
    differs: bool,
) -> Result<Vec<Item<'a>>, String> {
    let mut items: Vec<Item<'a>> = Vec::new();
    let mut found = false;
    let mut missing = true;
    for ItemList { name, steps, optional } in &response.lists {
        let (mut at, mut within) = (Some(body), None);
        for step in steps {
            let step = step.join(bindings).map_err(|error| error.to_string())?;
            within = at;
            at = match at {
                Some(Value::Object(fields)) => fields.get(&step),
                Some(Value::Array(values)) => step.parse().ok().and_then(|at: usize| values.get(at)),
                _ => None,
            };
        }
        match at {
            None | Some(Value::Null) => missing &= *optional && within.is_some_and(Value::is_object),
            Some(Value::Array(values)) => {
                found = true;
                items.extend(values.iter().map(|item| (name.as_str(), item)));
            }
            Some(_) => return Err(format!("has no list at `{name}`, but another value")),
        }
    }
    if found || (missing && !differs) {
        return Ok(items);
    }
    let names: Vec<String> = response.lists.iter().map(|list| format!("`{}`", list.name)).collect();
    Err(format!("has no list at {}", names.join(" or ")))
}
