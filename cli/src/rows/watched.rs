//! An input of CSV whose bytes are looked at on their way to the reader. It does not say that a quote is not closed, nor in
//! which line a row begins that is behind an empty line, or behind a line that ends with a carriage return.

use std::collections::VecDeque;
use std::io::{self, Read, Seek, SeekFrom};

use fanfold_rows::quotes::{Ended, Quotes};

/// A row that the reader gets first where it goes on in the middle of a file. It would drop a byte order mark that
/// comes first, and there a mark is a part of its row. A line feed would be counted as the end of a line.
pub(super) const ROW_BEFORE: &[u8] = b"x\r";

/// An input of CSV.
#[derive(Debug)]
pub(super) struct Watched<R> {
    input: R,
    /// What is still to be read of [`ROW_BEFORE`].
    before: &'static [u8],
    quotes: Quotes,
    /// The rows that ended in what was read, until the reader gives them.
    rows: VecDeque<Ended>,
    ended: bool,
}

impl<R> Watched<R> {
    /// An input from its beginning on.
    pub(super) fn new(input: R, delimiter: u8) -> Self {
        Self { input, before: &[], quotes: Quotes::new(delimiter), rows: VecDeque::new(), ended: false }
    }

    /// What is known of the row that the reader gave last: it is asked for once per row.
    pub(super) fn next_row(&mut self) -> Option<Ended> {
        self.rows.pop_front()
    }

    /// The reader was moved to a row: to this line, or to line ends before it. It gets [`ROW_BEFORE`] first.
    pub(super) fn goes_on_at(&mut self, line: u64) {
        self.before = ROW_BEFORE;
        (self.quotes, self.ended) = (self.quotes.from_line(line), false);
        self.rows.clear();
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.before.is_empty() {
            return self.before.read(buffer);
        }
        if self.ended {
            return Ok(0);
        }
        let read = self.input.read(buffer)?;
        self.quotes.read(&buffer[..read], &mut self.rows);
        // The reader would keep all that is behind a quote without an end.
        if read == 0 || self.quotes.is_too_long() {
            self.rows.extend(self.quotes.finish());
            self.ended = true;
        }
        Ok(read)
    }
}

impl<R: Seek> Seek for Watched<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.input.seek(to)
    }
}
