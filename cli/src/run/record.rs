//! What a data folder remembers of its run, so that a run that was ended can be resumed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::summary::Summary;
use crate::failure::Failure;

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    /// Names the run; its fan-out is opened under this key, so that it is opened once.
    pub(crate) key: Uuid,
    /// The file of tasks, from the root on.
    pub(crate) input: PathBuf,
    /// What was in it.
    pub(crate) fingerprint: Uuid,
    /// The kind of its tasks.
    pub(crate) kind: String,
    /// How it ended, if it did.
    pub(crate) summary: Option<Summary>,
}

/// Where a record is kept.
#[derive(Debug)]
pub(crate) struct RecordFile(PathBuf);

impl RecordFile {
    pub(crate) fn in_folder(data: &Path) -> Self {
        Self(data.join("run.json"))
    }

    /// The record, if there is one.
    pub(crate) fn read(&self) -> Result<Option<RunRecord>, Failure> {
        let text = match std::fs::read(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::io(self.0.display(), error)),
        };
        let record = serde_json::from_slice(&text)
            .map_err(|error| Failure::Record { file: self.0.clone(), problem: error.to_string() })?;
        Ok(Some(record))
    }

    /// Writes a record; the file is there whole or not at all.
    pub(crate) fn write(&self, record: &RunRecord) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(record).map_err(|error| Failure::Internal(error.to_string()))?;
        let new = self.0.with_extension("new");
        std::fs::write(&new, text)
            .and_then(|()| std::fs::File::open(&new)?.sync_all())
            .and_then(|()| std::fs::rename(&new, &self.0))
            .map_err(|error| Failure::io(self.0.display(), error))
    }
}
