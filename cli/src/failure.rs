//! Why a command ends without having done its work.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitCode;

use fanfold::config::ConfigError;
use fanfold::queue::QueueError;
use fanfold::store::StoreError;
use fanfold::tracking::TrackingError;
use fanfold_local::{EngineError, TemplateError};
use fanfold_register::RegisterError;
use fanfold_sweep::SweepError;

/// Faults shown at most; there may be one a row.
const SHOWN: usize = 10;

/// Something the user gave that can not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where: a file, perhaps with line and column.
    pub(crate) place: String,
    /// What is wrong there, and what is allowed.
    pub(crate) problem: String,
}

impl Fault {
    pub(crate) fn new(place: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self { place: place.to_string(), problem: problem.to_string() }
    }
}

/// Faults, of which only the first are kept.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    first: Vec<Fault>,
    count: usize,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.count += 1;
        if self.first.len() < SHOWN {
            self.first.push(fault);
        }
    }

    pub(crate) fn check(self) -> Result<(), Failure> {
        if self.count == 0 { Ok(()) } else { Err(Failure::Unusable(self)) }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let mut faults = Faults::default();
        faults.add(fault);
        Self::Unusable(faults)
    }
}

/// Why a command ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{0}")]
    Unusable(Faults),
    #[error("stopped{}", if *.kept { "; start it again with the same --data to go on" } else { "" })]
    Stopped { kept: bool },
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
    #[error(transparent)]
    Register(#[from] RegisterError),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    #[error("TLS can not be set up: {0}")]
    Tls(String),
    #[error("the batch API ended ({status}) before the run did{}", introduce(.said))]
    BatchApiEnded { status: String, said: String },
    #[error("{} can not be read: {problem}", .file.display())]
    Record { file: PathBuf, problem: String },
    #[error("a step can not be run: {0}")]
    Internal(String),
}

fn introduce(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; it said:\n{said}") }
}

impl Failure {
    pub(crate) fn io(what: impl fmt::Display, source: std::io::Error) -> Self {
        Self::Io { what: what.to_string(), source }
    }

    /// The exit status that tells what sort of failure it was.
    pub(crate) fn exit(&self) -> ExitCode {
        match self {
            Self::Unusable(_) => ExitCode::from(2),
            // 128 and the number of SIGINT, as shells have it.
            Self::Stopped { .. } => ExitCode::from(130),
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, fault) in self.first.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{}: {}", fault.place, fault.problem)?;
        }
        let more = self.count - self.first.len();
        if more > 0 { write!(f, "\n… and {more} more") } else { Ok(()) }
    }
}
