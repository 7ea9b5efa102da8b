//! Texts in queries, which are percent-encoded.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

/// All but what RFC 3986 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The text of a query parameter: `%20` and `+` are a space. None: an escape is not one, or the text is not UTF-8.
#[must_use]
pub fn decoded(text: &str) -> Option<String> {
    // The library leaves `%zz` as it is.
    let is_escape =
        |after: &str| after.as_bytes().get(..2).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    let text = text.replace('+', " ");
    Some(percent_decode(text.as_bytes()).decode_utf8().ok()?.into_owned())
}

/// A text as a query has it.
#[must_use]
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for text in ["", "order 4711", "a&b=c+d%20", "größe/…\0\n", "-._~"] {
            assert_eq!(decoded(&encoded(text)).as_deref(), Some(text));
        }
        assert_eq!(encoded("a b&ü"), "a%20b%26%C3%BC");
        assert_eq!(decoded("a+b%2b%2B").as_deref(), Some("a b++"));
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for text in ["%", "%4", "%zz", "%+1", "%ff", "%C3"] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}
