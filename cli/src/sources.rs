//! Sources of producers that only this machine has: files, programs, and the file that is run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanfold::limits::{SOURCE_ANSWER_BYTES_MAX, SOURCE_TIMEOUT};
use fanfold::producing::RunRows;
use fanfold_batch_api::Cause;
use fanfold_produce::{Asking, LocalSources, SourceAnswer, SourceError, SourceRequest};

use crate::batch_api::{Input, LocalPrograms};
use crate::run::FileRows;

/// Files and programs of a folder.
#[derive(Debug)]
pub(crate) struct LocalFolder {
    folder: PathBuf,
    programs: LocalPrograms,
    /// The file that is run, if one is.
    rows: Option<Arc<FileRows>>,
}

impl LocalFolder {
    pub(crate) fn new(folder: PathBuf, rows: Option<Arc<FileRows>>) -> Self {
        Self { programs: LocalPrograms::new(folder.clone()), folder, rows }
    }

    /// Runs a program for one question. A failed run is repeated, unless it said too much.
    async fn run(&self, command: &[String], ask: &SourceRequest) -> Result<SourceAnswer, SourceError> {
        let bytes = serde_json::to_vec(ask).map_err(SourceError::for_good)?;
        let input = Input {
            name: "the source",
            bytes,
            variables: Vec::new(),
            timeout: SOURCE_TIMEOUT,
            most: SOURCE_ANSWER_BYTES_MAX,
        };
        let output = self.programs.output(command, input).await.map_err(|error| SourceError {
            for_good: error.cause == Cause::BadAnswer,
            ..SourceError::again(error.message)
        })?;
        let with_output = |error: SourceError| SourceError { message: output.problem(&error.message), ..error };
        SourceAnswer::read(&output.bytes, ask).map_err(with_output)
    }
}

impl LocalSources for LocalFolder {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn ask_program<'a>(&'a self, command: &'a [String], ask: &'a SourceRequest) -> Asking<'a> {
        Box::pin(self.run(command, ask))
    }

    fn ask_rows<'a>(&'a self, rows: &'a RunRows, ask: &'a SourceRequest) -> Asking<'a> {
        Box::pin(async move {
            match &self.rows {
                Some(file) => file.ask(rows, ask).await,
                None => Err(SourceError::for_good(
                    "only `fanfold run` reads the rows of a run: repeat it with the same --data",
                )),
            }
        })
    }
}
