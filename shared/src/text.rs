//! Texts from outside, as far as they are told on.

use std::borrow::Cow;

/// Stands for what was left out.
const GAP: &str = " … ";

/// The beginning and the end of a text of more than `most` bytes: what is allowed stands at the end of a message.
#[must_use]
pub fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let half = most.saturating_sub(GAP.len()) / 2;
    let head = &text[..text.floor_char_boundary(half)];
    let tail = &text[text.ceil_char_boundary(text.len() - half)..];
    Cow::Owned(format!("{head}{GAP}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_ends_stay() {
        assert_eq!(shorten("0123456789", 10), "0123456789");
        assert_eq!(shorten("0123456789a", 10), "01 … 9a");
        assert_eq!(shorten("ééééé", 9), "é … é");
    }

    proptest! {
        #[test]
        fn never_more_than_allowed(text in ".{0,60}", most in 5_usize..80) {
            let short = shorten(&text, most);
            prop_assert!(short.len() <= most);
            prop_assert!(text.len() > most || short == text);
            prop_assert_eq!(shorten(&short, most), short.as_ref());
        }
    }
}
