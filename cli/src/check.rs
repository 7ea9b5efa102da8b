//! Looks at every task of a file before the first one is registered.

use fanfold::content;
use fanfold::ids::derived;
use fanfold::policy::ExpressionError;
use uuid::Uuid;

use crate::count::count;
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

/// Rows with an empty key that are named.
const NAMED: usize = 5;

/// Rows whose key is empty. It is a key like any other, so only one of them is handled.
#[derive(Debug, Default)]
pub(crate) struct BlankKeys {
    count: u64,
    /// The lines of the first ones.
    lines: Vec<u64>,
}

impl BlankKeys {
    fn add(&mut self, line: u64) {
        self.count += 1;
        if self.lines.len() < NAMED {
            self.lines.push(line);
        }
    }

    /// A warning, if there is more than one.
    pub(crate) fn warning(&self, job: &Job) -> Option<String> {
        if self.count < 2 {
            return None;
        }
        let lines: Vec<String> = self.lines.iter().map(ToString::to_string).collect();
        let more = if self.count > self.lines.len() as u64 { ", …" } else { "" };
        Some(format!(
            "{}: {} have an empty `key` (lines {}{more}); only one of them will be handled{}",
            job.input.file.display(),
            count(self.count, "row", "rows"),
            lines.join(", "),
            if job.policy.policy.scope.is_some() { " per value of `scope`" } else { "" }
        ))
    }
}

/// Checks every task: it can be read, has a target and a key, and is not too large. `so_far` gets the number
/// of rows so far. Returns in which pages they are read, too.
pub(crate) fn check(job: &Job, so_far: impl Fn(u64)) -> Result<(Checked, Pages, BlankKeys), Failure> {
    let mut pages = Pages::default();
    let mut blank = BlankKeys::default();
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
        match job.policy.assign(&row.content, "") {
            Ok(assigned) if assigned.key.as_deref() == Some("") => blank.add(row.line),
            Ok(_) => {}
            Err((field, error)) => {
                let hint = hint(job, &row.content, columns.as_deref(), &error);
                let problem = format!("`{field}` of {}: {error}{hint}", job.policy_file.display());
                faults.add(Fault::row(&job.input.file, row.line, problem));
            }
        }
    }
    faults.check()?;
    Ok((checked, pages, blank))
}

/// What else helps to see why an expression has no usable value for a task.
fn hint(job: &Job, content: &serde_json::Value, columns: Option<&[String]>, error: &ExpressionError) -> String {
    match (columns, content) {
        (Some(_), _) if error.finds_text() => {
            "; columns of CSV are texts: write double(content.…) for a number, or bool(content.…) for true or false"
                .to_owned()
        }
        (Some(columns), _) => {
            // In backticks spaces at their edges can be seen.
            let columns: Vec<String> = columns.iter().map(|column| format!("`{column}`")).collect();
            format!("; the columns are {}", columns.join(", "))
        }
        (None, serde_json::Value::Array(_)) => format!("; the line is an array. {}", other_json(&job.input.file)),
        _ => String::new(),
    }
}
