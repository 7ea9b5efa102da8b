//! Rows of CSV and NDJSON, without I/O: of files, and of objects that are read in parts.

pub mod csv;
pub mod ndjson;
mod part;
pub mod quotes;

pub use part::{Form, Limits, Part, PartError, Taken, split};

/// A text without the byte order mark that some programs begin it with.
#[must_use]
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}
