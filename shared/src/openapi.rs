//! Schemas that cannot be derived: ids, kinds, durations, URLs. Every number in them comes from [`crate::limits`].
//!
//! JSON Schema counts characters where limits count bytes. There the schema says both: `maxLength`, which nothing that is
//! accepted exceeds, and `x-max-bytes`.

mod notify_on;

use std::borrow::Cow;
use std::time::Duration;

use schemars::generate::Contract;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::ids::{GroupId, ItemId, TaskId};
use crate::lane::Lane;
use crate::limits::{
    BATCH_API_TIMEOUT_MAX, CALLBACK_ID_BYTES_MAX, DELAY_MAX, EVENT_BUS_BYTES_MAX, GROUP_ITEMS_MAX, IDLE_LIMITS,
    KIND_BYTES_MAX, MASK_BYTES_MAX, RETRY_AFTER_MAX, TASK_TOKEN_BYTES_MAX, TOLERATED_FAILURES_MAX, URL_BYTES_MAX,
    WEIGHT_MAX,
};
use crate::messages::{AckEntry, GroupMask};
use crate::policy::{CALLBACK_ID, EVENT_BUS, QUEUE, TASK_TOKEN};

pub(crate) use notify_on::{ends, progress_shares};

/// A UUID in its canonical form.
const UUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/// A duration as it is written out; other spellings of the units are read, too.
const SPAN: &str = "^[0-9]{1,9}(ns|us|ms|s|m|h|day)( [0-9]{1,9}(ns|us|ms|s|m|h|day))*$";

/// An id that a request names; in answers ids are plain UUIDs.
#[must_use]
pub fn uuid() -> Schema {
    json_schema!({"type": "string", "format": "uuid", "pattern": format!("^{UUID}$")})
}

/// A fan-out that a body names.
pub(crate) fn fanout_id(_: &mut SchemaGenerator) -> Schema {
    uuid()
}

/// A task's id in a path.
#[must_use]
pub fn task_id() -> Schema {
    json_schema!({"type": "string", "pattern": format!("^{UUID}(:{UUID}:({}))?$", below(GROUP_ITEMS_MAX))})
}

/// A number of failures, or a share.
pub(crate) fn tolerance(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [
        {"type": "integer", "minimum": 0, "maximum": TOLERATED_FAILURES_MAX},
        {"type": "string", "pattern": "^(100(\\.0{1,2})?|[0-9]{1,2}(\\.[0-9]{1,2})?)%$", "examples": ["5%", "0.25%"]},
        {"type": "null"},
    ]})
}

/// A kind.
#[must_use]
pub fn kind() -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": KIND_BYTES_MAX, "pattern": "^[A-Za-z0-9._-]+$"})
}

pub(crate) fn kind_field(_: &mut SchemaGenerator) -> Schema {
    kind()
}

/// Every URL that is accepted, and few others: of addresses in brackets it knows the characters only.
pub(crate) fn url(_: &mut SchemaGenerator) -> Schema {
    let letter = |also: &str| format!("([A-Za-z0-9._~!$&'()*+,;=:{also}-]|%[0-9A-Fa-f]{{2}})");
    let number = below(u32::from(u8::MAX) + 1);
    let label = "([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?\\.)*[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9_])?";
    let host = format!("({label}|({number})(\\.({number})){{3}}|\\[[0-9A-Fa-f:.]+\\])");
    let pattern = format!(
        "^(https://({}*@)?{host}|http://({}*@)?(localhost|127\\.0\\.0\\.1|\\[::1\\]))(:0*({}))?([/?]{}*)?$",
        letter(""),
        letter(""),
        below(u32::from(u16::MAX) + 1),
        letter("/?@"),
    );
    json_schema!({"type": "string", "format": "uri", "maxLength": URL_BYTES_MAX, "pattern": pattern})
}

pub(crate) fn optional_url(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = url(generator);
    schema.insert("type".to_owned(), vec!["string", "null"].into());
    schema
}

