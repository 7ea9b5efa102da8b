//! What an entry may have beside its outcome: an error's code, a delay, a result.

use std::time::Duration;

use fanfold::limits::{CODE_BYTES_MAX, ENTRY_BYTES_MAX};
use fanfold::text::beginning;

/// A code: a text, or any other JSON as it is written.
pub(crate) fn code(json: &str) -> Option<String> {
    let text = serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned());
    Some(beginning(text.as_bytes(), CODE_BYTES_MAX)).filter(|code| !code.is_empty())
}

/// How long a member asks to wait: seconds, as a number or as a text.
///
/// # Errors
/// It is something else. The outcome counts all the same.
pub(crate) fn retry_after(json: &str) -> Result<Duration, String> {
    let number = json.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(json);
    let seconds = number.trim().parse::<f64>().ok().filter(|seconds| *seconds >= 0.0);
    // More seconds than fit are a wait without end, too.
    seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)).ok_or_else(|| {
        let shown = beginning(json.as_bytes(), ENTRY_BYTES_MAX);
        format!("the answer's `retry_after` for it is {shown}, seconds from 0 on are expected")
    })
}

/// A result as it is kept: on one line. Line breaks within JSON stand between its values, never in them.
pub(super) fn result(json: &str) -> String {
    json.replace(['\r', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_short_text() {
        for (json, code_of_it) in [
            ("\"E42\"", Some("E42")),
            ("422", Some("422")),
            ("{\"a\": 1}", Some("{\"a\": 1}")),
            ("\"\"", None),
            ("\" \"", None),
        ] {
            assert_eq!(code(json).as_deref(), code_of_it, "{json}");
        }
        let long = code(&format!("\"{}\"", "x".repeat(1_000))).unwrap_or_default();
        assert!(long.len() <= CODE_BYTES_MAX && long.starts_with("xxx"), "{long}");
    }

    #[test]
    fn a_delay_is_in_seconds() {
        for (json, millis) in [("0", 0), ("1.5", 1_500), ("\"30\"", 30_000), ("86400", 86_400_000)] {
            assert_eq!(retry_after(json), Ok(Duration::from_millis(millis)), "{json}");
        }
        assert_eq!(retry_after("1e300"), Ok(Duration::MAX));
        for json in ["-1", "\"soon\"", "true", "{}", "[1]", "\"\"", "\"", "\"NaN\""] {
            let expected = format!("the answer's `retry_after` for it is {json}, seconds from 0 on are expected");
            assert_eq!(retry_after(json), Err(expected));
        }
    }

    #[test]
    fn a_result_is_one_line() {
        assert_eq!(result("{\r\n \"a\":\n\"b\\nc\"}"), "{   \"a\": \"b\\nc\"}");
    }
}
