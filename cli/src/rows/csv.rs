//! CSV: the first line names the columns; a row becomes an object of texts. Where the first line has no comma, a semicolon or
//! a tab in it separates the fields.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord};
use serde_json::{Map, Value};

use super::{BEGIN_BYTES, Row, Rows};
use crate::failure::Failure;
use crate::fault::Fault;

/// What separates the fields where that is not a comma, and what it is called.
const OTHERS: [(u8, &str); 3] = [(b';', "semicolons"), (b'\t', "tabs"), (b'|', "vertical bars")];

/// What separates the fields of a file, if its first line has no comma, and its name.
fn delimiter(file: &Path) -> Option<(u8, &'static str)> {
    let mut line = Vec::new();
    BufReader::new(File::open(file).ok()?.take(BEGIN_BYTES)).read_until(b'\n', &mut line).ok()?;
    delimiter_in(&line)
}

/// The same, for a first line.
fn delimiter_in(line: &[u8]) -> Option<(u8, &'static str)> {
    // What is in quotes separates nothing: every other part is outside of them.
    let outside: Vec<u8> = line.split(|byte| *byte == b'"').step_by(2).flatten().copied().collect();
    let count = |wanted: u8| outside.iter().filter(|byte| **byte == wanted).count();
    if count(b',') > 0 {
        return None;
    }
    OTHERS.into_iter().filter(|(byte, _)| count(*byte) > 0).max_by_key(|(byte, _)| count(*byte))
}

/// What was guessed about the file, for people.
pub(super) fn guess(file: &Path) -> Option<String> {
    let (_, name) = delimiter(file)?;
    Some(format!("{}: its first line has no comma, so {name} separate the fields", file.display()))
}

fn reader(file: &Path) -> Result<Reader<File>, Fault> {
    let delimiter = delimiter(file).map_or(b',', |(byte, _)| byte);
    ReaderBuilder::new().delimiter(delimiter).from_path(file).map_err(|error| fault(file, 1, &error))
}

/// The names of the columns, each only once.
pub(super) fn columns(file: &Path) -> Result<Vec<String>, Fault> {
    check_columns(file, &mut reader(file)?)
}

fn check_columns(file: &Path, reader: &mut Reader<impl Read>) -> Result<Vec<String>, Fault> {
    let header = reader.headers().map_err(|error| fault(file, 1, &error))?;
    let mut columns: Vec<String> = Vec::with_capacity(header.len());
    for (n, name) in header.iter().enumerate() {
        // Spreadsheets begin a file with a byte order mark.
        let name = if n == 0 { name.trim_start_matches('\u{feff}') } else { name };
        if name.is_empty() {
            return Err(Fault::row(file, 1, format_args!("column {} has no name", n + 1)));
        }
        if columns.iter().any(|column| column == name) {
            return Err(Fault::row(file, 1, format_args!("two columns are named `{name}`")));
        }
        columns.push(name.to_owned());
    }
    if columns.is_empty() {
        return Err(Fault::new(file.display(), "is empty; its first line must name the columns"));
    }
    Ok(columns)
}

pub(super) fn rows(file: &Path) -> Result<Rows, Failure> {
    records(file, reader(file)?)
}

/// The rows of an input.
pub(super) fn stream(name: &Path, input: Box<dyn Read + Send>) -> Result<Rows, Failure> {
    let (mut input, mut line) = (BufReader::new(input), Vec::new());
    (&mut input).take(BEGIN_BYTES).read_until(b'\n', &mut line).map_err(|error| Fault::new(name.display(), error))?;
    let delimiter = delimiter_in(&line).map_or(b',', |(byte, _)| byte);
    let reader = ReaderBuilder::new().delimiter(delimiter).from_reader(Cursor::new(line).chain(input));
    records(name, reader)
}

fn records(file: &Path, mut reader: Reader<impl Read + Send + 'static>) -> Result<Rows, Failure> {
    let columns = check_columns(file, &mut reader)?;
    let file = file.to_owned();
    let records = reader.into_records();
    Ok(Box::new(records.map(move |record| match record {
        Ok(record) => Ok(Row { line: line(&record), content: content(&columns, &record) }),
        Err(error) => {
            let line = error.position().map_or(0, csv::Position::line);
            Err(fault(&file, line, &error))
        }
    })))
}

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

fn content(columns: &[String], record: &StringRecord) -> Value {
    let fields = columns.iter().zip(record).map(|(column, value)| (column.clone(), Value::String(value.to_owned())));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn fault(file: &Path, line: u64, error: &csv::Error) -> Fault {
    let problem = match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("has {len} fields, but the first line names {expected_len} columns")
        }
        ErrorKind::Utf8 { err, .. } => format!("field {} is not UTF-8", err.field() + 1),
        ErrorKind::Io(error) => return Fault::new(file.display(), error),
        _ => error.to_string(),
    };
    Fault::row(file, line, problem)
}
