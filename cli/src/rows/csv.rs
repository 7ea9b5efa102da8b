//! Files of CSV.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, SeekFrom};
use std::path::Path;

use ::csv::{ByteRecord, ErrorKind, Position, Reader, ReaderBuilder, StringRecord};
use fanfold_rows::csv;
use fanfold_rows::quotes::Ended;

use super::watched::{ROW_BEFORE, Watched};
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

fn reader(file: &Path) -> Result<Reader<Watched<File>>, Fault> {
    let delimiter = delimiter(file).map_or(b',', |(byte, _)| byte);
    let input = File::open(file).map_err(|error| Fault::new(file.display(), error))?;
    Ok(watched(input, delimiter))
}

fn watched<R: Read>(input: R, delimiter: u8) -> Reader<Watched<R>> {
    ReaderBuilder::new().delimiter(delimiter).from_reader(Watched::new(input, delimiter))
}

/// The names of the columns, each only once.
pub(super) fn columns(file: &Path) -> Result<Vec<String>, Fault> {
    check_columns(file, &mut reader(file)?)
}

fn check_columns(file: &Path, reader: &mut Reader<Watched<impl Read>>) -> Result<Vec<String>, Fault> {
    let header = reader.headers().cloned();
    // A quote that is not closed makes rows a part of the first line.
    if let Some(wrong) = reader.get_mut().next_row().and_then(|row| row.fault) {
        return Err(Fault::row(file, wrong.line, wrong));
    }
    let header = header.map_err(|error| fault(file, 1, &error))?;
    let columns = csv::columns(&header).map_err(|problem| Fault::row(file, 1, problem))?;
    if columns.is_empty() {
        return Err(Fault::new(file.display(), csv::EMPTY));
    }
    Ok(columns)
}

/// The rows of a file, from one of them on.
pub(super) fn rows(file: &Path, begin: Option<Begin>) -> Result<Rows, Failure> {
    let mut reader = reader(file)?;
    let columns = check_columns(file, &mut reader)?;
    // Where the reader is already, it stays.
    let at = reader.position().byte();
    if let Some(Begin { byte, line }) = begin.filter(|begin| begin.byte != at) {
        let mut position = Position::new();
        position.set_byte(byte.saturating_sub(ROW_BEFORE.len() as u64)).set_line(line);
        reader.seek_raw(SeekFrom::Start(byte), position).map_err(|error| fault(file, line, &error))?;
        reader.get_mut().goes_on_at(line);
        // Its number of fields may be wrong.
        let _ = reader.read_byte_record(&mut ByteRecord::new());
    }
    Ok(records(file, reader, columns))
}

/// The rows of an input.
pub(super) fn stream(name: &Path, input: Box<dyn Read + Send>) -> Result<Rows, Failure> {
    let (mut input, mut line) = (BufReader::new(input), Vec::new());
    (&mut input).take(BEGIN_BYTES).read_until(b'\n', &mut line).map_err(|error| Fault::new(name.display(), error))?;
    let delimiter = csv::delimiter(&line).map_or(b',', |(byte, _)| byte);
    let mut reader = watched(Cursor::new(line).chain(input), delimiter);
    let columns = check_columns(name, &mut reader)?;
    Ok(records(name, reader, columns))
}

fn records(file: &Path, reader: Reader<Watched<impl Read + Send + 'static>>, columns: Vec<String>) -> Rows {
    let (file, mut records) = (file.to_owned(), reader.into_records());
    Box::new(std::iter::from_fn(move || {
        let record = records.next()?;
        let ended = records.reader_mut().get_mut().next_row();
        Some(row(&file, &columns, record, ended))
    }))
}

/// A row, or what is wrong with it: its quotes first, because others of its faults may come from them.
fn row(
    file: &Path,
    columns: &[String],
    record: Result<StringRecord, ::csv::Error>,
    ended: Option<Ended>,
) -> Result<Row, Fault> {
    if let Some(wrong) = ended.and_then(|ended| ended.fault) {
        return Err(Fault::row(file, wrong.line, wrong));
    }
    match record {
        Ok(record) => {
            let begin = begin(&record);
            let line = ended.map_or(begin.line, |ended| ended.line);
            Ok(Row { line, begin, content: csv::content(columns, &record) })
        }
        Err(error) => {
            let line = error.position().map_or(0, Position::line);
            Err(fault(file, ended.map_or(line, |ended| ended.line), &error))
        }
    }
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
