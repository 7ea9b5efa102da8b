//! Texts from outside, shortened and made safe to show.

use std::borrow::Cow;
use std::error::Error;
use std::ops::RangeInclusive;

use crate::limits::NAME_SHOWN_MAX;

/// Stands for what was left out.
const GAP: &str = " … ";

/// Stands for what was left out before or after.
const CUT: &str = "…";

/// Bytes that are read for each byte shown, since much of the text may be white space.
const SPARSE: usize = 8;

/// A byte order mark, which some put before UTF-8.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// Characters without width, and those that change the direction of the text after them.
const UNSEEN: [RangeInclusive<char>; 5] = [
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
];

/// The beginning and the end of a text of more than `most` bytes: the end of a message says what is allowed.
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

/// The beginning of a name or id, as much as a message shows of it: 120 characters.
#[must_use]
pub fn start(text: &str) -> &str {
    text.char_indices().nth(NAME_SHOWN_MAX).map_or(text, |(at, _)| &text[..at])
}

/// An error and what caused it, outermost first.
pub fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// The same as a text.
#[must_use]
pub fn causes(error: &dyn Error) -> String {
    let causes = error.source().into_iter().flat_map(chain).map(ToString::to_string);
    std::iter::once(error.to_string()).chain(causes).collect::<Vec<_>>().join(": ")
}

/// The beginning of a received text, as one line of at most `most` bytes (3 or more).
#[must_use]
pub fn beginning(bytes: &[u8], most: usize) -> String {
    let read = &bytes[..bytes.len().min(most * SPARSE)];
    let mut line = line(read);
    if line.len() > most || read.len() < bytes.len() {
        line.truncate(line.floor_char_boundary(most.saturating_sub(CUT.len())));
        line.push_str(CUT);
    }
    line
}

/// The end of a received text, as one line of at most `most` bytes (3 or more).
#[must_use]
pub fn end(bytes: &[u8], most: usize) -> String {
    let read = &bytes[bytes.len().saturating_sub(most * SPARSE)..];
    let mut line = line(read);
    if line.len() > most || read.len() < bytes.len() {
        let from = line.len().saturating_sub(most.saturating_sub(CUT.len()));
        line.replace_range(..line.ceil_char_boundary(from), CUT);
    }
    line
}

/// One line: a blank for any white space, `\u{fffd}` for what is not UTF-8, and an escape for what does not show, or changes
/// how the rest is shown.
fn line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut line = String::with_capacity(text.len());
    for word in text.trim_start_matches(BYTE_ORDER_MARK).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        for letter in word.chars() {
            if letter.is_control() || UNSEEN.iter().any(|unseen| unseen.contains(&letter)) {
                line.extend(letter.escape_unicode());
            } else {
                line.push(letter);
            }
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_was_sent_is_one_line() {
        let page = b"\xef\xbb\xbf<html>\r\n\t<body>  Not\xa0Found \x1b[31m\xe2\x80\xae</body>\n";
        let shown = "<html> <body> Not\u{fffd}Found \\u{1b}[31m\\u{202e}</body>";
        assert_eq!((beginning(page, 200), end(page, 200)), (shown.to_owned(), shown.to_owned()));
        assert_eq!(beginning(b" \n", 200), "");
        assert_eq!(beginning("éééééé".as_bytes(), 9), "ééé…");
        assert_eq!(end("éééééé".as_bytes(), 9), "…ééé");
        assert_eq!(end(b"Traceback:\n  line 1\nKeyError: 'id'\n", 20), "… 1 KeyError: 'id'");
    }

    proptest! {
        #[test]
        fn whatever_was_sent_is_short(bytes in prop::collection::vec(any::<u8>(), 0..600), most in 3_usize..80) {
            for shown in [beginning(&bytes, most), end(&bytes, most)] {
                prop_assert!(shown.len() <= most && !shown.contains(|letter: char| letter.is_control()), "{:?}", shown);
            }
        }
    }

    #[test]
    fn both_ends_stay() {
        assert_eq!(shorten("0123456789", 10), "0123456789");
        assert_eq!(shorten("0123456789a", 10), "01 … 9a");
        assert_eq!(shorten("ééééé", 9), "é … é");
    }

    #[test]
    fn a_name_is_shown_as_far_as_it_is_a_name() {
        let long = "é".repeat(NAME_SHOWN_MAX);
        assert_eq!([start(""), start("parcel"), start(&long)], ["", "parcel", &long]);
        assert_eq!(start(&format!("{long}x")), long);
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
