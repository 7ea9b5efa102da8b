//! Schemas of durations.

use std::time::Duration;

use schemars::generate::Contract;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::limits::{
    ANSWERS_WITHIN_MAX, ANSWERS_WITHIN_MIN, BATCH_API_TIMEOUT_MAX, DELAY_MAX, DEV_ANSWERS_WITHIN_MAX, IDLE_LIMITS,
    RETRY_AFTER_MAX,
};

/// A duration as it is written out; other spellings of the units are read, too.
const SPAN: &str = "^[0-9]{1,9}(ns|us|ms|s|m|h|day)( [0-9]{1,9}(ns|us|ms|s|m|h|day))*$";

pub(crate) fn delay(generator: &mut SchemaGenerator) -> Schema {
    span(generator, 0, DELAY_MAX)
}

/// A time that a leader waits, or none.
pub(crate) fn optional_wait(generator: &mut SchemaGenerator) -> Schema {
    let span = span(generator, 1, DELAY_MAX);
    json_schema!({"anyOf": [span, {"type": "null"}]})
}

pub(crate) fn pause(generator: &mut SchemaGenerator) -> Schema {
    span(generator, 0, RETRY_AFTER_MAX)
}

pub(crate) fn timeout(generator: &mut SchemaGenerator) -> Schema {
    span(generator, 1, BATCH_API_TIMEOUT_MAX)
}

/// How long after a status 202 outcomes may come, or nothing.
pub(crate) fn answers_within(generator: &mut SchemaGenerator) -> Schema {
    let span = span(generator, ANSWERS_WITHIN_MIN.as_secs(), ANSWERS_WITHIN_MAX);
    json_schema!({"anyOf": [span, {"type": "null"}]})
}

/// How long after a call was sent to a dev session its outcomes may come.
#[must_use]
pub fn dev_answers_within(generator: &mut SchemaGenerator) -> Schema {
    span(generator, ANSWERS_WITHIN_MIN.as_secs(), DEV_ANSWERS_WITHIN_MAX)
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use proptest::string::string_regex;
    use regex::Regex;

    use super::*;
    use crate::policy::Span;

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
    }
}
