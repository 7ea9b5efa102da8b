//! Whether the items that tasks name exist: a task whose ack would be refused is not accepted.

use crate::ids::{ItemId, TaskId};
use crate::tracking::{AckRefusal, Sizes};

use super::{Assigned, RegisterError, Registrar, TaskFault};

impl Registrar {
    /// Refuses tasks that name items which do not exist, as far as can be seen now. Returns the groups of the others.
    pub(crate) async fn check_items(&self, assigned: &[Assigned]) -> Result<Sizes, RegisterError> {
        let sizes = self.tracking.sizes(&items(assigned)).await?;
        check(assigned, &sizes).map(|()| sizes)
    }
}

/// The items that tasks are.
pub(crate) fn items<'a>(assigned: impl IntoIterator<Item = &'a Assigned>) -> Vec<ItemId> {
    assigned.into_iter().filter_map(|task| item(&task.id)).collect()
}

/// Names the tasks of a request whose items do not exist.
pub(crate) fn check(assigned: &[Assigned], sizes: &Sizes) -> Result<(), RegisterError> {
    let faults = assigned.iter().enumerate().filter_map(|(index, task)| fault(index, task, sizes));
    TaskFault::refuse(faults.collect())
}

/// The fault of a task whose item does not exist; `index` is its position in the request.
pub(crate) fn fault(index: usize, task: &Assigned, sizes: &Sizes) -> Option<TaskFault> {
    let refusal = sizes.refusal(&item(&task.id)?)?;
    Some(TaskFault { index, field: "id".to_owned(), problem: problem(&task.id, &refusal) })
}

fn item(id: &TaskId) -> Option<ItemId> {
    match id {
        TaskId::Item(item) => Some(*item),
        TaskId::Single(_) => None,
    }
}

fn problem(id: &TaskId, refusal: &AckRefusal) -> String {
    match refusal {
        AckRefusal::UnknownGroup { fanout, group } => format!(
            "is `{id}`: fan-out {fanout} has no item group {group}; items of the groups that opening and adding answered are \
             allowed"
        ),
        AckRefusal::OutOfRange { group, index, size, .. } => {
            format!("is `{id}`: item group {group} has {size} items, there is no {index}; 0 to {} is allowed", size - 1)
        }
    }
}