/// A text of these letters, with so many of them at most.
fn letters(pattern: &str, most: usize) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": most, "pattern": pattern})
}

pub(crate) fn queue(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": QUEUE})
}

pub(crate) fn event_bus(_: &mut SchemaGenerator) -> Schema {
    letters(EVENT_BUS, EVENT_BUS_BYTES_MAX)
}

pub(crate) fn task_token(_: &mut SchemaGenerator) -> Schema {
    letters(TASK_TOKEN, TASK_TOKEN_BYTES_MAX)
}

pub(crate) fn callback_id(_: &mut SchemaGenerator) -> Schema {
    letters(CALLBACK_ID, CALLBACK_ID_BYTES_MAX)
}

pub(crate) fn delay(generator: &mut SchemaGenerator) -> Schema {
    span(generator, 0, DELAY_MAX)
}

/// The weight of a batch, if there is one.
pub(crate) fn optional_weight(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": WEIGHT_MAX})
}

pub(crate) fn pause(generator: &mut SchemaGenerator) -> Schema {
    span(generator, 0, RETRY_AFTER_MAX)
}

pub(crate) fn timeout(generator: &mut SchemaGenerator) -> Schema {
    span(generator, 1, BATCH_API_TIMEOUT_MAX)
}

/// An optional idle limit of a fan-out.
pub(crate) fn idle_limit(generator: &mut SchemaGenerator) -> Schema {
    let span = span(generator, IDLE_LIMITS.start().as_secs(), *IDLE_LIMITS.end());
    json_schema!({"anyOf": [span, {"type": "null"}]})
}

/// A duration as it is returned, or as it may be given.
fn span(generator: &SchemaGenerator, least: u64, most: Duration) -> Schema {
    let text = json_schema!({"type": "string", "pattern": SPAN, "examples": ["500ms", "2s", "1m 30s"]});
    if *generator.contract() == Contract::Serialize {
        return text;
    }
    let seconds = json_schema!({"type": "integer", "minimum": least, "maximum": most.as_secs()});
    json_schema!({"anyOf": [text, seconds], "x-max-seconds": most.as_secs()})
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

impl JsonSchema for ItemId {
    fn schema_name() -> Cow<'static, str> {
        "ItemId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An item of a fan-out: `<fan-out>:<group>:<index>`.",
            "type": "string",
            "pattern": format!("^{UUID}:{UUID}:({})$", below(GROUP_ITEMS_MAX)),
        })
    }
}

/// A bitfield of a group's items.
pub(crate) fn mask(_: &mut SchemaGenerator) -> Schema {
    let most = MASK_BYTES_MAX.div_ceil(3) * 4;
    let pattern = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
    json_schema!({
        "type": "string", "contentEncoding": "base64", "maxLength": most, "pattern": pattern,
        "x-max-bytes-decoded": MASK_BYTES_MAX,
    })
}

/// Indices of a group's items, and ranges of them.
#[must_use]
pub fn indices(_: &mut SchemaGenerator) -> Schema {
    let number = below(GROUP_ITEMS_MAX);
    json_schema!({"type": "array", "items": {"type": "string", "pattern": format!("^({number})(-({number}))?$")}})
}

impl JsonSchema for GroupId {
    fn schema_name() -> Cow<'static, str> {
        "GroupId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An item group: `<fan-out>:<group>`.", "type": "string", "pattern": format!("^{UUID}:{UUID}$"),
        })
    }
}

impl JsonSchema for AckEntry {
    fn schema_name() -> Cow<'static, str> {
        "AckEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let number = below(GROUP_ITEMS_MAX);
        let range = json_schema!({
            "title": "ItemRange",
            "description": "Items that follow each other, both ends included: `<fan-out>:<group>:<first>-<last>`. The first is not \
                            beyond the last.",
            "type": "string",
            "pattern": format!("^{UUID}:{UUID}:({number})-({number})$"),
        });
        json_schema!({
            "description": "An item, a range of items, or a bitfield of a group's items.",
            "anyOf": [generator.subschema_for::<ItemId>(), range, generator.subschema_for::<GroupMask>()],
        })
    }
}

