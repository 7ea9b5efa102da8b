//! Looks at every task of a file before the first one is registered.

use fanfold::content;
use fanfold::ids::derived;
use uuid::Uuid;

use crate::failure::{Failure, Fault, Faults};
use crate::job::Job;

/// What a check found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// How many tasks there are.
    pub(crate) tasks: u64,
    /// The same for the same tasks in the same order.
    pub(crate) fingerprint: Uuid,
}

/// Checks every task: it can be read, has a target and a key, and is not too large.
pub(crate) fn check(job: &Job) -> Result<Checked, Failure> {
    let mut checked = Checked { tasks: 0, fingerprint: Uuid::nil() };
    let mut faults = Faults::default();
    for row in job.input.rows()? {
        let row = match row {
            Ok(row) => row,
            Err(fault) => {
                faults.add(fault);
                continue;
            }
        };
        let place = || format!("{}:{}", job.input.file.display(), row.line);
        match content::encode(&row.content) {
            Ok(text) => {
                checked.tasks += 1;
                checked.fingerprint = derived("task of a file", &[checked.fingerprint.as_bytes(), text.as_bytes()]);
            }
            Err(error) => {
                faults.add(Fault::new(place(), error));
                continue;
            }
        }
        if let Err((field, error)) = job.policy.place(&row.content, "") {
            let columns = job.input.columns().map(|columns| format!("; the columns are {}", columns.join(", ")));
            let policy = job.policy_file.display();
            let problem = format!("`{field}` of {policy}: {error}{}", columns.unwrap_or_default());
            faults.add(Fault::new(place(), problem));
        }
    }
    faults.check()?;
    Ok(checked)
}
