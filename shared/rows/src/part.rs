//! Objects that are read in parts: each row belongs to the part of the object in which its line begins.

use fanfold::producing::Position;
use serde_json::Value;

use crate::csv::{Columns, RowReader, row_end};
use crate::ndjson;

/// The part of an object that one of `of` partitions has, from `number` 0: the rows that begin in these bytes are its own. The
/// parts of all partitions are the whole object.
#[must_use]
pub fn split(size: u64, number: u32, of: u32) -> (u64, u64) {
    let at = |number: u32| u128::from(size) * u128::from(number) / u128::from(of.max(1));
    // No more than the size, so it fits.
    let at = |number: u32| u64::try_from(at(number.min(of))).unwrap_or(size);
    (at(number), at(number + 1))
}

/// How rows are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// A row per task, with these columns.
    Csv(Columns),
    /// A JSON value per line.
    Ndjson,
}

/// Bytes of an object, of which the rows are taken.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Where in the object they begin.
    pub at: u64,
    /// The number of the line that begins there, from 1, if it is known.
    pub line: Option<u64>,
    /// Whether no row begins there for sure: then the first is the one behind the first line end.
    pub within: bool,
    /// Whether the object ends with them.
    pub last: bool,
    /// Rows that begin here or later are not taken.
    pub end: u64,
    /// Whether others read other parts of the object. They begin at line ends, so a row is a line.
    pub divided: bool,
}

/// How much is taken at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Rows.
    pub rows: usize,
    /// Bytes of the rows as JSON. The first row is taken in any case.
    pub bytes: usize,
    /// Bytes that are added for each row.
    pub beside: usize,
}

/// The rows of a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// Each with its position; what is wrong with those that cannot be read.
    pub rows: Vec<(Position, Result<Value, String>)>,
    /// Where the next row begins, and the number of its line if it is known. None: there is none.
    pub next: Option<(u64, Option<u64>)>,
}

/// A part cannot be taken apart into rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// A row does not end in these bytes.
    #[error("{at}: does not end within {bytes} bytes")]
    TooLong {
        /// Its position.
        at: Position,
        /// How many were looked at.
        bytes: usize,
    },
    /// A row continues in the next line, which may be the first of another part.
    #[error("{0}: has a line end in quotes; such an object can be read only with `partitions`: 1")]
    SeveralLines(Position),
}

impl Part<'_> {
    /// Takes rows until the part or a limit ends.
    ///
    /// # Errors
    /// It cannot be split into rows.
    pub fn take(&self, form: &Form, limits: Limits) -> Result<Taken, PartError> {
        let (mut taken, mut reader) = (Taken::default(), Reader::new(form));
        let (mut from, mut line, mut bytes) = (0, self.line, 0);
        if self.within {
            line = None;
            match self.bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => from = end + 1,
                None if self.last => return Ok(taken),
                None => return Err(self.too_long(0, None)),
            }
        }
        loop {
            let (at, rest) = (self.at + from as u64, &self.bytes[from..]);
            if at >= self.end || self.last && rest.is_empty() {
                return Ok(taken);
            }
            let position = Position { object: None, line, byte: at };
            let Some((end, several)) = self.row_end(rest, form) else {
                // It is read again as the first of another part, with more behind it.
                if from == 0 {
                    return Err(self.too_long(from, line));
                }
                taken.next = Some((at, line));
                return Ok(taken);
            };
            if several && self.divided {
                return Err(PartError::SeveralLines(position));
            }
            if let Some(row) = reader.row(&rest[..end], at == 0) {
                let size = row.as_ref().map_or(0, |row| row.to_string().len()) + limits.beside;
                if !taken.rows.is_empty() && (taken.rows.len() >= limits.rows || bytes + size > limits.bytes) {
                    taken.next = Some((at, line));
                    return Ok(taken);
                }
                bytes += size;
                taken.rows.push((position, row));
            }
            let lines = if several { rest[..end].iter().filter(|byte| **byte == b'\n').count() as u64 } else { 1 };
            line = line.map(|line| line + lines);
            from += end;
        }
    }

    /// The end of the row that a rest of the part begins with. None: it is not in these bytes.
    fn row_end(&self, rest: &[u8], form: &Form) -> Option<(usize, bool)> {
        let end = match form {
            Form::Csv(columns) => row_end(rest, columns.delimiter()),
            Form::Ndjson => rest.iter().position(|byte| *byte == b'\n').map(|end| (end + 1, false)),
        };
        let all = || (rest.len(), rest.contains(&b'\n'));
        end.or_else(|| self.last.then(all))
    }

    fn too_long(&self, from: usize, line: Option<u64>) -> PartError {
        let at = Position { object: None, line, byte: self.at + from as u64 };
        PartError::TooLong { at, bytes: self.bytes.len() - from }
    }
}

/// Reads rows, one by one.
enum Reader<'a> {
    Csv(Box<RowReader<'a>>),
    Ndjson,
}

impl<'a> Reader<'a> {
    fn new(form: &'a Form) -> Self {
        match form {
            Form::Csv(columns) => Self::Csv(Box::new(columns.reader())),
            Form::Ndjson => Self::Ndjson,
        }
    }

