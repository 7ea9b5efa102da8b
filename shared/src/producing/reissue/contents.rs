//! Checks of corrected contents.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::{Corrected, ReissueError};
use crate::aws::StoreError;
use crate::ids::{ItemGroup, TaskId};
use crate::limits::GROUP_ITEMS_MAX;
use crate::messages::TaskRequest;
use crate::policy::FieldError;
use crate::producing::Reissue;
use crate::registering::{RegisterError, Registrar};
use crate::store::fanouts::Fanout;
use crate::store::tasks::Tasks;
use crate::tracking::Tracking;

/// Checks corrected contents as registering does, and that their items are reissued.
pub(super) async fn check_contents(
    (tracking, registrar, tasks): (&Tracking, &Registrar, &Tasks),
    old: &Fanout,
    source: &Reissue,
    contents: &[Corrected],
) -> Result<(), ReissueError> {
    let groups: BTreeSet<Uuid> = contents.iter().map(|corrected| corrected.id.group).collect();
    let groups: Vec<ItemGroup> = groups.into_iter().map(|id| ItemGroup { id, upto: GROUP_ITEMS_MAX }).collect();
    let bits: BTreeMap<Uuid, _> = tracking.bits_in(old, &groups, source.states()).await?.into_iter().collect();
    let ids: Vec<TaskId> = contents.iter().map(|corrected| TaskId::Item(corrected.id)).collect();
    let stored = tasks.get_many(&ids).await?;
    let (mut errors, mut requests, mut positions) = (Vec::new(), Vec::new(), Vec::new());
    for (at, Corrected { id, content }) in contents.iter().enumerate() {
        let taken_on = source.taken_on.is_some_and(|taken_on| taken_on.until.has_passed(old, id));
        let reissued =
            id.fanout == old.id && !taken_on && bits.get(&id.group).is_some_and(|bits| bits.get(usize::from(id.index)));
        match stored.get(&TaskId::Item(*id)).filter(|_| reissued) {
            Some(task) => {
                let (id, kind) = (Some(task.id), task.lane.kind.clone());
                requests.push(TaskRequest { id, kind, content: content.clone() });
                positions.push(at);
            }
            None => {
                let why = if reissued { "has no task" } else { "is not one of the items that are reissued" };
                errors.push(FieldError { field: format!("contents[{at}].id"), problem: format!("`{id}` {why}") });
            }
        }
    }
    match registrar.check(requests, "").await {
        Ok(_) => {}
        Err(RegisterError::Refused(faults)) => errors.extend(faults.into_iter().map(|fault| {
            let field = format!("contents[{}].{}", positions[fault.index], fault.field);
            FieldError { field, problem: fault.problem }
        })),
        Err(RegisterError::Store(error)) => return Err(error.into()),
        Err(error) => return Err(StoreError::Contended { what: error.to_string() }.into()),
    }
    if errors.is_empty() { Ok(()) } else { Err(ReissueError::Fields(errors)) }
}
