//! Sources of producers that only this machine has: files, and programs.

use std::path::{Path, PathBuf};

use fanfold::limits::{SOURCE_ANSWER_BYTES_MAX, SOURCE_TIMEOUT};
use fanfold_batch_api::Cause;
use fanfold_produce::{Answer, Ask, Asking, LocalSources, SourceError};

use crate::batch_api::{Input, LocalPrograms};

/// Files and programs of a folder.
#[derive(Debug)]
pub(crate) struct LocalFolder {
    folder: PathBuf,
    programs: LocalPrograms,
}

impl LocalFolder {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { programs: LocalPrograms::new(folder.clone()), folder }
    }

    /// Runs a program for one question. A failed run is repeated, unless it said too much.
    async fn run(&self, command: &[String], ask: &Ask) -> Result<Answer, SourceError> {
        let bytes = serde_json::to_vec(ask).map_err(SourceError::for_good)?;
        let input =
            Input { name: "the source", bytes, key: None, timeout: SOURCE_TIMEOUT, most: SOURCE_ANSWER_BYTES_MAX };
        let output = self.programs.output(command, input).await.map_err(|error| SourceError {
            for_good: error.cause == Cause::BadAnswer,
            ..SourceError::again(error.message)
        })?;
        let told = |error: SourceError| SourceError { message: output.problem(&error.message), ..error };
        Answer::read(&output.bytes, ask).map_err(told)
    }
}

impl LocalSources for LocalFolder {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn ask_program<'a>(&'a self, command: &'a [String], ask: &'a Ask) -> Asking<'a> {
        Box::pin(self.run(command, ask))
    }
}