impl JsonSchema for TaskId {
    fn schema_name() -> Cow<'static, str> {
        "TaskId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = task_id();
        let description = "A task: a UUID, or the item's id if it is an item of a fan-out.";
        schema.insert("description".to_owned(), description.into());
        schema
    }
}

impl JsonSchema for Lane {
    fn schema_name() -> Cow<'static, str> {
        "Lane".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One partition of one target of one kind: `<kind>:<partition>:<target>`.",
            "type": "string",
            // A target may hold line breaks, which a dot would not match.
            "pattern": "^[A-Za-z0-9._-]+:[0-9]+:[\\s\\S]*$",
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use proptest::string::string_regex;
    use regex::Regex;
    use uuid::Uuid;

    use super::*;
    use crate::policy::{Destination, Span, is_kind};

    fn pattern(schema: &Schema) -> String {
        schema.get("pattern").unwrap().as_str().unwrap().to_owned()
    }

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

    #[test]
    fn ids_are_matched_as_they_are_read() {
        let regex = Regex::new(&pattern(&task_id())).unwrap();
        let id = Uuid::from_u128(0x0189_abcd_0000_7000_8000_0000_0000_0001).to_string();
        for (text, right) in [
            (id.clone(), true),
            (id.to_uppercase(), false),
            (id.replace('-', ""), false),
            (format!("{id}:{id}:7167"), true),
            (format!("{id}:{id}:7168"), false),
            (format!("{id}:{id}:07"), false),
            (format!("{id}:{id}"), false),
        ] {
            assert_eq!(regex.is_match(&text), right, "{text}");
            assert_eq!(text.parse::<TaskId>().is_ok(), right, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_a_span_may_be_is_read(text in string_regex(&SPAN.replace(['^', '$'], "")).unwrap()) {
            let json = serde_json::Value::String(text);
            prop_assert!(serde_json::from_value::<Span>(json).is_ok());
        }

        #[test]
        fn what_a_span_is_shown_as_is_matched(nanos in 0..=RETRY_AFTER_MAX.as_nanos()) {
            let span = Span(Duration::from_nanos(u64::try_from(nanos).unwrap()));
            prop_assert!(Regex::new(SPAN).unwrap().is_match(&span.to_string()), "{}", span);
        }

        /// Addresses in brackets aside, of which the pattern knows only the characters.
        #[test]
        fn what_a_url_may_be_is_accepted(url in string_regex(&url_letters()).unwrap()) {
            prop_assume!(!url.contains('['));
            prop_assert_eq!(Destination::Url(url.clone()).check("url"), Ok(()), "{}", url);
        }

        /// Right URLs, changed in one place.
        #[test]
        fn what_is_accepted_may_be_a_url(url in string_regex(&url_letters()).unwrap(), at: usize, letter: char) {
            let regex = Regex::new(&pattern(&super::url(&mut SchemaGenerator::default()))).unwrap();
            let mut letters: Vec<char> = url.chars().collect();
            let at = at % letters.len();
            letters[at] = letter;
            let replaced: String = letters.iter().collect();
            letters[at] = char::from(u8::try_from(u32::from(letter) % 128).unwrap());
            let ascii: String = letters.iter().collect();
            letters.remove(at);
            for url in [replaced, ascii, letters.into_iter().collect()] {
                let accepted = Destination::Url(url.clone()).check("url").is_ok();
                prop_assert!(!accepted || regex.is_match(&url), "{:?}", url);
            }
        }
    }

    fn url_letters() -> String {
        let pattern = pattern(&url(&mut SchemaGenerator::default()));
        pattern.trim_start_matches('^').trim_end_matches('$').to_owned()
    }
}
