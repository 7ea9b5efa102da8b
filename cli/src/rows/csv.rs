//! Files of CSV.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use ::csv::{ErrorKind, Position, Reader, ReaderBuilder, StringRecord};
use fanfold_rows::csv;

use super::{BEGIN_BYTES, Begin, Row, Rows};
use crate::failure::Failure;
use crate::fault::Fault;

/// What separates the fields of a file, if its first line has no comma, and its name.
fn delimiter(file: &Path) -> Option<(u8, &'static str)> {
    let mut line = Vec::new();
    BufReader::new(File::open(file).ok()?.take(BEGIN_BYTES)).read_until(b'\n', &mut line).ok()?;
    csv::delimiter(&line)
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
    let columns = csv::columns(header).map_err(|problem| Fault::row(file, 1, problem))?;
    if columns.is_empty() {
        return Err(Fault::new(file.display(), csv::EMPTY));
    }
    Ok(columns)
}

/// The rows of a file, from one of them on.
pub(super) fn rows(file: &Path, begin: Option<Begin>) -> Result<Rows, Failure> {
    let mut reader = reader(file)?;
    let columns = check_columns(file, &mut reader)?;
    if let Some(Begin { byte, line }) = begin {
        let mut position = Position::new();
        position.set_byte(byte).set_line(line);
        reader.seek(position).map_err(|error| fault(file, line, &error))?;
    }
    Ok(records(file, reader, columns))
}

/// The rows of an input.
pub(super) fn stream(name: &Path, input: Box<dyn Read + Send>) -> Result<Rows, Failure> {
    let (mut input, mut line) = (BufReader::new(input), Vec::new());
    (&mut input).take(BEGIN_BYTES).read_until(b'\n', &mut line).map_err(|error| Fault::new(name.display(), error))?;
    let delimiter = csv::delimiter(&line).map_or(b',', |(byte, _)| byte);
    let mut reader = ReaderBuilder::new().delimiter(delimiter).from_reader(Cursor::new(line).chain(input));
    let columns = check_columns(name, &mut reader)?;
    Ok(records(name, reader, columns))
}

fn records(file: &Path, reader: Reader<impl Read + Send + 'static>, columns: Vec<String>) -> Rows {
    let file = file.to_owned();
    let records = reader.into_records();
    Box::new(records.map(move |record| match record {
        Ok(record) => {
            let begin = begin(&record);
            Ok(Row { line: begin.line, begin, content: csv::content(&columns, &record) })
        }
        Err(error) => {
            let line = error.position().map_or(0, Position::line);
            Err(fault(&file, line, &error))
        }
    }))
}

fn begin(record: &StringRecord) -> Begin {
    record.position().map_or(Begin { byte: 0, line: 0 }, |at| Begin { byte: at.byte(), line: at.line() })
}

fn fault(file: &Path, line: u64, error: &::csv::Error) -> Fault {
    match error.kind() {
        ErrorKind::Io(error) => Fault::new(file.display(), error),
        _ => Fault::row(file, line, csv::problem(error)),
    }
}
