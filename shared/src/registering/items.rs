//! Whether the items that tasks name exist: a task whose ack would be refused is not accepted.

use crate::ids::ItemId;
use crate::tracking::GroupsRead;

use super::{Assigned, RegisterError, Registrar, TaskFault};

impl Registrar {
    /// Refuses tasks that name items which do not exist, as far as can be seen now. Returns the groups of the others.
    pub(crate) async fn check_items(&self, assigned: &[Assigned]) -> Result<GroupsRead, RegisterError> {
        let groups = self.tracking.groups_with(&items(assigned)).await?;
        check(assigned, &groups).map(|()| groups)
    }
}

/// The items that tasks are.
pub(crate) fn items<'a>(assigned: impl IntoIterator<Item = &'a Assigned>) -> Vec<ItemId> {
    assigned.into_iter().filter_map(|task| task.id.item()).collect()
}

/// Names the tasks of a request whose items do not exist.
pub(crate) fn check(assigned: &[Assigned], groups: &GroupsRead) -> Result<(), RegisterError> {
    let faults = assigned.iter().enumerate().filter_map(|(index, task)| fault(index, task, groups));
    TaskFault::refuse(faults.collect())
}

/// The fault of a task whose item does not exist; `index` is its position in the request.
pub(crate) fn fault(index: usize, task: &Assigned, groups: &GroupsRead) -> Option<TaskFault> {
    let item = task.id.item()?;
    let problem = groups.refusal(&item)?.of_field(&item);
    Some(TaskFault { index, field: "id".to_owned(), problem })
}
