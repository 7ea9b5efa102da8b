//! The tasks of a file, one by one.

mod csv;
mod ndjson;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;
use crate::fault::Fault;
use crate::job::extension;

/// Extensions of files of tasks.
pub(crate) const FORMATS: [&str; 3] = ["csv", "ndjson", "jsonl"];

/// Bytes of a file that are looked at to see what it is.
const BEGIN_BYTES: u64 = 64 * 1_024;

/// A file of tasks.
#[derive(Debug)]
pub(crate) struct Input {
    /// The file.
    pub(crate) file: PathBuf,
    format: Format,
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Csv,
    Ndjson,
}

/// A task as the file has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Its line; the first of several for a CSV row with line breaks in it.
    pub(crate) line: u64,
    /// The object or row.
    pub(crate) content: Value,
}

/// The tasks of a file.
pub(crate) type Rows = Box<dyn Iterator<Item = Result<Row, Fault>> + Send>;

impl Input {
    pub(crate) fn new(file: PathBuf, limit: Option<u64>) -> Result<Self, Failure> {
        let format = match extension(&file).as_deref() {
            Some("csv") => Format::Csv,
            Some("ndjson" | "jsonl") => Format::Ndjson,
            Some("json") => {
                let problem = format!("is neither *.csv nor *.ndjson nor *.jsonl. {}", other_json(&file));
                return Err(Fault::new(file.display(), problem).into());
            }
            _ => return Err(Fault::new(file.display(), "is neither *.csv nor *.ndjson nor *.jsonl").into()),
        };
        let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(Self { file, format, limit })
    }

    /// Reads the tasks from the beginning. After a fault there may be more.
    pub(crate) fn rows(&self) -> Result<Rows, Failure> {
        let rows = match self.format {
            Format::Csv => csv::rows(&self.file)?,
            Format::Ndjson => ndjson::rows(&self.file)?,
        };
        Ok(Box::new(rows.take(self.limit)))
    }

    /// What had to be guessed about the file, for people.
    pub(crate) fn guess(&self) -> Option<String> {
        match self.format {
            Format::Csv => csv::guess(&self.file),
            Format::Ndjson => None,
        }
    }

    /// The columns of a CSV file.
    pub(crate) fn columns(&self) -> Option<Vec<String>> {
        match self.format {
            Format::Csv => csv::columns(&self.file).ok(),
            Format::Ndjson => None,
        }
    }
}

/// How NDJSON is made of a file of JSON.
pub(crate) fn other_json(file: &Path) -> String {
    let filter = if begins_as_array(file) { "-c '.[]'" } else { "-c ." };
    let (old, new) = (file.with_extension("json"), file.with_extension("ndjson"));
    let (old, new) = (old.display(), new.display());
    let rename = if extension(file).as_deref() == Some("json") {
        String::new()
    } else {
        format!("mv {} {old} && ", file.display())
    };
    format!("One JSON value per line is expected; convert the file with jq: {rename}jq {filter} {old} > {new}")
}

/// Whether the first thing in a file is a bracket.
fn begins_as_array(file: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(file).and_then(|file| file.take(BEGIN_BYTES).read_to_end(&mut begin));
    read.is_ok() && without_mark(&begin).trim_ascii_start().starts_with(b"[")
}

/// A text without the byte order mark that some programs begin it with.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}
