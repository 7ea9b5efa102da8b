//! A data folder belongs to its run: which run it holds, and what is to be done with it.

use std::path::{Path, PathBuf};

use uuid::Uuid;

use super::record::{RecordFile, RunRecord};
use super::summary::Summary;
use crate::args::RunArgs;
use crate::check::Checked;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::job::Job;

/// What is to be done with a data folder.
#[derive(Debug)]
pub(super) enum Plan {
    /// The run is finished; its summary is shown.
    Show(Box<Summary>),
    /// The run is resumed.
    GoOn(Box<RunRecord>),
    /// A new run.
    New,
}

/// The file of the run that the data folder holds, if it holds one that is resumed or shown.
pub(super) fn held_input(args: &RunArgs) -> Result<Option<PathBuf>, Failure> {
    let Some(data) = args.data.as_deref() else { return Ok(None) };
    let held = RecordFile::in_folder(data).read()?;
    Ok(held.filter(|held| !args.again || held.summary.is_none()).map(|held| held.input))
}

/// Looks at the data folder, if there is one, and refuses it if it belongs to another run.
pub(super) fn plan(args: &RunArgs, job: &Job, checked: Checked) -> Result<Plan, Failure> {
    let Some(data) = args.data.as_deref() else { return Ok(Plan::New) };
    let file = RecordFile::in_folder(data);
    let Some(held) = file.read()? else { return Ok(Plan::New) };
    let wanted = record(job, checked, Uuid::nil());
    // A folder that was moved, with everything in it, is the same folder.
    let moved = held.fingerprint == checked.fingerprint && !held.input.exists();
    let plan = decide(held.clone(), &wanted, moved, args.again);
    if matches!(plan, Ok(Plan::Show(_))) && held.input != wanted.input {
        // As for a run that is resumed. It can be shown even where nothing can be written.
        let _ = file.write(&RunRecord { input: wanted.input, ..held });
    }
    plan.map_err(|problem| Fault::new(data.display(), problem).into())
}

/// The run that is resumed in a data folder, or a new one, recorded there.
pub(super) fn take_up(args: &RunArgs, job: &Job, checked: Checked, new: Uuid) -> Result<(RunRecord, bool), Failure> {
    let wanted = record(job, checked, new);
    let (record, resumed) = match plan(args, job, checked)? {
        Plan::GoOn(held) if held.input == wanted.input => return Ok((*held, true)),
        // From now on it is known where the folder was moved to: another file may come to its old place.
        Plan::GoOn(held) => (RunRecord { input: wanted.input, ..*held }, true),
        Plan::New => (wanted, false),
        // It would begin anew.
        Plan::Show(_) => {
            let data = args.data.as_deref().unwrap_or(Path::new("")).display();
            let problem = "holds a run that another process has just finished; the same command shows its summary";
            return Err(Fault::new(data, problem).into());
        }
    };
    if let Some(data) = &args.data {
        RecordFile::in_folder(data).write(&record)?;
    }
    Ok((record, resumed))
}

fn record(job: &Job, checked: Checked, key: Uuid) -> RunRecord {
    let input = &job.input.file;
    RunRecord {
        key,
        input: input.canonicalize().unwrap_or_else(|_| input.clone()),
        fingerprint: checked.fingerprint,
        kind: job.policy.policy.kind.clone(),
        summary: None,
    }
}

/// Compares the run in the folder with the requested one.
fn decide(held: RunRecord, wanted: &RunRecord, moved: bool, again: bool) -> Result<Plan, String> {
    let state = if held.summary.is_some() { "finished" } else { "unfinished" };
    let (input, new) = (held.input.display(), wanted.input.display());
    // Before paths were written from the root on, only the name can be compared.
    let same_input = if held.input.is_absolute() {
        held.input == wanted.input
    } else {
        Path::new(wanted.input.file_name().unwrap_or_default()).ends_with(held.input.file_name().unwrap_or_default())
    };
    if !same_input && !moved {
        return Err(format!(
            "holds the {state} run of {input}; a data folder belongs to its run. Give {new} a folder of its own with --data"
        ));
    }
    let mut differences = Vec::new();
    if held.fingerprint != wanted.fingerprint {
        differences.push("other tasks than the file now has (or another --limit)".to_owned());
    }
    if held.kind != wanted.kind {
        differences.push(format!("tasks of kind `{}`, not `{}`", held.kind, wanted.kind));
    }
    if held.summary.is_some() && again {
        return Ok(Plan::New);
    }
    if !differences.is_empty() {
        let advice = if held.summary.is_some() {
            "start a new run here with --again, or use another folder"
        } else {
            "finish that run as it was, or use another folder"
        };
        return Err(format!("holds the {state} run of {input} with {}; {advice}", differences.join(" and ")));
    }
    Ok(match held.summary {
        Some(summary) => Plan::Show(Box::new(summary)),
        None => Plan::GoOn(Box::new(held)),
    })
}
