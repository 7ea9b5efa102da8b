//! Where rows of CSV begin, and what is wrong with their quotes. Readers of CSV accept a quote that is not closed, and text
//! behind a closing one: they take what follows as a part of the field, however many rows that is.

use std::collections::VecDeque;
use std::fmt;

/// Bytes of a field in quotes from which on it counts as not closed: a row is kept in memory until it ends, and no task may
/// be that large.
pub const QUOTED_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// What is wrong with the quotes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuoteFault {
    /// The line in which the quote is opened, from 1.
    pub line: u64,
    /// The field that it opens, from 1.
    pub field: u64,
    /// What is wrong with it.
    pub problem: QuoteProblem,
}

/// What is wrong with a quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuoteProblem {
    /// It is not closed.
    NotClosed,
    /// It is not closed within [`QUOTED_BYTES_MAX`].
    TooLong,
    /// Something else than the end of the field follows the quote that closes it, so many lines below.
    TextFollows {
        /// 0 for a field that is closed in its own line.
        lines: u64,
    },
}

impl fmt::Display for QuoteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "field {}: ", self.field)?;
        match self.problem {
            QuoteProblem::NotClosed => f.write_str("a quote is opened and not closed"),
            QuoteProblem::TooLong => write!(f, "a quote is opened and not closed within {QUOTED_BYTES_MAX} bytes"),
            QuoteProblem::TextFollows { lines: 0 } => f.write_str("text follows the closing quote"),
            QuoteProblem::TextFollows { lines: 1 } => {
                f.write_str("text follows the closing quote, which is in the next line")
            }
            QuoteProblem::TextFollows { lines } => {
                write!(f, "text follows the closing quote, which is {lines} lines below")
            }
        }
    }
}

/// A row that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The line in which it begins, from 1. Lines end with a line feed.
    pub line: u64,
    /// What is wrong with its quotes first.
    pub fault: Option<QuoteFault>,
}

/// What is wrong with the quotes of one row of an object, without its line end. A carriage return in it is text.
pub(crate) fn of_row(row: &[u8], delimiter: u8) -> Option<QuoteFault> {
    if !row.contains(&b'"') {
        return None;
    }
    let (mut quotes, mut ended) = (Quotes { of_file: false, ..Quotes::new(delimiter) }, VecDeque::new());
    quotes.read(row, &mut ended);
    ended.extend(quotes.finish());
    ended.into_iter().find_map(|row| row.fault)
}

/// Where in a row the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// At its beginning, or at a line end before it.
    Row,
    /// At the beginning of a further field.
    Field,
    /// In a field without quotes.
    Plain,
    /// In a field with quotes.
    Quoted,
    /// Behind a quote within such a field, which closes it unless another quote follows.
    Quote,
}

/// Follows the bytes of a file in the way of its reader: a quote opens a field only as its first byte, and a line feed, a
/// carriage return or both end a row.
#[derive(Clone, Debug)]
pub struct Quotes {
    delimiter: u8,
    /// Whether a carriage return ends a row, and a byte order mark may begin the first.
    of_file: bool,
    begun: bool,
    at: At,
    line: u64,
    /// The line in which the present row begins.
    begin: u64,
    field: u64,
    /// The line in which the present quotes are opened, and the bytes in them.
    opened: u64,
    quoted: u64,
    fault: Option<QuoteFault>,
}

impl Quotes {
    /// Begins with a file.
    #[must_use]
    pub fn new(delimiter: u8) -> Self {
        Self {
            delimiter,
            of_file: true,
            begun: false,
            at: At::Row,
            line: 1,
            begin: 1,
            field: 1,
            opened: 1,
            quoted: 0,
            fault: None,
        }
    }

    /// The same, from a row on that is in this line, or in one of the next if line ends are before it.
    #[must_use]
    pub fn from_line(&self, line: u64) -> Self {
        Self { of_file: self.of_file, line, ..Self::new(self.delimiter) }
    }

    /// Reads the next bytes, and adds the rows that end in them.
    pub fn read(&mut self, bytes: &[u8], ended: &mut VecDeque<Ended>) {
        let bytes = if self.of_file && !self.begun { crate::without_mark(bytes) } else { bytes };
        self.begun = true;
        for byte in bytes {
            let ends = *byte == b'\n' || *byte == b'\r' && self.of_file;
            if ends && self.at != At::Quoted {
                ended.extend(self.end());
            } else {
                self.at = self.next(*byte);
            }
            self.line += u64::from(*byte == b'\n');
        }
    }

