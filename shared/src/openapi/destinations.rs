//! Schemas of URLs and other destinations of calls and notices.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::below;
use crate::limits::{CALLBACK_ID_BYTES_MAX, EVENT_BUS_BYTES_MAX, TASK_TOKEN_BYTES_MAX, URL_BYTES_MAX};
use crate::policy::{ANY_QUEUE, CALLBACK_ID, EVENT_BUS, QUEUE, TASK_TOKEN};

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

/// A queue that batches are sent to, or nothing.
pub(crate) fn optional_queue(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": ANY_QUEUE})
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use proptest::string::string_regex;
    use regex::Regex;

    use super::*;
    use crate::openapi::testing::pattern;
    use crate::policy::Destination;

    proptest! {
        /// Except addresses in brackets: the pattern knows only their characters.
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
