//! NDJSON: one JSON value a line. Empty lines are skipped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::{Row, Rows, at};
use crate::failure::{Failure, Fault};

pub(super) fn rows(file: &Path) -> Result<Rows, Failure> {
    let reader = File::open(file).map(BufReader::new).map_err(|error| Fault::new(file.display(), error))?;
    let file = file.to_owned();
    // What can not be read once will not be read by trying again and again.
    let lines = reader.split(b'\n').scan(false, |broken, line| {
        let go_on = !*broken;
        *broken = line.is_err();
        go_on.then_some(line)
    });
    Ok(Box::new((1..).zip(lines).filter_map(move |(line, bytes)| match bytes {
        Err(error) => Some(Err(Fault::new(at(&file, line), error))),
        Ok(bytes) => row(&file, line, &bytes),
    })))
}

fn row(file: &Path, line: u64, bytes: &[u8]) -> Option<Result<Row, Fault>> {
    let bytes = if line == 1 { bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes) } else { bytes };
    if bytes.trim_ascii().is_empty() {
        return None;
    }
    Some(serde_json::from_slice(bytes).map(|content| Row { line, content }).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message);
        Fault::new(format_args!("{}:{}", at(file, line), error.column()), format_args!("is not JSON: {message}"))
    }))
}
