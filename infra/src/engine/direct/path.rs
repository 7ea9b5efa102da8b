//! Where in an item an attribute is.

use std::collections::HashMap;

use dynoxide::types::{AttributeValue, Item};

/// Names from the item down. In a plan, those that begin with `#` stand for others.
pub(super) type Path = Vec<String>;

/// The names that stand for others.
pub(super) type Names = HashMap<String, String>;

/// The names of a path of a plan.
pub(super) fn resolve<'a>(path: &'a Path, names: &'a Names) -> Option<Vec<&'a str>> {
    let name = |part: &'a String| match part.starts_with('#') {
        true => names.get(part).map(String::as_str),
        false => Some(part.as_str()),
    };
    path.iter().map(name).collect()
}

/// What is there.
pub(super) fn get<'a>(item: &'a Item, path: &[&str]) -> Option<&'a AttributeValue> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(item.get(*first)?, |value, name| match value {
        AttributeValue::M(map) => map.get(*name),
        _ => None,
    })
}

/// The map that holds the end of a path, with the path's last name; none if it is not there.
pub(super) fn holder<'a, 'p>(
    item: &'a mut Item,
    path: &[&'p str],
) -> Option<(&'a mut HashMap<String, AttributeValue>, &'p str)> {
    let (last, before) = path.split_last()?;
    let holder = before.iter().try_fold(item, |map, name| match map.get_mut(*name) {
        Some(AttributeValue::M(inner)) => Some(inner),
        _ => None,
    })?;
    Some((holder, *last))
}
