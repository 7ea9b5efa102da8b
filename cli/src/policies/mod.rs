//! Policies in files: YAML or JSON, one or more in each.

mod documents;
mod locate;

use std::io::Read;
use std::path::{Path, PathBuf};

use fanfold::policy::{CompiledPolicy, FieldError, Policy};

use crate::failure::Failure;
use crate::fault::{Fault, Faults};
use crate::job::{PORT, yaml};

/// What is expected in place of an empty file.
const WANTED: &str = "a policy with at least `kind`, `target` and `batch_api`";

/// The name of standard input among files.
const STANDARD_INPUT: &str = "-";

/// A policy from a file, checked.
#[derive(Debug)]
pub(crate) struct FilePolicy {
    /// Its place: the file, and the line in which it begins.
    pub(crate) place: String,
    /// The policy, ready to place tasks.
    pub(crate) compiled: CompiledPolicy,
}

impl FilePolicy {
    pub(crate) fn policy(&self) -> &Policy {
        &self.compiled.policy
    }

    pub(crate) fn kind(&self) -> &str {
        &self.policy().kind
    }
}

/// Whether one of the files is standard input.
pub(crate) fn from_standard_input(files: &[PathBuf]) -> bool {
    files.iter().any(|file| file.as_os_str() == STANDARD_INPUT)
}

/// Reads all policies of files, and checks them as the API does. `commands`: a batch API may be a command.
pub(crate) fn read(files: &[PathBuf], commands: bool) -> Result<Vec<FilePolicy>, Failure> {
    let mut faults = Faults::default();
    let mut policies: Vec<FilePolicy> = Vec::new();
    for file in files {
        let (name, text) = text_of(file)?;
        let documents = documents::split(&text);
        if documents.is_empty() {
            faults.add(Fault::new(name.display(), format_args!("is empty; {WANTED} is expected")));
        }
        for document in documents {
            match read_one(&name, &document.text, commands) {
                Err(found) => found.into_iter().for_each(|fault| faults.add(fault)),
                Ok(compiled) => {
                    let place = format!("{}:{}", name.display(), document.line);
                    let kind = &compiled.policy.kind;
                    if let Some(other) = policies.iter().find(|other| other.kind() == kind) {
                        let problem = format!(
                            "`kind`: is `{kind}`, like that of the policy at {}; one policy per kind is allowed",
                            other.place
                        );
                        faults.add(Fault::new(&place, problem));
                    }
                    policies.push(FilePolicy { place, compiled });
                }
            }
        }
    }
    faults.check().map(|()| policies)
}

/// The name and the text of a file.
fn text_of(file: &Path) -> Result<(PathBuf, String), Failure> {
    if file.as_os_str() == STANDARD_INPUT {
        let (name, mut text) = (PathBuf::from("standard input"), String::new());
        std::io::stdin().read_to_string(&mut text).map_err(|error| Fault::new(name.display(), error))?;
        return Ok((name, text));
    }
    let text = std::fs::read_to_string(file).map_err(|error| Fault::new(file.display(), error))?;
    Ok((file.to_owned(), text))
}

/// Reads the policy in a document. Returns every fault with its place.
fn read_one(file: &Path, text: &str, commands: bool) -> Result<CompiledPolicy, Vec<Fault>> {
    let policy: Policy = yaml::read(file, text, WANTED).map_err(|fault| vec![fault])?;
    let needs_commands = policy.needs_commands().filter(|_| !commands);
    let mut errors = match CompiledPolicy::new(policy) {
        Ok(compiled) if needs_commands.is_none() => return Ok(compiled),
        Ok(_) => Vec::new(),
        Err(errors) => errors.0,
    };
    errors.extend(needs_commands);
    if let Some(error) = errors.iter_mut().find(|error| error.field == "batch_api.url" && error.problem.contains(PORT))
    {
        error.problem = format!("has {PORT}, which only `fanfold run` replaces");
    }
    Err(located(file, text, errors))
}

