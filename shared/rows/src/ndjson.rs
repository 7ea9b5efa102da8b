//! NDJSON: one JSON value a line. Empty lines are skipped.

use serde::de::IgnoredAny;
use serde_json::Value;

/// A line is not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not JSON: {problem}")]
pub struct NotJson {
    problem: String,
    /// Where in the line, from 1.
    pub column: usize,
}

/// The value in a line; none if it is empty. `first`: it is the first line, which a byte order mark may begin.
#[must_use]
pub fn row(line: &[u8], first: bool) -> Option<Result<Value, NotJson>> {
    let line = if first { crate::without_mark(line) } else { line };
    if line.trim_ascii().is_empty() {
        return None;
    }
    Some(serde_json::from_slice(line).map_err(|error| {
        let message = error.to_string();
        let problem = message.split(" at line ").next().unwrap_or(&message).to_owned();
        NotJson { problem, column: error.column() }
    }))
}

/// Whether a line is only the beginning of a JSON value.
#[must_use]
pub fn is_spread(line: &[u8]) -> bool {
    let line = crate::without_mark(line).trim_ascii();
    !line.is_empty() && serde_json::from_slice::<IgnoredAny>(line).is_err_and(|error| error.is_eof())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_a_value() {
        assert_eq!(row(b" {\"a\": 1}\r\n", false), Some(Ok(json!({"a": 1}))));
        assert_eq!(row(b"\xef\xbb\xbf7\n", true), Some(Ok(json!(7))));
        assert_eq!(row(b" \r\n", false), None);
        let wrong = row(b"{\"a\": }\n", false);
        assert!(matches!(&wrong, Some(Err(error)) if error.column == 7), "{wrong:?}");
        assert_eq!(
            wrong.and_then(Result::err).map(|error| error.to_string()).as_deref(),
            Some("is not JSON: expected value")
        );
        assert!(is_spread(b"{\n") && is_spread(b"[1,") && !is_spread(b"{}") && !is_spread(b"") && !is_spread(b"x"));
    }
}
