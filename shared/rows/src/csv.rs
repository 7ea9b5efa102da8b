//! CSV: the first line names the columns; a row becomes an object of texts. Where the first line has no comma, a semicolon, a tab
//! or a vertical bar in it separates the fields.

use std::io::Cursor;

use csv::{ByteRecord, ErrorKind, ReaderBuilder, StringRecord, Terminator};
use serde_json::{Map, Value};

use crate::quotes;

/// What separates the fields where that is not a comma, and what it is called.
const OTHERS: [(u8, &str); 3] = [(b';', "semicolons"), (b'\t', "tabs"), (b'|', "vertical bars")];

/// What is wrong with a file or an object of CSV that has no first line.
pub const EMPTY: &str = "is empty; its first line must name the columns";

/// What separates the fields below this first line, if it has no comma, and its name.
#[must_use]
pub fn delimiter(first_line: &[u8]) -> Option<(u8, &'static str)> {
    // What is in quotes separates nothing: every other part is outside of them.
    let outside: Vec<u8> = first_line.split(|byte| *byte == b'"').step_by(2).flatten().copied().collect();
    let count = |wanted: u8| outside.iter().filter(|byte| **byte == wanted).count();
    if count(b',') > 0 {
        return None;
    }
    OTHERS.into_iter().filter(|(byte, _)| count(*byte) > 0).max_by_key(|(byte, _)| count(*byte))
}

/// The names of the columns, each only once.
///
/// # Errors
/// A column has no name, or two have the same.
pub fn columns(header: &StringRecord) -> Result<Vec<String>, String> {
    let mut columns: Vec<String> = Vec::with_capacity(header.len());
    for (n, name) in header.iter().enumerate() {
        // Spreadsheets begin a file with a byte order mark.
        let name = if n == 0 { name.trim_start_matches('\u{feff}') } else { name };
        if name.is_empty() {
            return Err(format!("column {} has no name", n + 1));
        }
        if columns.iter().any(|column| column == name) {
            return Err(format!("two columns are named `{name}`"));
        }
        columns.push(name.to_owned());
    }
    Ok(columns)
}

/// A row as the content of a task.
#[must_use]
pub fn content(columns: &[String], record: &StringRecord) -> Value {
    let fields = columns.iter().zip(record).map(|(column, value)| (column.clone(), Value::String(value.to_owned())));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// What is wrong with a row.
#[must_use]
pub fn problem(error: &csv::Error) -> String {
    match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => unequal(*len, *expected_len),
        ErrorKind::Utf8 { err, .. } => not_text(err.field()),
        _ => error.to_string(),
    }
}

fn unequal(fields: u64, columns: u64) -> String {
    let count = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    format!("has {}, but the first line names {}", count(fields, "field"), count(columns, "column"))
}

fn not_text(field: usize) -> String {
    format!("field {} is not UTF-8", field + 1)
}

/// The columns that the first line of an object names, and what separates them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    names: Vec<String>,
    delimiter: u8,
}

impl Columns {
    /// Reads the first row of an object, and returns how many bytes it has with its line end. `text` is the object's
    /// beginning; `whole`: it is all of it.
    ///
    /// # Errors
    /// There is no first row, it does not end in `text`, or it does not name columns.
    pub fn read(text: &[u8], whole: bool) -> Result<(Self, usize), String> {
        let body = crate::without_mark(text);
        let mark = text.len() - body.len();
        let line = body.iter().position(|byte| *byte == b'\n').map_or(body, |end| &body[..end]);
        let delimiter = delimiter(line).map_or(b',', |(byte, _)| byte);
        let end = match row_end(body, delimiter) {
            Some((end, _)) => end,
            None if whole => body.len(),
            None => return Err(format!("its first line has more than {} bytes", text.len())),
        };
        let record = Records::new(delimiter).read(&body[..end]).ok_or_else(|| EMPTY.to_owned())??;
        if let Some(fault) = quotes::of_row(without_end(&body[..end]), delimiter) {
            return Err(format!("its first line: {fault}"));
        }
        Ok((Self { names: columns(&record)?, delimiter }, mark + end))
    }

    /// What separates the fields.
    pub(crate) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Reads rows of these columns.
    pub(crate) fn reader(&self) -> RowReader<'_> {
        RowReader { columns: self, records: Records::new(self.delimiter) }
    }
}

/// Reads rows, one by one.
#[derive(Debug)]
pub(crate) struct RowReader<'a> {
    columns: &'a Columns,
    records: Records,
}

impl RowReader<'_> {
    /// The content in the bytes of one row; none if they are empty.
    pub(crate) fn row(&mut self, bytes: &[u8]) -> Option<Result<Value, String>> {
        let record = self.records.read(bytes)?;
        if let Some(fault) = quotes::of_row(without_end(bytes), self.columns.delimiter) {
            return Some(Err(fault.to_string()));
        }
        Some(record.and_then(|record| {
            let (fields, columns) = (record.len(), self.columns.names.len());
            if fields == columns {
                return Ok(content(&self.columns.names, &record));
            }
            Err(unequal(fields as u64, columns as u64))
        }))
    }
}

/// The end of the row that a text begins with, behind its line end, and whether there are line ends within it, in quotes. None:
/// it does not end in the text.
pub(crate) fn row_end(text: &[u8], delimiter: u8) -> Option<(usize, bool)> {
    /// Where in a field a byte is, as the reader of the row sees it.
    #[derive(Clone, Copy)]
    enum At {
        Begin,
        Plain,
        Quoted,
        Quote,
    }
    let (mut at, mut several) = (At::Begin, false);
    for (n, byte) in text.iter().enumerate() {
        at = match (at, *byte) {
            (At::Quoted, b'"') => At::Quote,
            (At::Quoted, byte) => {
                several |= byte == b'\n';
                At::Quoted
            }
            (_, b'\n') => return Some((n + 1, several)),
            (_, byte) if byte == delimiter => At::Begin,
            (At::Begin | At::Quote, b'"') => At::Quoted,
            _ => At::Plain,
        };
    }
    None
}

