//! Texts in queries, which are percent-encoded.

use std::fmt::Write;

/// The text of a query parameter: `%20` and `+` are a space. None: an escape is not one, or the text is not UTF-8.
#[must_use]
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    let digit = |bytes: &mut std::str::Bytes<'_>| {
        let digit = char::from(bytes.next()?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => digit(&mut bytes)? * 16 + digit(&mut bytes)?,
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

/// A text as a query has it.
#[must_use]
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
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
