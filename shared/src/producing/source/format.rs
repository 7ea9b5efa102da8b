//! How rows are written, and how they become tasks.

use serde::{Deserialize, Serialize};

use crate::policy::bad_kind;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A row per task; the first line names the columns, and a row becomes an object of texts.
    Csv,
    /// A JSON value per line.
    Ndjson,
}

/// Names what is wrong with how rows are said to become tasks.
pub(super) fn check_rows(format: Option<Format>, kind: Option<&str>, add: &mut dyn FnMut(&str, String)) {
    match format {
        None => {
            add("format", "is missing: the name does not end in .csv, .ndjson or .jsonl (perhaps with .gz)".to_owned())
        }
        Some(Format::Csv) if kind.is_none() => {
            add("kind", "is missing: rows of CSV are contents, so the kind of their tasks is needed".to_owned());
        }
        _ => {}
    }
    if let Some(problem) = kind.and_then(bad_kind) {
        add("kind", problem);
    }
}

impl Format {
    /// The format of an object, by what its name ends in.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = |end: &str| name.ends_with(end);
        if ends(".csv") {
            return Some(Self::Csv);
        }
        (ends(".ndjson") || ends(".jsonl")).then_some(Self::Ndjson)
    }
}
