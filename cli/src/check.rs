//! Looks at every task of a file before the first one is registered.

use fanfold::content;
use fanfold::ids::derived;
use uuid::Uuid;

use crate::failure::Failure;
use crate::fault::{Fault, Faults};
use crate::job::Job;
use crate::pages::Pages;
use crate::rows::other_json;

/// What a check found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// How many tasks there are.
    pub(crate) tasks: u64,
    /// The same for the same tasks in the same order.
    pub(crate) fingerprint: Uuid,
}

/// Rows from one look at how far it is to the next.
const LOOK: u64 = 10_000;

/// Checks every task: it can be read, has a target and a key, and is not too large. `so_far` gets the number
/// of rows so far. Returns in which pages they are read, too.
pub(crate) fn check(job: &Job, so_far: impl Fn(u64)) -> Result<(Checked, Pages), Failure> {
    let mut pages = Pages::default();
    let mut checked = Checked { tasks: 0, fingerprint: Uuid::nil() };
    let mut faults = Faults::default();
    let columns = job.input.columns();
    for (row, number) in job.input.rows()?.zip(1_u64..) {
        if number.is_multiple_of(LOOK) {
            so_far(number);
        }
        let row = match row {
            Ok(row) => row,
            Err(fault) => {
                faults.add(fault);
                continue;
            }
        };
        match content::encode(&row.content) {
            Ok(text) => {
                checked.tasks += 1;
                pages.add(&row, text.len());
                checked.fingerprint = derived::file_fingerprint(checked.fingerprint, &text);
            }
            Err(error) => {
                faults.add(Fault::row(&job.input.file, row.line, error));
                continue;
            }
        }
        if let Err((field, error)) = job.policy.assign(&row.content, "") {
            let policy = job.policy_file.display();
            let problem = format!("`{field}` of {policy}: {error}{}", hint(job, &row.content, columns.as_deref()));
            faults.add(Fault::row(&job.input.file, row.line, problem));
        }
    }
    faults.check()?;
    Ok((checked, pages))
}

/// What else helps to see why an expression has no value for a task.
fn hint(job: &Job, content: &serde_json::Value, columns: Option<&[String]>) -> String {
    match (columns, content) {
        (Some(columns), _) => format!("; the columns are {}", columns.join(", ")),
        (None, serde_json::Value::Array(_)) => format!("; the line is an array. {}", other_json(&job.input.file)),
        _ => String::new(),
    }
}
