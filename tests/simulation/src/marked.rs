//! Items that tasks are stored for: their groups know of that before, or whoever cuts their fan-out short takes them for missing
//! while the batch API works for them.

use aws_smithy_runtime_api::client::result::ConnectorError;
use fanfold::ids::TaskId;

use crate::request::{Record, Request, statement_record};
use crate::transitions::bits;
use crate::wire::Line;

/// The record that has the group of a task's item; none of a task that is no item.
pub(crate) fn group_of(task: &str) -> Option<Record> {
    let TaskId::Item(item) = task.parse().ok()? else { return None };
    let table = if item.fanout == item.group { "FanoutsTable" } else { "GroupsTable" };
    Some((table.to_owned(), item.group.to_string()))
}

impl Line {
    /// Looks at the groups of tasks that are stored.
    pub(crate) async fn marked(&self, request: &Request) -> Result<(), ConnectorError> {
        let statements = request.body["Statements"].as_array().into_iter().flatten().map(statement_record);
        let stored = statements.filter(|(_, what)| *what == "task").map(|(record, _)| record);
        let groups: Vec<Record> = stored.filter_map(|(_, task)| group_of(&task)).collect();
        for ((_, id), group) in self.images(&groups).await? {
            if group["tasks"].is_null() && !bits(&group, "pending").is_zero() {
                self.sim.violate(format!("group {id} does not know of a task that is stored: {}", request.body));
            }
        }
        Ok(())
    }
}