    /// The content in the bytes of one row; none if they are empty.
    fn row(&mut self, bytes: &[u8], first: bool) -> Option<Result<Value, String>> {
        match self {
            Self::Csv(reader) => reader.row(bytes),
            Self::Ndjson => ndjson::row(bytes, first).map(|row| row.map_err(|error| error.to_string())),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const LIMITS: Limits = Limits { rows: 4, bytes: 60, beside: 1 };

    /// Reads a partition's part in chunks, as a reader of objects does. Returns the rows by their bytes.
    fn read(
        text: &[u8],
        form: &Form,
        from: u64,
        (number, of): (u32, u32),
        chunk: usize,
    ) -> Result<Vec<(Position, Value)>, PartError> {
        let (start, end) = split(text.len() as u64, number, of);
        let (mut rows, mut next) = (Vec::new(), Some((start.max(from), (start <= from).then_some(7))));
        let mut within = start > from;
        while let Some((at, line)) = next {
            let first = usize::try_from(at).unwrap() - usize::from(within);
            let last = (first + chunk).min(text.len());
            let part = Part {
                bytes: &text[first..last],
                at: first as u64,
                line,
                within,
                last: last == text.len(),
                end,
                divided: of > 1,
            };
            let taken = part.take(form, LIMITS)?;
            assert!(taken.rows.len() <= LIMITS.rows);
            assert!(taken.next.is_none_or(|(next, _)| next > at || within), "it goes on");
            rows.extend(taken.rows.into_iter().map(|(position, row)| (position, row.unwrap())));
            (next, within) = (taken.next, false);
        }
        Ok(rows)
    }

    proptest! {
        /// However many partitions there are, and in whatever chunks they read: each line is one row of one partition.
        #[test]
        fn each_line_belongs_to_one_partition(
            lines in prop::collection::vec((0_u32..3, 0_u64..100_000), 0..30),
            of in 1_u32..9,
            chunk in 12_usize..80,
            ended: bool,
        ) {
            let mut text: String = String::new();
            for (empty, number) in &lines {
                text.push_str(&"\n".repeat(*empty as usize));
                text.push_str(&format!("{number}\n"));
            }
            if ended { text.pop(); }
            let all: Vec<Value> = lines.iter().map(|(_, number)| json!(number)).collect();
            let mut read_rows = Vec::new();
            for number in 0..of {
                let rows = read(text.as_bytes(), &Form::Ndjson, 0, (number, of), chunk);
                // A chunk may be full of empty lines.
                read_rows.extend(rows.unwrap());
            }
            for (position, value) in &read_rows {
                let at = usize::try_from(position.byte).unwrap();
                prop_assert!(text[at..].starts_with(&value.to_string()), "{position:?} {value}");
                if let Some(line) = position.line {
                    prop_assert_eq!(line as usize, 7 + text[..at].matches('\n').count());
                }
            }
            prop_assert_eq!(read_rows.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), all);
        }

        /// The same for CSV, below its first line.
        #[test]
        fn each_row_of_csv_belongs_to_one_partition(
            rows in prop::collection::vec(("[a-z\" ]{0,5}", 0_u64..1_000), 0..30), of in 1_u32..9, chunk in 40_usize..90,
        ) {
            let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            let mut text = "name,number\n".to_owned();
            for (name, number) in &rows {
                text.push_str(&format!("{},{number}\r\n", quoted(name)));
            }
            let (columns, begin) = Columns::read(text.as_bytes(), true).unwrap();
            let form = Form::Csv(columns);
            let mut found = Vec::new();
            for number in 0..of {
                found.extend(read(text.as_bytes(), &form, begin as u64, (number, of), chunk).unwrap());
            }
            let found: Vec<Value> = found.into_iter().map(|(_, value)| value).collect();
            let all: Vec<Value> =
                rows.iter().map(|(name, number)| json!({"name": name, "number": number.to_string()})).collect();
            prop_assert_eq!(found, all);
        }
    }

    #[test]
    fn the_parts_of_all_partitions_are_the_object() {
        for (size, of) in [(0, 3), (1, 4), (100, 7), (u64::MAX, 64)] {
            let parts: Vec<(u64, u64)> = (0..of).map(|number| split(size, number, of)).collect();
            assert_eq!((parts[0].0, parts[of as usize - 1].1), (0, size));
            assert!(parts.windows(2).all(|two| two[0].1 == two[1].0));
        }
    }

    #[test]
    fn rows_of_several_lines_are_read_by_one_partition_only() {
        let text = b"a,b\n\"one\ntwo\",1\nx,2\n";
        let (columns, begin) = Columns::read(text, true).unwrap();
        let form = Form::Csv(columns);
        let rows = read(text, &form, begin as u64, (0, 1), 64).unwrap();
        assert_eq!(rows[0].1, json!({"a": "one\ntwo", "b": "1"}));
        assert_eq!((rows[1].0.line, rows[1].0.byte), (Some(9), 16));
        let error = read(text, &form, begin as u64, (0, 2), 64).unwrap_err();
        assert!(
            matches!(error, PartError::SeveralLines(_)) && error.to_string().contains("`partitions`: 1"),
            "{error}"
        );
        // A quote that is never closed is one row to the end.
        let text = b"a,b\n\"one,1\nx,2\n";
        assert!(matches!(read(text, &form, 4, (0, 2), 64), Err(PartError::SeveralLines(_))));
    }

    #[test]
    fn a_row_that_is_too_long_is_named() {
        let text = format!("1\n\"{}\"\n", "x".repeat(100));
        let error = read(text.as_bytes(), &Form::Ndjson, 0, (0, 1), 50).unwrap_err();
        assert_eq!(error.to_string(), "line 8: does not end within 50 bytes");
        assert!(matches!(read(text.as_bytes(), &Form::Ndjson, 0, (1, 2), 20), Err(PartError::TooLong { .. })));
        // One row is taken, however large its JSON is.
        assert_eq!(read(text.as_bytes(), &Form::Ndjson, 0, (0, 1), 200).unwrap().len(), 2);
    }
}
