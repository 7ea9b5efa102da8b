//! `fanfold init`: a folder to begin with.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::client::print;
use crate::failure::Failure;
use crate::fault::{Fault, Faults};
use crate::folder::{IS_A_FILE, no_folder};
use crate::say::say;

/// The commented policy, in which this stands for the batch API.
const POLICY: &str = include_str!("init/files/policy.yaml");
const BATCH_API: &str = "BATCH_API";

const ROWS: &str = include_str!("init/files/orders.csv");

/// Makes a folder for `fanfold run`: a commented policy, a few rows, and a batch API in your language.
///
///   fanfold init orders && fanfold run orders
///
/// No file that exists is changed.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InitArgs {
    /// The folder. It is made if it does not exist.
    folder: PathBuf,
    /// The language of the batch API.
    #[arg(long, value_enum, default_value_t = Language::Python)]
    language: Language,
    /// Print what was made as one JSON document.
    #[arg(long)]
    json: bool,
}

/// What the batch API is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// A server, with Python's own library.
    Python,
    /// A server, with Node's own library.
    Javascript,
    /// A program that is started once per batch.
    Shell,
}

/// A file of the folder.
struct File {
    name: &'static str,
    text: String,
    program: bool,
}

impl File {
    fn new(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text.into(), program: false }
    }
}

impl Language {
    fn files(self) -> Vec<File> {
        let served = "{url: \"http://127.0.0.1:${PORT}/orders\", timeout: 10s}";
        let started = |program: &str| {
            let start = "# Started for each run, with a free port in the variable PORT.";
            File::new("run.yaml", format!("{start}\nstart: {program}\n"))
        };
        let (batch_api, mut files) = match self {
            Self::Python => {
                let program = File::new("batch_api.py", include_str!("init/files/batch_api.py"));
                (served, vec![program, started("[python3, batch_api.py]")])
            }
            Self::Javascript => {
                let program = File::new("batch-api.mjs", include_str!("init/files/batch-api.mjs"));
                (served, vec![program, started("[node, batch-api.mjs]")])
            }
            Self::Shell => {
                let program = File::new("batch-api.sh", include_str!("init/files/batch-api.sh"));
                ("{command: [./batch-api.sh], timeout: 10s}", vec![File { program: true, ..program }])
            }
        };
        files.push(File::new("policy.yaml", POLICY.replace(BATCH_API, batch_api)));
        files.push(File::new("orders.csv", ROWS));
        files
    }
}

pub(crate) fn run(args: &InitArgs) -> Result<(), Failure> {
    let InitArgs { folder, language, json } = args;
    if let Some(file) = no_folder(folder) {
        return Err(Fault::new(file.display(), IS_A_FILE).into());
    }
    let files = language.files();
    let mut faults = Faults::default();
    for file in &files {
        let path = folder.join(file.name);
        if path.symlink_metadata().is_ok() {
            faults.add(Fault::new(path.display(), "exists already; a folder without it is expected"));
        }
    }
    faults.check()?;
    DirBuilder::new().recursive(true).create(folder).map_err(|error| Failure::io(folder.display(), error))?;
    for file in &files {
        file.write(folder)?;
    }
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    if *json {
        print(&format!("{:#}", json!({"folder": folder.to_string_lossy(), "files": names})))?;
        return Ok(());
    }
    say(format_args!("{}: {}", folder.display(), names.join(", ")));
    say(format_args!("Next: fanfold run {}", folder.display()));
    Ok(())
}

impl File {
    fn write(&self, folder: &Path) -> Result<(), Failure> {
        let path = folder.join(self.name);
        let failed = |error| Failure::io(path.display(), error);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if self.program {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o755);
        }
        options.open(&path).and_then(|mut file| file.write_all(self.text.as_bytes())).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_names_its_batch_api() {
        for language in Language::value_variants() {
            let files = language.files();
            let policy = files.iter().find(|file| file.name == "policy.yaml").map(|file| file.text.as_str());
            assert!(
                policy.is_some_and(|text| text.contains("batch_api: {") && !text.contains(BATCH_API)),
                "{language:?}"
            );
        }
    }
}
