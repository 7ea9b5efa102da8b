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
        Self { of_file: self.of_file, begun: true, line, ..Self::new(self.delimiter) }
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
mod tests;