    /// Whether a field in quotes is longer than any may be.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        self.at == At::Quoted && self.quoted > QUOTED_BYTES_MAX
    }

    /// Nothing follows: the last row ends, if there is one.
    pub fn finish(&mut self) -> Option<Ended> {
        if self.at == At::Quoted {
            self.find(if self.is_too_long() { QuoteProblem::TooLong } else { QuoteProblem::NotClosed });
        }
        self.end()
    }

    /// Ends the present row, if there is one.
    fn end(&mut self) -> Option<Ended> {
        let at = std::mem::replace(&mut self.at, At::Row);
        (at != At::Row).then(|| Ended { line: self.begin, fault: self.fault.take() })
    }

    /// Where the byte behind this one is, which ends no row.
    fn next(&mut self, byte: u8) -> At {
        if self.at == At::Row {
            (self.begin, self.field) = (self.line, 1);
        }
        match (self.at, byte) {
            (At::Quoted, b'"') => At::Quote,
            (At::Quoted, _) => {
                self.quoted += 1;
                At::Quoted
            }
            (At::Quote, b'"') => At::Quoted,
            (_, byte) if byte == self.delimiter => {
                self.field += 1;
                At::Field
            }
            (At::Row | At::Field, b'"') => {
                (self.opened, self.quoted) = (self.line, 0);
                At::Quoted
            }
            (At::Quote, _) => {
                self.find(QuoteProblem::TextFollows { lines: self.line - self.opened });
                At::Plain
            }
            _ => At::Plain,
        }
    }

    /// Only the first fault of a row is kept: what is behind it may be taken in the wrong way.
    fn find(&mut self, problem: QuoteProblem) {
        if self.fault.is_none() {
            self.fault = Some(QuoteFault { line: self.opened, field: self.field, problem });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use csv::{QuoteStyle, ReaderBuilder, Terminator, WriterBuilder};
    use proptest::prelude::*;

    use super::*;

    /// The rows of a text that is read in chunks.
    fn rows(text: &[u8], delimiter: u8, chunk: usize) -> Vec<Ended> {
        let (mut quotes, mut ended) = (Quotes::new(delimiter), VecDeque::new());
        text.chunks(chunk).for_each(|bytes| quotes.read(bytes, &mut ended));
        ended.extend(quotes.finish());
        assert_eq!(quotes.finish(), None, "nothing is left");
        ended.into()
    }

    /// What is wrong with a text, with lines.
    fn faults(text: &str, delimiter: u8) -> Vec<String> {
        let rows = rows(text.as_bytes(), delimiter, 1_000);
        rows.iter().filter_map(|row| row.fault).map(|fault| format!("{}: {fault}", fault.line)).collect()
    }

    #[test]
    fn a_quote_that_is_not_closed_is_found_where_it_is_opened() {
        let not_closed = "3: field 2: a quote is opened and not closed";
        for text in [
            "id,note\n1,ok\n2,\"ok\n3,ok\n",
            "id,note\r\n1,ok\r\n2,\"ok\r\n3,ok",
            "a,b\n1,2\n3,\"",
            "a,b\n1,2\n3,\"\"\"",
        ] {
            assert_eq!(faults(text, b','), [not_closed], "{text}");
        }
        // The row begins with another line.
        assert_eq!(faults("\"a\nb\",\"c\n", b','), ["2: field 2: a quote is opened and not closed"]);
    }

    #[test]
    fn text_behind_a_closing_quote_is_found() {
        let text_follows = "2: field 2: text follows the closing quote";
        for text in ["a;b\n1;\"a\"b\n2;c\n", "a;b\r\n1;\"a\" \r\n", "a;b\n1;\"\"a", "a;b\n1;\"a\"b;\"c\"d\n2;\"x\"\n"] {
            assert_eq!(faults(text, b';'), [text_follows], "{text}");
        }
        assert_eq!(faults("\u{feff}\"a\"b,c\r1,2\r", b','), ["1: field 1: text follows the closing quote"]);
        // Two stray quotes of a middle column, and what is between them.
        let merged = |rows: usize| format!("a,b,c\n1,\"x,y\n{}2,\"x,y\n3,x,y\n", "0,x,y\n".repeat(rows));
        let below = |rows| faults(&merged(rows), b',');
        assert_eq!(below(0), ["2: field 2: text follows the closing quote, which is in the next line"]);
        assert_eq!(below(300), ["2: field 2: text follows the closing quote, which is 301 lines below"]);
    }

    #[test]
    fn good_quotes_and_those_within_a_plain_field_are_no_faults() {
        for text in [
            "",
            "\u{feff}\"a\",\"b\"\r\n\"x\r\n\"\"y\"\"\",\"\"\r\n",
            "a,b\n5\" pipe, \"x\" \n\n,\"\"",
            "\"a\",b\r\"1\",2\r",
            "a;\"b\"\n",
        ] {
            assert_eq!(faults(text, b','), [""; 0], "{text}");
        }
    }

    #[test]
    fn rows_have_the_lines_in_which_they_begin() {
        let lines = |text: &str| rows(text.as_bytes(), b',', 1_000).iter().map(|row| row.line).collect::<Vec<_>>();
        assert_eq!(lines("\u{feff}a,b\r\n1,\"x\r\ny\"\r\n\r\n2,3\r\n"), [1, 2, 5]);
        assert_eq!(lines("a\n1\n\n\n2"), [1, 2, 5]);
        assert_eq!(lines("\n\n"), [0; 0]);
        let mut ended = VecDeque::new();
        let mut quotes = Quotes::new(b',').from_line(7);
        quotes.read(b"\n\r\n1,2\n", &mut ended);
        assert_eq!(ended, [Ended { line: 9, fault: None }]);
    }

    #[test]
    fn a_carriage_return_in_a_row_of_an_object_is_text() {
        let fault = |row: &str| of_row(row.as_bytes(), b',').map(|fault| fault.to_string());
        assert_eq!(fault("a\rb,\"c\"").as_deref(), None);
        assert_eq!(fault("\"a\"\rb,c").as_deref(), Some("field 1: text follows the closing quote"));
        assert_eq!(fault("\u{feff}\"a,b").as_deref(), None, "the mark is the first byte of the field");
    }

    #[test]
    fn quotes_without_an_end_are_given_up() {
        let (mut quotes, mut ended, chunk) = (Quotes::new(b','), VecDeque::new(), vec![b'x'; 1_024 * 1_024]);
        quotes.read(b"a\n\"", &mut ended);
        for _ in 0..64 {
            quotes.read(&chunk, &mut ended);
            assert!(!quotes.is_too_long());
        }
        quotes.read(b"x", &mut ended);
        assert!(quotes.is_too_long());
        let fault = quotes.finish().unwrap().fault.unwrap();
        assert_eq!(fault.to_string(), "field 1: a quote is opened and not closed within 67108864 bytes");
    }

    proptest! {
        /// As many rows as the reader sees, whatever the quotes and however the bytes come.
        #[test]
        fn rows_end_where_the_reader_ends_them(text in "[a,\"\r\n]{0,40}", chunk in 1_usize..8) {
            let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
            let found = rows(text.as_bytes(), b',', chunk);
            prop_assert_eq!(found.len(), reader.byte_records().count());
            prop_assert_eq!(found, rows(text.as_bytes(), b',', 1_000));
        }

        /// What a program writes has no faults.
        #[test]
        fn what_is_quoted_well_has_no_fault(
            fields in prop::collection::vec(("[a,\"\r\n]{0,6}", "[a,\"\r\n]{0,6}"), 0..9), always: bool,
        ) {
            let style = if always { QuoteStyle::Always } else { QuoteStyle::Necessary };
            let mut writer =
                WriterBuilder::new().quote_style(style).terminator(Terminator::CRLF).from_writer(Vec::new());
            for (one, two) in &fields {
                writer.write_record([one, two]).unwrap();
            }
            let text = writer.into_inner().unwrap();
            let found = rows(&text, b',', 1_000);
            prop_assert_eq!(found.len(), fields.len());
            prop_assert!(found.iter().all(|row| row.fault.is_none()), "{:?}", String::from_utf8_lossy(&text));
        }
    }
}
