//! The data folder: one runner at a time, one format.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::EngineError;

/// The layout of the folder. To be raised when a folder written before can no longer be read.
const FORMAT: u32 = 8;

/// A data folder held by this process until dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    lock: File,
}

/// To close the file is not enough: a process that this one is just starting has it open, too, until its program runs.
impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "the data folder is not unlocked before this process ends");
        }
    }
}

impl Folder {
    /// Makes the folder if it is not there, takes its lock and checks its format.
    pub(crate) fn open(path: &Path) -> Result<Self, EngineError> {
        let failed = |source| EngineError::Folder { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(failed)?;
        let lock = File::create(path.join("fanfold.lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(EngineError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let folder = Self { path: path.to_owned(), lock };
        folder.check_format()?;
        Ok(folder)
    }

    /// The database file.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("fanfold.db")
    }

    fn check_format(&self) -> Result<(), EngineError> {
        let failed = |source| EngineError::Folder { path: self.path.clone(), source };
        let file = self.path.join("format");
        let found = match fs::read_to_string(&file) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        // The format is written before the database, so a folder without either is new, or its first start was cut short.
        if found.is_empty() && !self.database().exists() {
            return fs::write(&file, format!("{FORMAT}\n")).map_err(failed);
        }
        if found == FORMAT.to_string() {
            return Ok(());
        }
        let found = if found.is_empty() { "none".to_owned() } else { found };
        Err(EngineError::Format { path: self.path.clone(), found, expected: FORMAT })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_free_when_it_is_dropped_although_its_lock_is_open_elsewhere() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::open(path.path()).unwrap();
        let elsewhere = folder.lock.try_clone().unwrap();
        assert!(matches!(Folder::open(path.path()), Err(EngineError::InUse { .. })));
        drop(folder);
        drop(Folder::open(path.path()).unwrap());
        drop(elsewhere);
    }
}
