//! What can go wrong when an engine is opened or a stack is made in it.

use std::path::PathBuf;

/// An engine could not be opened, or the stack could not be made in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The data folder or a file in it cannot be read or written.
    #[error("the data folder {} cannot be used: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// Another process has the data folder open.
    #[error("another fanfold runs on the data folder {}; stop it, or give this one another folder", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The data folder was written by another version of this program.
    #[error(
        "the data folder {} has format {found}, this version reads format {expected}; use the version that wrote it, or \
         another folder",
        path.display()
    )]
    Format {
        /// The folder.
        path: PathBuf,
        /// The format found, `none` if the folder has data but names no format.
        found: String,
        /// The format this version reads and writes.
        expected: u32,
    },
    /// The embedded database failed.
    #[error("the embedded database failed: {0}")]
    Database(String),
    /// A table cannot be made, or is there with another definition.
    #[error("table {table}: {problem}")]
    Table {
        /// Its logical id in the template.
        table: String,
        /// What is wrong.
        problem: String,
    },
    /// A queue cannot be made, or is not there.
    #[error("queue {queue}: {problem}")]
    Queue {
        /// Its logical id in the template, or its URL.
        queue: String,
        /// What is wrong.
        problem: String,
    },
}