/// A row without its line end.
fn without_end(row: &[u8]) -> &[u8] {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    row.strip_suffix(b"\r").unwrap_or(row)
}

/// Reads records out of the bytes of one row each: making a reader takes longer than reading a row.
#[derive(Debug)]
struct Records(csv::Reader<Cursor<Vec<u8>>>);

impl Records {
    fn new(delimiter: u8) -> Self {
        let mut builder = ReaderBuilder::new();
        // A carriage return alone is a part of a field.
        builder.has_headers(false).flexible(true).delimiter(delimiter).terminator(Terminator::Any(b'\n'));
        let mut records = Self(builder.from_reader(Cursor::new(b"x\n".to_vec())));
        // The reader drops a byte order mark from the first row that it reads. Of an object's rows it is a part, wherever reading
        // begins.
        let _ = records.0.read_byte_record(&mut ByteRecord::new());
        records
    }

    /// The fields in the bytes of one row; none if they are empty. Nothing follows a row without a line end.
    fn read(&mut self, bytes: &[u8]) -> Option<Result<StringRecord, String>> {
        let (bytes, ended) = (without_end(bytes), bytes.ends_with(b"\n"));
        if bytes.is_empty() {
            return None;
        }
        let input = self.0.get_mut();
        input.set_position(0);
        input.get_mut().clear();
        input.get_mut().extend_from_slice(bytes);
        if ended {
            input.get_mut().push(b'\n');
        }
        let mut record = ByteRecord::new();
        Some(match self.0.read_byte_record(&mut record) {
            Err(error) => Err(problem(&error)),
            Ok(_) => StringRecord::from_byte_record(record).map_err(|error| not_text(error.utf8_error().field())),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_row_names_the_columns() {
        for (text, bytes) in [
            ("city,to\nBonn,x\n", 8),
            ("\u{feff}city;to\r\nBonn;x\n", 12),
            ("city\tto", 7),
            ("\"city\",\"to\"\n", 12),
            ("\"city\"|to\n", 10),
        ] {
            let (columns, end) = Columns::read(text.as_bytes(), true).unwrap();
            assert_eq!((columns.names, end), (vec!["city".to_owned(), "to".to_owned()], bytes), "{text}");
        }
        let wrong = |text: &str, whole| Columns::read(text.as_bytes(), whole).unwrap_err();
        assert_eq!(wrong("", true), EMPTY);
        assert_eq!(wrong("\u{feff}\n", true), EMPTY);
        assert_eq!(wrong("a,,b\n", true), "column 2 has no name");
        assert_eq!(wrong("a,b,a\n", true), "two columns are named `a`");
        assert_eq!(wrong("a,\"b\n1,2\n", true), "its first line: field 2: a quote is opened and not closed");
        assert_eq!(wrong("a,b", false), "its first line has more than 3 bytes");
    }

    #[test]
    fn a_row_is_an_object_of_texts() {
        let (columns, _) = Columns::read(b"city,to\n", true).unwrap();
        let mut reader = columns.reader();
        let mut row = |text: &[u8]| reader.row(text);
        assert_eq!(row(b"Bonn,\"a, \"\"b\"\"\"\r\n"), Some(Ok(json!({"city": "Bonn", "to": "a, \"b\""}))));
        assert_eq!(row(b"\"Bonn\nam Rhein\",x"), Some(Ok(json!({"city": "Bonn\nam Rhein", "to": "x"}))));
        assert_eq!(row(b"5\" pipe,x"), Some(Ok(json!({"city": "5\" pipe", "to": "x"}))));
        assert_eq!(row(b"a\rb,x"), Some(Ok(json!({"city": "a\rb", "to": "x"}))));
        assert_eq!(row(b"\r\n"), None);
        // Whichever row a reader begins with.
        let marked = Some(Ok(json!({"city": "\u{feff}Bonn", "to": "x"})));
        assert_eq!(row("\u{feff}Bonn,x\n".as_bytes()), marked);
        assert_eq!(columns.reader().row("\u{feff}Bonn,x\n".as_bytes()), marked);
        let mut wrong = |text: &[u8]| row(text).unwrap().unwrap_err();
        assert_eq!(wrong(b"Bonn\n"), "has 1 field, but the first line names 2 columns");
        assert_eq!(wrong(b"Bonn,\xff\n"), "field 2 is not UTF-8");
        assert_eq!(wrong(b"Bonn,\"x\"y\r\n"), "field 2: text follows the closing quote");
        assert_eq!(wrong(b"Bonn,\"x\ny,z\n"), "field 2: a quote is opened and not closed");
    }

    proptest! {
        /// The end of a row is where the reader sees it, whatever the quotes.
        #[test]
        fn rows_end_where_the_reader_ends_them(text in "[a,\"\n]{0,24}") {
            let mut reader = ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .terminator(Terminator::Any(b'\n'))
                .from_reader(text.as_bytes());
            let expected: Vec<StringRecord> = reader.records().map(Result::unwrap).collect();
            let (mut rest, mut found, mut records) = (text.as_bytes(), Vec::new(), Records::new(b','));
            while !rest.is_empty() {
                let end = row_end(rest, b',').map_or(rest.len(), |(end, _)| end);
                found.extend(records.read(&rest[..end]).map(Result::unwrap));
                rest = &rest[end..];
            }
            prop_assert_eq!(found, expected);
        }
    }
}
