//! Why a command ends without having done its work.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use fanfold::aws::{QueueError, StoreError};
use fanfold::config::ConfigError;
use fanfold::tracking::TrackingError;
use fanfold_local::{EngineError, TemplateError};
use fanfold_sweep::SweepError;

use crate::client::Refusal;
use crate::fault::{Fault, Faults};
use crate::stop::Signal;

/// Why a command ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Unusable(Faults),
    #[error("stopped{}", resume(*.kept))]
    Stopped { kept: bool, by: Signal },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error(transparent)]
    Tracking(#[from] TrackingError),
    #[error("the tasks cannot be registered: {0}")]
    Produce(String),
    #[error("{0}")]
    Rows(String),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error("the batch API ended ({status}) before the run did{}{}", resume(*.kept), introduce(.said))]
    BatchApiEnded { status: String, said: String, kept: bool },
    #[error("{} cannot be read: {problem}", .file.display())]
    Record { file: PathBuf, problem: String },
    #[error("{0}")]
    Local(String),
    #[error("internal error: {0}; please report it")]
    Internal(String),
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// How a run whose state is kept goes on.
fn resume(kept: bool) -> &'static str {
    if kept { "; repeat the command with the same --data to resume" } else { "" }
}

fn introduce(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; its last output:\n{said}") }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let mut faults = Faults::default();
        faults.add(fault);
        Self::Unusable(faults)
    }
}

impl Failure {
    pub(crate) fn io(what: impl fmt::Display, source: std::io::Error) -> Self {
        Self::Io { what: what.to_string(), source }
    }

    /// The exit status for this sort of failure.
    pub(crate) fn exit(&self) -> ExitCode {
        match self {
            Self::Unusable(_) | Self::Rows(_) => ExitCode::from(2),
            Self::Refused(refusal) if refusal.is_of_what_was_given() => ExitCode::from(2),
            Self::Stopped { by, .. } => ExitCode::from(*by),
            _ => ExitCode::FAILURE,
        }
    }
}
