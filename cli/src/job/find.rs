//! Which files of a folder are meant.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::fault::Fault;
use crate::rows::{FORMATS, advice};

const POLICIES: [&str; 3] = ["policy.yaml", "policy.yml", "policy.json"];

/// The policy of a folder.
pub(super) fn policy(folder: &Path) -> Result<PathBuf, Failure> {
    let found: Vec<PathBuf> = POLICIES.iter().map(|name| folder.join(name)).filter(|file| file.is_file()).collect();
    match found.as_slice() {
        [file] => Ok(file.clone()),
        [] => Err(Fault::new(folder.display(), "has no policy.yaml").into()),
        _ => Err(Fault::new(folder.display(), format_args!("has several policies: {}", names(&found))).into()),
    }
}

/// The file of tasks: the one asked for, the one the settings name, the one of the run that is held, or the only one.
pub(super) fn input(
    folder: &Path,
    asked: Option<&Path>,
    settings: Option<&Path>,
    held: Option<&Path>,
) -> Result<PathBuf, Failure> {
    if let Some(file) = asked {
        return existing(file.to_owned());
    }
    if let Some(file) = settings {
        return existing(folder.join(file));
    }
    let entries = std::fs::read_dir(folder).map_err(|error| Fault::new(folder.display(), error))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|file| file.is_file() && !is_hidden(file));
    files.sort();
    let of = |formats: &[&str]| -> Vec<PathBuf> {
        let is = |file: &&PathBuf| extension(file).is_some_and(|extension| formats.contains(&extension.as_str()));
        files.iter().filter(is).cloned().collect()
    };
    let found = of(&FORMATS);
    // The calls of a run may write others beside it.
    if let Some(file) = held.and_then(|held| of_run(&found, held)) {
        return Ok(file.clone());
    }
    match found.as_slice() {
        [file] => Ok(file.clone()),
        [] => {
            let not_policy = |file: &&PathBuf| !POLICIES.iter().any(|name| file.ends_with(name));
            let hint = files.iter().filter(not_policy).find_map(|file| advice(file)).map(|hint| format!(". {hint}"));
            let problem =
                format!("has no tasks; a *.csv, *.ndjson or *.jsonl file is expected{}", hint.unwrap_or_default());
            Err(Fault::new(folder.display(), problem).into())
        }
        [first, ..] => {
            // The option is relative to the working directory, and the setting to the folder.
            let (all, path, name) = (names(&found), first.display(), names(std::slice::from_ref(first)));
            let problem = format!(
                "has several files of tasks: {all}; choose one, such as the first with `--input {path}`, or with \
                 `input: {name}` in run.yaml"
            );
            Err(Fault::new(folder.display(), problem).into())
        }
    }
}

/// The file of a run, which is held from the root on: that file, or the one of its name if the folder was moved.
fn of_run<'a>(found: &'a [PathBuf], held: &Path) -> Option<&'a PathBuf> {
    let same = |file: &&PathBuf| file.canonicalize().is_ok_and(|file| file == held);
    let named = |file: &&PathBuf| file.file_name() == held.file_name();
    found.iter().find(same).or_else(|| found.iter().find(named))
}

/// Whether a file's name begins with a dot, as those do in which macOS keeps what it knows about other files.
fn is_hidden(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn existing(file: PathBuf) -> Result<PathBuf, Failure> {
    if file.is_file() { Ok(file) } else { Err(Fault::new(file.display(), "is not a file").into()) }
}

/// A file's extension in small letters.
pub(crate) fn extension(file: &Path) -> Option<String> {
    file.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase())
}

fn names(files: &[PathBuf]) -> String {
    let names = files.iter().filter_map(|file| file.file_name()).map(|name| name.to_string_lossy().into_owned());
    names.collect::<Vec<_>>().join(", ")
}
