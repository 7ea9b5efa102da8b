//! A stream of JSON: a value per line (NDJSON).

use serde::de::DeserializeOwned;

use super::{JsonError, read};
use crate::text::BYTE_ORDER_MARK;

/// The lines of a body that are not empty, each with its number, from 1. Lines end with a line feed. White space at either end of
/// a line is left out, and so is a byte order mark before the first line.
pub fn lines(body: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut mark = [0; 3];
    let body = body.strip_prefix(BYTE_ORDER_MARK.encode_utf8(&mut mark).as_bytes()).unwrap_or(body);
    let lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    (1..).zip(lines).filter(|(_, line)| !line.is_empty())
}

/// Reads the object in a line. An error names no line, only the column.
///
/// # Errors
/// See [`read`].
pub fn read_line<T: DeserializeOwned>(line: &[u8]) -> Result<T, JsonError> {
    read(line).map_err(|error| match error {
        JsonError::Malformed(problem) => JsonError::Malformed(problem.replacen(" at line 1 column ", " at column ", 1)),
        other => other,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn numbered(body: &str) -> Vec<(u64, &str)> {
        lines(body.as_bytes()).map(|(number, line)| (number, std::str::from_utf8(line).unwrap())).collect()
    }

    #[test]
    fn what_is_empty_counts_and_is_left_out() {
        assert_eq!(numbered("{}\n\n \t\r\n{\"a\": 1}\r\n"), [(1, "{}"), (4, "{\"a\": 1}")]);
        assert_eq!(
            numbered("\u{feff}{}\n\u{feff}{}"),
            [(1, "{}"), (2, "\u{feff}{}")],
            "a mark is one only at the beginning"
        );
        for nothing in ["", "\n", " \r\n\n", "\u{feff}", "\u{feff}\n"] {
            assert!(numbered(nothing).is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn a_fault_is_placed_by_its_column() {
        let problem = |line: &[u8]| read_line::<Value>(line).unwrap_err().to_string();
        assert_eq!(problem(b"{\"a\": }"), "is not JSON: expected value at column 7");
        assert_eq!(problem(b"{\"a\": \"\xff\"}"), "is not JSON: byte 7 is not UTF-8");
        assert_eq!(problem(b"[]"), "is not an object, a JSON object is expected");
        assert!(problem(b"{} {}").starts_with("is not JSON: trailing characters at column 4"));
    }

    proptest! {
        /// Whatever comes, each line is one of the body's, in order, and holds no line feed.
        #[test]
        fn lines_are_those_of_the_body(body in prop::collection::vec(prop::sample::select(b" \n\r{}\"x\xef\xbb\xbf".to_vec()), 0..60)) {
            let all: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
            let mut before = 0;
            for (number, line) in lines(&body) {
                prop_assert!(number > before && !line.is_empty() && !line.contains(&b'\n'));
                let whole = all[usize::try_from(number).unwrap() - 1];
                prop_assert!(whole.windows(line.len()).any(|part| part == line));
                before = number;
            }
        }
    }
}