/// What is wrong with the fields of a policy, with their places in its text.
pub(crate) fn located(file: &Path, text: &str, errors: Vec<FieldError>) -> Vec<Fault> {
    let lines = locate::Fields::of(text);
    let fault = |FieldError { field, problem }: FieldError| {
        let hint = yaml::hint_of_comment(text, &field).unwrap_or_default();
        let place = match lines.place(&field) {
            Some((line, column)) => format!("{}:{line}:{column}", file.display()),
            None => file.display().to_string(),
        };
        Fault::new(place, format_args!("`{field}`: {problem}{hint}"))
    };
    errors.into_iter().map(fault).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.yaml");
        std::fs::write(&file, text).unwrap();
        (folder, vec![file])
    }

    fn faults(text: &str, commands: bool) -> String {
        let (folder, files) = file(text);
        let faults = read(&files, commands).unwrap_err().to_string();
        faults.replace(&format!("{}/", folder.path().display()), "")
    }

    const PARCEL: &str = "kind: parcel\ntarget: content.depot\nbatch_api: {url: 'https://example.com/'}\n";

    #[test]
    fn several_policies_are_read_from_one_file() {
        let json = r#"{"kind": "letter", "target": "kind", "batch_api": {"url": "https://example.com/"}}"#;
        let (_folder, files) = file(&format!("# two\n---\n{PARCEL}---\n{json}\n...\n"));
        let policies = read(&files, false).unwrap();
        assert_eq!(policies.iter().map(FilePolicy::kind).collect::<Vec<_>>(), ["parcel", "letter"]);
        assert!(policies[1].place.ends_with("p.yaml:7"), "{}", policies[1].place);
    }

    #[test]
    fn every_fault_is_named_with_its_place() {
        let text = format!(
            "{PARCEL}max_batch: 0\nlinger: 500us\n---\nkind: a b\ntarget: content.\nbatch_api:\n  url: ftp://x\n"
        );
        let shown = faults(&text, false);
        for part in [
            "p.yaml:4:12: `max_batch`: is 0, 1 to 10000 is allowed",
            "p.yaml:5:9: `linger`: is 500us",
            "p.yaml:7:7: `kind`: is `a b`",
            "p.yaml:8:9: `target`: `content.` does not compile",
            "p.yaml:10:8: `batch_api.url`: is `ftp://x`",
        ] {
            assert!(shown.contains(part), "`{part}` is not in:\n{shown}");
        }
        assert_eq!(shown.lines().count(), 5, "{shown}");
    }

    #[test]
    fn places_are_those_in_the_file_and_not_in_the_document() {
        let shown = faults(&format!("{PARCEL}---\n{PARCEL}max_batch: many\n"), false);
        assert!(shown.starts_with("p.yaml:8:") && shown.contains("`max_batch`"), "{shown}");
        let shown = faults(&format!("{PARCEL}---\nkind: [\n"), false);
        assert!(shown.contains("is not valid YAML") && shown.contains("p.yaml:"), "{shown}");
        assert!(faults("# nothing\n---\n", false).contains("is empty"));
    }

    #[test]
    fn a_kind_has_one_policy() {
        let shown = faults(&format!("{PARCEL}---\n{PARCEL}"), false);
        assert_eq!(
            shown,
            "p.yaml:5: `kind`: is `parcel`, like that of the policy at p.yaml:1; one policy per kind is allowed"
        );
    }

    #[test]
    fn the_port_of_a_run_is_no_port_of_a_stack() {
        let shown = faults("kind: row\ntarget: kind\nbatch_api: {url: 'http://127.0.0.1:${PORT}/'}\n", true);
        assert_eq!(shown, "p.yaml:3:18: `batch_api.url`: has ${PORT}, which only `fanfold run` replaces");
    }

    #[test]
    fn commands_are_accepted_where_they_are_run() {
        let text = "kind: row\ntarget: kind\nbatch_api: {command: [./row]}\n";
        let (_folder, files) = file(text);
        assert_eq!(read(&files, true).unwrap().len(), 1);
        let shown = faults(text, false);
        assert!(
            shown.contains("p.yaml:3:") && shown.contains("`batch_api.command`: is allowed only in the local runner"),
            "{shown}"
        );
    }
}
