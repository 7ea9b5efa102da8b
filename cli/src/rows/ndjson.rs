//! Files of NDJSON.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use fanfold_rows::ndjson::{self, is_spread};

use super::{Row, Rows, other_json};
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

fn row(file: &Path, line: u64, bytes: &[u8]) -> Option<Result<Row, Fault>> {
    Some(match ndjson::row(bytes, line == 1)? {
        Ok(content) => Ok(Row { line, content }),
        Err(error) => Err(Fault::row(file, line, &error).column(error.column)),
    })
}
