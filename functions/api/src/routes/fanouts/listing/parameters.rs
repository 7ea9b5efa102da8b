//! What `GET /fanouts` is asked.

use std::fmt::Write;

use fanfold::limits::{FANOUTS_PER_PAGE_MAX, USER_KEY_BYTES_MAX};
use fanfold::store::fanouts::FanoutState;
use fanfold_http::{Choice, QueryParameter, decoded};

/// `?user_key=…`
pub(super) struct UserKey;

impl QueryParameter for UserKey {
    const NAME: &str = "user_key";
    const ABOUT: &str = "Only fan-outs with exactly this user key.";
    type Value = String;

    fn read(text: &str) -> Option<String> {
        decoded(text).filter(|key| key.len() <= USER_KEY_BYTES_MAX)
    }

    fn allowed() -> String {
        format!("percent-encoded UTF-8 of at most {USER_KEY_BYTES_MAX} bytes")
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "maxLength": USER_KEY_BYTES_MAX, "examples": ["order 4711"]})
    }
}

/// `?user_key_prefix=…`
pub(super) struct Prefix;

impl QueryParameter for Prefix {
    const NAME: &str = "user_key_prefix";
    const ABOUT: &str = "Only fan-outs whose user keys begin with this.";
    type Value = String;

    fn read(text: &str) -> Option<String> {
        decoded(text).filter(|prefix| (1..=USER_KEY_BYTES_MAX).contains(&prefix.len()))
    }

    fn allowed() -> String {
        format!("percent-encoded UTF-8 of 1 to {USER_KEY_BYTES_MAX} bytes")
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "minLength": 1, "maxLength": USER_KEY_BYTES_MAX, "examples": ["order "]})
    }
}

/// `?state=…`
pub(super) struct InStates;

impl QueryParameter for InStates {
    const NAME: &str = "state";
    const ABOUT: &str =
        "Only fan-outs in one of these states, separated by commas: `open,sealed` lists what is not finished.";
    type Value = Vec<FanoutState>;

    fn read(text: &str) -> Option<Vec<FanoutState>> {
        // A comma may be percent-encoded, as some do it.
        let states: Vec<FanoutState> =
            decoded(text)?.split(',').map(|state| state.parse().ok()).collect::<Option<_>>()?;
        (states.len() <= FanoutState::ALL.len()).then_some(states)
    }

    fn allowed() -> String {
        format!("`{}`, or several of them separated by commas,", FanoutState::ALL.map(FanoutState::as_str).join("`, `"))
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        let states = FanoutState::ALL.map(FanoutState::as_str).join("|");
        serde_json::json!({"type": "string", "pattern": format!("^({states})(,({states})){{0,5}}$"), "examples": ["open,sealed"]})
    }
}

/// `?order=…`
pub(super) struct Order;

impl Order {
    pub(super) const OLDEST: &str = "oldest";
}

impl Choice for Order {
    const NAME: &str = "order";
    const ALLOWED: &[&str] = &["newest", Self::OLDEST];
    const ABOUT: &str = "Which come first; by default the newest.";
}

/// `?limit=…`
pub(super) struct Limit;

impl QueryParameter for Limit {
    const NAME: &str = "limit";
    const ABOUT: &str = "How many fan-outs a page examines; by default 100. The page shows those that match.";
    type Value = usize;

    fn read(text: &str) -> Option<usize> {
        let limit = text.parse().ok().filter(|limit: &usize| limit.to_string() == text)?;
        (1..=FANOUTS_PER_PAGE_MAX).contains(&limit).then_some(limit)
    }

    fn allowed() -> String {
        format!("1 to {FANOUTS_PER_PAGE_MAX}")
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "integer", "minimum": 1, "maximum": FANOUTS_PER_PAGE_MAX})
    }
}

/// `?after=…`, as a `next` has it.
pub(super) struct Cursor;

impl QueryParameter for Cursor {
    const NAME: &str = "after";
    const ABOUT: &str = "Where the previous page ended: the value in its `next`.";
    type Value = Vec<u8>;

    fn read(text: &str) -> Option<Vec<u8>> {
        let canonical = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        let pairs = text.as_bytes().chunks(2).map(|pair| {
            let digits = std::str::from_utf8(pair).ok().filter(|digits| digits.len() == 2)?;
            u8::from_str_radix(digits, 16).ok()
        });
        if canonical { pairs.collect() } else { None }
    }

    fn allowed() -> String {
        "the value in the `next` of the previous page".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "pattern": "^([0-9a-f]{2})+$"})
    }
}

/// A sort key as `after` has it.
pub(super) fn cursor(sort_key: &[u8]) -> String {
    let mut cursor = String::with_capacity(2 * sort_key.len());
    for byte in sort_key {
        // Writing to a text cannot fail.
        let _ = write!(cursor, "{byte:02x}");
    }
    cursor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_a_list() {
        assert_eq!(InStates::read("open,sealed"), Some(vec![FanoutState::Open, FanoutState::Sealed]));
        assert_eq!(InStates::read("failed%2cexpired"), Some(vec![FanoutState::Failed, FanoutState::Expired]));
        for text in ["", "done", "open,", "open, sealed", "Open", "open;sealed", &["open"; 7].join(",")] {
            assert_eq!(InStates::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(Cursor::read(&cursor(&bytes)), Some(bytes));
        for text in ["0", "0g", "AB", "+1", "00 1"] {
            assert_eq!(Cursor::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_limit_has_one_form() {
        assert_eq!((Limit::read("1"), Limit::read("100")), (Some(1), Some(100)));
        assert_eq!((Limit::read("0"), Limit::read("101"), Limit::read("01")), (None, None, None));
    }
}
