//! Files of NDJSON.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use fanfold_rows::ndjson::{self, is_spread};

use super::{Begin, Row, Rows, other_json};
use crate::failure::Failure;
use crate::fault::Fault;

pub(super) fn rows(file: &Path, begin: Begin) -> Result<Rows, Failure> {
    let fault = |error| Fault::new(file.display(), error);
    let mut reader = File::open(file).map(BufReader::new).map_err(fault)?;
    reader.seek(SeekFrom::Start(begin.byte)).map_err(fault)?;
    Ok(stream(file, reader, begin, other_json(file)))
}

/// The rows of an input that begins with this place; `advice`: how to convert a value of several lines.
pub(super) fn stream(file: &Path, reader: impl BufRead + Send + 'static, begin: Begin, advice: String) -> Rows {
    let file = file.to_owned();
    // What cannot be read once will not be read by trying again and again.
    let lines = reader.split(b'\n').scan(false, |broken, line| {
        let go_on = !*broken;
        *broken = line.is_err();
        go_on.then_some(line)
    });
    // Nor does it get better line by line in a value that is spread over many.
    Box::new(
        (begin.line..)
            .zip(lines)
            .scan((false, begin.byte), move |(spread, byte), (line, bytes)| {
                if *spread {
                    return None;
                }
                let begin = Begin { byte: *byte, line };
                *byte += bytes.as_ref().map_or(0, |bytes| bytes.len() as u64 + 1);
                let row = match bytes {
                    Err(error) => Some(Err(Fault::row(&file, line, error))),
                    Ok(bytes) if line == 1 && is_spread(&bytes) => {
                        *spread = true;
                        Some(Err(Fault::row(&file, line, format_args!("begins a value of several lines. {advice}"))))
                    }
                    Ok(bytes) => row(&file, begin, &bytes),
                };
                Some(row)
            })
            .flatten(),
    )
}

fn row(file: &Path, begin: Begin, bytes: &[u8]) -> Option<Result<Row, Fault>> {
    let line = begin.line;
    Some(match ndjson::row(bytes, line == 1)? {
        Ok(content) => Ok(Row { line, begin, content }),
        Err(error) => Err(Fault::row(file, line, &error).column(error.column)),
    })
}
