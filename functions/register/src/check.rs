//! Whether tasks can be accepted, and where they belong.

use std::collections::{HashMap, HashSet};
use std::fmt;

use fanfold::content;
use fanfold::ids::{TaskId, derived};
use fanfold::limits::TASKS_PER_REQUEST;
use fanfold::messages::TaskRequest;
use fanfold::policy::{KIND_ALLOWED, is_kind};
use fanfold::store::tasks::Key;
use serde::Serialize;

use crate::{Placed, Register, RegisterError};

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
    pub(crate) fn path(&self) -> String {
        if self.field == LIST { LIST.to_owned() } else { format!("tasks[{}].{}", self.index, self.field) }
    }

    /// Refuses a request that has faults.
    pub(crate) fn refuse(mut faults: Vec<Self>) -> Result<(), RegisterError> {
        faults.truncate(FAULTS);
        if faults.is_empty() { Ok(()) } else { Err(RegisterError::Refused(faults)) }
    }
}

/// Faults reported of one request.
const FAULTS: usize = 100;

impl Register {
    /// Checks tasks and computes lane and key of each. `answered`: whether the client gets the ids that tasks are given.
    pub(crate) async fn place(
        &self,
        tasks: Vec<TaskRequest>,
        request_id: &str,
        answered: bool,
    ) -> Result<Vec<Placed>, RegisterError> {
        if !(1..=TASKS_PER_REQUEST).contains(&tasks.len()) {
            let problem = format!("has {} tasks, 1 to {TASKS_PER_REQUEST} are allowed", tasks.len());
            return Err(RegisterError::Refused(vec![TaskFault { index: 0, field: LIST.to_owned(), problem }]));
        }
        let mut policies = HashMap::new();
        for task in &tasks {
            // What cannot be a kind cannot be looked up: DynamoDB refuses keys that are empty or too long.
            if is_kind(&task.kind) && !policies.contains_key(&task.kind) {
                policies.insert(task.kind.clone(), self.policies.get(&task.kind).await?);
            }
        }
        let mut faults = Vec::new();
        let mut placed = Vec::with_capacity(tasks.len());
        let mut ids = HashSet::with_capacity(tasks.len());
        for (index, task) in tasks.into_iter().enumerate() {
            let told = answered || task.id.is_some();
            let id = task.id.unwrap_or_else(|| derived::task(request_id, index));
            let mut fault = |field: &str, problem: String| {
                faults.push(TaskFault { index, field: field.to_owned(), problem });
            };
            if !ids.insert(id) {
                fault("id", format!("`{id}` is given to two tasks of this request"));
                continue;
            }
            let Some(policy) = policies.get(&task.kind).and_then(Option::as_ref) else {
                let kind: String = task.kind.chars().take(80).collect();
                let problem = if is_kind(&task.kind) {
                    format!("is `{kind}`, there is no policy of this kind")
                } else {
                    format!("is `{kind}`, {KIND_ALLOWED} are allowed")
                };
                fault("kind", problem);
                continue;
            };
            let content = match content::encode(&task.content) {
                Ok(content) => content,
                Err(error) => {
                    fault("content", error.to_string());
                    continue;
                }
            };
            match policy.place(&task.content, &id.to_string()) {
                Err((field, error)) => fault(field, error.to_string()),
                Ok(placement) => {
                    let key = placement.key.map(|value| Key { scope: scope(&id, &task.kind), value });
                    placed.push(Placed { id, lane: placement.lane, key, content, told });
                }
            }
        }
        TaskFault::refuse(faults).map(|()| placed)
    }
}

/// A key is unique among the tasks of its kind: those of its fan-out, or those on their own.
fn scope(id: &TaskId, kind: &str) -> String {
    match id {
        TaskId::Item(item) => format!("{kind}:{}", item.fanout),
        TaskId::Single(_) => kind.to_owned(),
    }
}
