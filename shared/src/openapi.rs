//! Schemas that cannot be derived: ids, kinds, durations, URLs. Every number in them comes from [`crate::limits`].
//!
//! JSON Schema counts characters where limits count bytes. There the schema says both: `maxLength`, which no accepted value
//! exceeds, and `x-max-bytes`.

mod destinations;
mod ids;
mod notify_on;
mod sources;
mod spans;

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::limits::{KIND_BYTES_MAX, TOLERATED_FAILURES_MAX, WEIGHT_MAX};

pub(crate) use destinations::{callback_id, event_bus, optional_queue, optional_url, queue, task_token, url};
pub(crate) use ids::{fanout_id, mask};
pub use ids::{indices, item_cursor, record_cursor, task_id, uuid};
pub(crate) use notify_on::{ends, progress_percentages};
pub(crate) use sources::{bucket, function, object_keys, optional_function};
pub use spans::dev_answers_within;
pub(crate) use spans::{answers_within, delay, idle_limit, optional_wait, pause, timeout};

/// A number of failures, or a percentage.
pub(crate) fn tolerance(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [
        {"type": "integer", "minimum": 0, "maximum": TOLERATED_FAILURES_MAX},
        {"type": "string", "pattern": "^(100(\\.0{1,2})?|[0-9]{1,2}(\\.[0-9]{1,2})?)%$", "examples": ["5%", "0.25%"]},
        {"type": "null"},
    ]})
}

/// What a kind is made of.
pub(crate) const KIND_CHARACTERS: &str = "[A-Za-z0-9._-]+";

/// A kind.
#[must_use]
pub fn kind() -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": KIND_BYTES_MAX, "pattern": format!("^{KIND_CHARACTERS}$")})
}

/// The same, for a field of that name.
#[must_use]
pub fn kind_field(_: &mut SchemaGenerator) -> Schema {
    kind()
}

pub(crate) fn optional_kind(_: &mut SchemaGenerator) -> Schema {
    let mut schema = kind();
    schema.insert("type".to_owned(), vec!["string", "null"].into());
    schema
}

/// Any JSON: a template.
pub(crate) fn template(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// The name of a preset, if there is one.
pub(crate) fn preset(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<Option<&str>> = crate::mapping::preset_names().into_iter().map(Some).chain([None]).collect();
    json_schema!({"type": ["string", "null"], "enum": names})
}

/// The weight of a batch, if there is one.
pub(crate) fn optional_weight(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": WEIGHT_MAX})
}

/// A regular expression for the whole numbers below `limit`, without leading zeros.
fn below(limit: u32) -> String {
    let most = limit.saturating_sub(1).to_string();
    let digits = most.as_bytes();
    let mut choices = vec!["0".to_owned()];
    match digits.len() {
        1 => {}
        2 => choices.push("[1-9]".to_owned()),
        length => choices.push(format!("[1-9][0-9]{{0,{}}}", length - 2)),
    }
    // As long as the largest, and smaller at one digit for the first time.
    for (at, digit) in digits.iter().enumerate() {
        let least = if at == 0 { b'1' } else { b'0' };
        if *digit > least {
            let (head, tail) = (&most[..at], "[0-9]".repeat(digits.len() - at - 1));
            choices.push(format!("{head}[{}-{}]{tail}", char::from(least), char::from(digit - 1)));
        }
    }
    choices.push(most);
    choices.join("|")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod testing {
    use schemars::Schema;

    /// The regular expression of a schema.
    pub(super) fn pattern(schema: &Schema) -> String {
        schema.get("pattern").unwrap().as_str().unwrap().to_owned()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use regex::Regex;

    use super::testing::pattern;
    use super::*;
    use crate::limits::GROUP_ITEMS_MAX;
    use crate::policy::is_kind;

    #[test]
    fn numbers_below_a_limit_are_all_and_only_matched() {
        for limit in [1, 2, 9, 10, 11, 99, 100, 101, 110, 1_000, 1_024, GROUP_ITEMS_MAX, 10_000] {
            let regex = Regex::new(&format!("^({})$", below(limit))).unwrap();
            for number in 0..12_000 {
                assert_eq!(regex.is_match(&number.to_string()), number < limit, "{number} below {limit}");
            }
            assert!(!regex.is_match("00") && !regex.is_match("01") && !regex.is_match(""));
        }
    }

    #[test]
    fn kinds_are_matched_as_they_are_allowed() {
        let regex = Regex::new(&pattern(&kind())).unwrap();
        for letter in ('\0'..='\u{ff}').map(String::from) {
            assert_eq!(regex.is_match(&letter), is_kind(&letter), "{letter:?}");
        }
    }
}
