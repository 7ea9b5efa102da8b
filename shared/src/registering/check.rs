//! Whether tasks can be accepted, and where they belong.

use std::collections::HashSet;
use std::fmt;

use crate::aws::StoreError;
use crate::content;
use crate::grouping::{BatchSize, Load};
use crate::ids::{TaskId, derived};
use crate::limits::{PROBLEM_FIELDS_MAX, TASKS_PER_REQUEST_MAX};
use crate::messages::TaskRequest;
use crate::policy::{CompiledPolicy, unknown_kind};
use crate::store::tasks::Key;
use serde::Serialize;

use super::{Assigned, RegisterError, Registrar};

/// Why a task cannot be accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskFault {
    /// Its position in the request.
    pub index: usize,
    /// The field.
    pub field: String,
    /// Its value and what is allowed.
    pub problem: String,
}

impl fmt::Display for TaskFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path(), self.problem)
    }
}

/// The field of a fault in the list itself, which belongs to no task.
const LIST: &str = "tasks";

impl TaskFault {
    /// The field in the request.
    #[must_use]
    pub fn path(&self) -> String {
        if self.field == LIST { LIST.to_owned() } else { format!("tasks[{}].{}", self.index, self.field) }
    }

    /// Refuses a request that has faults.
    pub(crate) fn refuse(mut faults: Vec<Self>) -> Result<(), RegisterError> {
        faults.truncate(PROBLEM_FIELDS_MAX);
        if faults.is_empty() { Ok(()) } else { Err(RegisterError::Refused(faults)) }
    }
}

/// Checks how many tasks a request of a client has.
///
/// # Errors
/// It has none, or too many.
pub fn check_count(tasks: usize) -> Result<(), RegisterError> {
    if (1..=TASKS_PER_REQUEST_MAX).contains(&tasks) {
        return Ok(());
    }
    let problem = format!("has {tasks} tasks, 1 to {TASKS_PER_REQUEST_MAX} are allowed");
    Err(RegisterError::Refused(vec![TaskFault { index: 0, field: LIST.to_owned(), problem }]))
}

impl Registrar {
    /// Checks tasks and computes lane and key of each. `answered`: whether the client gets the ids that tasks are given.
    pub(crate) async fn assign(
        &self,
        tasks: Vec<TaskRequest>,
        request_id: &str,
        answered: bool,
    ) -> Result<Vec<Assigned>, RegisterError> {
        let mut assigned = Vec::with_capacity(tasks.len());
        let mut faults = Vec::new();
        for task in self.assign_each(tasks.into_iter().enumerate().collect(), request_id, answered).await? {
            match task {
                Ok((_, task)) => assigned.push(task),
                Err(fault) => faults.push(fault),
            }
        }
        TaskFault::refuse(faults).map(|()| assigned)
    }

    /// The same for each task on its own, with its position in the request.
    pub(crate) async fn assign_each(
        &self,
        tasks: Vec<(usize, TaskRequest)>,
        request_id: &str,
        answered: bool,
    ) -> Result<Vec<Result<(usize, Assigned), TaskFault>>, StoreError> {
        let kinds = tasks.iter().map(|(_, task)| task.kind.as_str()).collect();
        let policies = self.policies.of_kinds(&kinds).await?;
        let mut ids = HashSet::with_capacity(tasks.len());
        let place_one = |(index, task): (usize, TaskRequest)| {
            let id_known = answered || task.id.is_some();
            let id = task.id.unwrap_or_else(|| derived::task(request_id, index));
            let checked = if ids.contains(&id) {
                Err(("id", format!("`{id}` is given to two tasks of this request")))
            } else {
                let policy = policies.get(&task.kind).and_then(Option::as_deref);
                // A task that is not accepted has no id.
                assign(id, &task, policy, id_known).inspect(|_| {
                    ids.insert(id);
                })
            };
            let fault = |(field, problem): (&str, String)| TaskFault { index, field: field.to_owned(), problem };
            checked.map(|task| (index, task)).map_err(fault)
        };
        Ok(tasks.into_iter().map(place_one).collect())
    }
}

/// A task in its lane, or the field that is wrong, and why.
fn assign(
    id: TaskId,
    task: &TaskRequest,
    policy: Option<&CompiledPolicy>,
    id_known: bool,
) -> Result<Assigned, (&'static str, String)> {
    let policy = policy.ok_or_else(|| ("kind", unknown_kind(&task.kind)))?;
    let content = content::encode(&task.content).map_err(|error| ("content", error.to_string()))?;
    let assignment = policy.assign(&task.content, &id.to_string());
    let assignment = assignment.map_err(|(field, error)| (field, error.to_string()))?;
    let key = assignment.key.map(|value| Key::of(&id, &task.kind, assignment.scope.as_deref(), value));
    let size = BatchSize::of(&policy.policy);
    let load = Load { bytes: size.bytes_of(content.len()), ..assignment.load };
    Ok(Assigned { id, lane: assignment.lane, key, content, load, head_start: assignment.head_start, size, id_known })
}
