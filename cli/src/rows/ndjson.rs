//! NDJSON: one JSON value a line. Empty lines are skipped.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::de::IgnoredAny;

use super::{Row, Rows, other_json, without_mark};
use crate::failure::Failure;
use crate::fault::Fault;

pub(super) fn rows(file: &Path) -> Result<Rows, Failure> {
    let reader = File::open(file).map(BufReader::new).map_err(|error| Fault::new(file.display(), error))?;
    Ok(stream(file, reader, other_json(file)))
}

/// The rows of an input; `advice`: how to convert a value of several lines.
pub(super) fn stream(file: &Path, reader: impl BufRead + Send + 'static, advice: String) -> Rows {
    let file = file.to_owned();
    // What cannot be read once will not be read by trying again and again.
    let lines = reader.split(b'\n').scan(false, |broken, line| {
        let go_on = !*broken;
        *broken = line.is_err();
        go_on.then_some(line)
    });
    // Nor does it get better line by line in a value that is spread over many.
    Box::new(
        (1..)
            .zip(lines)
            .scan(false, move |spread, (line, bytes)| {
                if *spread {
                    return None;
                }
                let row = match bytes {
                    Err(error) => Some(Err(Fault::row(&file, line, error))),
                    Ok(bytes) if line == 1 && is_spread(&bytes) => {
                        *spread = true;
                        Some(Err(Fault::row(&file, line, format_args!("begins a value of several lines. {advice}"))))
                    }
                    Ok(bytes) => row(&file, line, &bytes),
                };
                Some(row)
            })
            .flatten(),
    )
}

/// Whether a line is only the beginning of a JSON value.
pub(crate) fn is_spread(line: &[u8]) -> bool {
    let line = without_mark(line).trim_ascii();
    !line.is_empty() && serde_json::from_slice::<IgnoredAny>(line).is_err_and(|error| error.is_eof())
}

fn row(file: &Path, line: u64, bytes: &[u8]) -> Option<Result<Row, Fault>> {
    let bytes = if line == 1 { without_mark(bytes) } else { bytes };
    if bytes.trim_ascii().is_empty() {
        return None;
    }
    Some(serde_json::from_slice(bytes).map(|content| Row { line, content }).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message);
        Fault::row(file, line, format_args!("is not JSON: {message}")).column(error.column())
    }))
}
