//! `run.yaml`: the settings of a local run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fanfold::policy::Span;
use serde::Deserialize;

use super::yaml;
use crate::failure::Failure;
use crate::fault::Fault;

/// How long a server may take to listen, if the settings do not set it.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest it may be given.
const LONGEST_START: Duration = Duration::from_secs(3_600);

/// The settings of a local run.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// Program and arguments that serve the batch API.
    pub(super) start: Option<Vec<String>>,
    /// How long it may take to listen.
    start_timeout: Option<Span>,
    /// The file of tasks.
    pub(super) input: Option<PathBuf>,
}

impl Settings {
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let (file, other) = (folder.join("run.yaml"), folder.join("run.yml"));
        if other.exists() {
            let advice = if file.exists() { "delete it: there is a run.yaml" } else { "rename it to run.yaml" };
            return Err(Fault::new(other.display(), format_args!("is not read; {advice}")).into());
        }
        let settings: Self = match std::fs::read_to_string(&file) {
            Ok(text) if yaml::is_empty(&text) => Self::default(),
            Ok(text) => yaml::read(&file, &text, "`start`, `start_timeout` and `input`")?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(Fault::new(file.display(), error).into()),
        };
        if settings.start.as_ref().is_some_and(|start| start.first().is_none_or(String::is_empty)) {
            return Err(Fault::new(file.display(), "`start` is empty, a program and its arguments are expected").into());
        }
        if let Some(limit) = settings.start_timeout
            && (limit.0.is_zero() || limit.0 > LONGEST_START)
        {
            let most = Span(LONGEST_START);
            let problem = format_args!("`start_timeout`: is {limit}, more than 0s and at most {most} is allowed");
            return Err(Fault::new(file.display(), problem).into());
        }
        Ok(settings)
    }

    /// How long the server may take to listen.
    pub(super) fn patience(&self) -> Duration {
        self.start_timeout.map_or(START_TIMEOUT, |limit| limit.0)
    }
}
