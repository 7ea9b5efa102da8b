//! Where a producer's rows come from.

mod format;
mod objects;

use std::num::NonZeroU16;

use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits::FUNCTION_BYTES_MAX;
use crate::policy::{Destination, FieldError};
use crate::tracking::ItemCursor;

#[cfg(feature = "openapi")]
pub(crate) use self::objects::BUCKET;

pub use self::format::Format;
use self::format::check_rows;
pub use self::objects::Objects;

/// Where a producer's rows come from: exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Source {
    /// An HTTP endpoint; `https`, or `http` on the local machine.
    Url(#[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::url"))] String),
    /// A Lambda function in the stack's region, by its name or ARN, perhaps with a version or an alias.
    Lambda(#[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::function"))] String),
    /// One or more objects in a bucket of S3 in the stack's region.
    S3(Objects),
    /// A file of this machine, for the local runner only.
    File(LocalFile),
    /// A program and its arguments, for the local runner only: it reads the request from standard input, and writes its answer
    /// to standard output.
    Command(#[cfg_attr(feature = "openapi", schemars(length(min = 1)))] Vec<String>),
    /// The file of `fanfold run`. Only this command opens such a fan-out, and only it reads such a source.
    #[cfg_attr(feature = "openapi", schemars(skip))]
    Rows(RunRows),
    /// The items of another fan-out that failed. Only `POST /fanouts/{id}/reissue` opens such a fan-out.
    #[cfg_attr(feature = "openapi", schemars(skip))]
    Reissue(Reissue),
}

/// Which items of which fan-out are reissued, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reissue {
    /// The fan-out. It has ended.
    pub fanout: Uuid,
    /// Whether items that were missing at its end are reissued, too.
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub missing: bool,
    /// How many members a batch with one of these tasks may have, if fewer than the policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_batch: Option<NonZeroU16>,
    /// The digest of corrected contents, which are kept beside the partition: a repeated request must bring the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contents: Option<Uuid>,
    /// What an earlier reissue had taken on before it was cut short: this one reissues the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_on: Option<TakenOn>,
}

/// What an earlier reissue, which was cut short, had taken on of a fan-out's items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakenOn {
    /// How far it had come.
    pub until: ItemCursor,
    /// How many items that are, together with those of reissues before it.
    pub items: u64,
}

/// The rows of the file that `fanfold run` runs, dealt out in pages: the partitions take them in turn. Which rows a page has follows
/// from these fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRows {
    /// The kind of the tasks.
    pub kind: String,
    /// The same for the same rows in the same order.
    pub fingerprint: Uuid,
    /// Rows of a page at most.
    pub page_rows: u32,
    /// Bytes of its rows as JSON, give or take the last row.
    pub page_bytes: u64,
}

/// A file of this machine. A file whose name ends in `.gz` is decompressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LocalFile {
    /// The file: a path from the folder of the local runner.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1)))]
    pub path: String,
    /// How rows are written. By default what the path ends in: `.csv`, `.ndjson` or `.jsonl`, perhaps with `.gz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The kind of the tasks, whose contents the rows are. Without it, a row of NDJSON is a task: `{kind, content}`.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::optional_kind"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// The name or ARN of a function, perhaps with a version or an alias (API reference of `Invoke`).
pub(crate) const FUNCTION: &str =
    "^(arn:aws[a-z-]*:lambda:[a-z0-9-]+:[0-9]{12}:function:)?[A-Za-z0-9_-]{1,64}(:([$]LATEST|[A-Za-z0-9_-]{1,128}))?$";

/// Checks the name or ARN of a function.
///
/// # Errors
/// It is none; what is allowed.
pub(crate) fn check_function(function: &str) -> Result<(), String> {
    if function.len() <= FUNCTION_BYTES_MAX && matches(FUNCTION, function) {
        return Ok(());
    }
    Err(format!(
        "is `{function}`, the name or ARN of a Lambda function of at most {FUNCTION_BYTES_MAX} bytes is allowed"
    ))
}

impl Source {
    /// Whether it gives each partition the rows that are its own. Otherwise the key of a row decides.
    #[must_use]
    pub fn gives_own_rows(&self) -> bool {
        match self {
            Self::S3(_) | Self::File(_) | Self::Rows(_) | Self::Reissue(_) => true,
            Self::Url(_) | Self::Lambda(_) | Self::Command(_) => false,
        }
    }

    /// Whether a question has one answer, however often it is asked, unless it fails. The cursors of objects and files name their
    /// version, and without a cursor they have no rows yet. The file of a run is named by what is in it.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        match self {
            Self::S3(_) | Self::File(_) | Self::Rows(_) => true,
            // Records expire.
            Self::Url(_) | Self::Lambda(_) | Self::Command(_) | Self::Reissue(_) => false,
        }
    }

    /// The field that a request may not have, and who may. `local`: the request comes to a local runner from its own machine.
    pub(super) fn refused(&self, local: bool) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Rows(_) => Some(("rows", "only `fanfold run` uses it")),
            Self::Reissue(_) => Some(("reissue", "only `POST /fanouts/{id}/reissue` uses it")),
            Self::File(_) if !local => Some(("file", "is allowed only in the local runner")),
            Self::Command(_) if !local => Some(("command", "is allowed only in the local runner")),
            _ => None,
        }
    }

    /// Adds what is wrong with it; `field` is what it is called where it was given.
    pub(super) fn check(&self, field: &str, errors: &mut Vec<FieldError>) {
        match self {
            Self::Url(url) => {
                errors.extend(Destination::Url(url.clone()).check(field).err().into_iter().flat_map(|error| error.0));
            }
            Self::Lambda(function) => {
                if let Err(problem) = check_function(function) {
                    errors.push(FieldError { field: format!("{field}.lambda"), problem });
                }
            }
            Self::S3(objects) => objects.check(&format!("{field}.s3"), errors),
            Self::File(file) => file.check(&format!("{field}.file"), errors),
            Self::Rows(_) | Self::Reissue(_) => {}
            Self::Command(command) => {
                if command.first().is_none_or(String::is_empty) {
                    let problem = "is empty, a program and its arguments are expected".to_owned();
                    errors.push(FieldError { field: format!("{field}.command"), problem });
                }
            }
        }
    }
}

impl LocalFile {
    fn check(&self, field: &str, errors: &mut Vec<FieldError>) {
        let mut add = |name: &str, problem| errors.push(FieldError { field: format!("{field}.{name}"), problem });
        if self.path.is_empty() {
            add("path", "is empty, the path of a file is expected".to_owned());
        }
        check_rows(self.format.or_else(|| Format::of(&self.path)), self.kind.as_deref(), &mut add);
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(text))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
