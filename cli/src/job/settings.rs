//! `run.yaml`, and YAML in general.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, Fault};

/// The settings of a local run.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// Program and arguments that serve the batch API.
    pub(super) start: Option<Vec<String>>,
    /// The file of tasks.
    pub(super) input: Option<PathBuf>,
}

impl Settings {
    pub(super) fn read(folder: &Path) -> Result<Self, Failure> {
        let file = folder.join("run.yaml");
        let settings: Self = match std::fs::read_to_string(&file) {
            Ok(text) => read_yaml(&file, &text)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(error) => return Err(Fault::new(file.display(), error).into()),
        };
        if settings.start.as_ref().is_some_and(|start| start.first().is_none_or(String::is_empty)) {
            return Err(Fault::new(file.display(), "`start` is empty, a program and its arguments are wanted").into());
        }
        Ok(settings)
    }
}

/// Reads YAML (JSON is YAML); a fault tells line, column and field.
pub(super) fn read_yaml<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, Failure> {
    // `no` and `on` are words, as YAML 1.2 has it.
    let options = || serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options()).map_err(|error: serde_saphyr::Error| {
        let error = error.without_snippet();
        let place = match error.location() {
            Some(at) => format!("{}:{}:{}", file.display(), at.line(), at.column()),
            None => file.display().to_string(),
        };
        // The YAML reader knows the line, the JSON reader the field and the value.
        let value = serde_saphyr::from_str_with_options::<serde_json::Value>(text, options());
        let problem = value.ok().and_then(|value| fanfold::json::shape::<T>(value).err());
        let problem = problem.map_or_else(|| plain(&error.to_string()).to_owned(), |problem| problem.to_string());
        Fault::new(place, problem).into()
    })
}

/// The message without the location, which goes before it.
fn plain(message: &str) -> &str {
    message.split(" at line ").next().unwrap_or(message)
}
