//! The tasks of a file, one by one.

mod csv;
mod ndjson;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::{Failure, Fault};
use crate::job::extension;

/// Extensions of files of tasks.
pub(crate) const FORMATS: [&str; 3] = ["csv", "ndjson", "jsonl"];

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

    /// The columns of a CSV file.
    pub(crate) fn columns(&self) -> Option<Vec<String>> {
        match self.format {
            Format::Csv => csv::columns(&self.file).ok(),
            Format::Ndjson => None,
        }
    }
}

/// A place in a file.
fn at(file: &Path, line: u64) -> String {
    format!("{}:{line}", file.display())
}
