//! Resetting tasks on their own that failed: each is registered once more, under an id that follows from its own.
//!
//! A task is a member of one batch, and has one outcome, for good. So the failed one stays what it is, and its work waits again as
//! another task, whichever key, bundle or lane it had. A task that is an item has its failure counted by its fan-out: it is
//! reissued instead.

use std::collections::HashMap;

use uuid::Uuid;

use super::Scope;
use crate::aws::StoreError;
use crate::config::{ConfigError, Surroundings};
use crate::ids::{TaskId, derived, no_task};
use crate::limits::{RESET_PER_PAGE, RESET_RECORDS};
use crate::messages::TaskRequest;
use crate::registering::{RegisterError, Registered, Registrar, Registration};
use crate::store::batches::{Batch, Batches, MemberState, RecordCursor};
use crate::store::tasks::{Task, Tasks};

/// Resets tasks.
#[derive(Debug)]
pub struct Resetting {
    tasks: Tasks,
    batches: Batches,
    registrar: Registrar,
}

/// A page of a scope whose failed tasks were reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResetPage {
    /// Tasks that wait again.
    pub reset: u64,
    /// Tasks that were not: they were reset before, or another task has their key.
    pub known: u64,
    /// Tasks that cannot be accepted any more, and why the first of them.
    pub refused: u64,
    /// What is wrong with the first of these.
    pub problem: Option<String>,
    /// Where the next page begins, if there may be more.
    pub next: Option<RecordCursor>,
}

/// A task cannot be reset.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// There is none.
    #[error("{}", no_task(.0))]
    Unknown(TaskId),
    /// It is an item of a fan-out.
    #[error(
        "task {id} is an item, and its failure is counted: reissue the failed items of fan-out {fanout} when it has ended"
    )]
    Item {
        /// The task.
        id: TaskId,
        /// Its fan-out.
        fanout: Uuid,
    },
    /// It has not failed.
    #[error("task {id} cannot be reset: it {why}")]
    NotFailed {
        /// The task.
        id: TaskId,
        /// Its state.
        why: String,
    },
    /// It cannot be registered again.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// A table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Resetting {
    /// In the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            tasks: Tasks::from_environment(surroundings)?,
            batches: Batches::from_environment(surroundings)?,
            registrar: Registrar::from_environment(surroundings)?,
        })
    }

    /// Resets a task that failed or was cancelled. Returns the task that it is now, which a repetition returns again.
    ///
    /// # Errors
    /// The task cannot be reset, or tables or queues cannot be reached.
    pub async fn reset(&self, id: TaskId) -> Result<Registered, ResetError> {
        let task = self.tasks.get(&id).await?.ok_or(ResetError::Unknown(id))?;
        let single = match id {
            TaskId::Single(single) => single,
            TaskId::Item(item) => return Err(ResetError::Item { id, fanout: item.fanout }),
        };
        if let Some(why) = self.not_failed(&task).await? {
            return Err(ResetError::NotFailed { id, why });
        }
        let request = request(single, &task).ok_or(ResetError::Unknown(id))?;
        let checked = self.registrar.check(vec![request], "").await?;
        // Not before: one that is refused keeps its key.
        self.tasks.release_keys(&[id]).await?;
        let mut registered = self.registrar.register_checked(checked).await?;
        registered.pop().ok_or(ResetError::Unknown(id))
    }

    /// Why a task cannot be reset, if it cannot.
    async fn not_failed(&self, task: &Task) -> Result<Option<String>, StoreError> {
        if let Some(of) = task.duplicate_of {
            return Ok(Some(format!("is a duplicate of {of}")));
        }
        let Some(batch) = task.batch else {
            return Ok((!task.cancelled).then(|| "waits".to_owned()));
        };
        let Some(found) = self.batches.get(batch).await? else {
            return Ok(Some(format!("was in batch {batch}, which ended long ago")));
        };
        Ok(match found.outcome_of(&task.id) {
            Some(MemberState::Failed) => None,
            Some(MemberState::Succeeded) => Some("succeeded".to_owned()),
            Some(MemberState::Pending | MemberState::Dropped) | None => Some(format!("is in batch {batch}")),
        })
    }

    /// Resets the tasks of a scope that failed, and are no items, page by page. It looks through the records of batches.
    ///
    /// # Errors
    /// Tables or queues cannot be reached. Doing it again resets no task twice.
    pub async fn reset_page(&self, scope: &Scope, after: Option<&RecordCursor>) -> Result<ResetPage, ResetError> {
        let (batches, next) = self.batches.failed(after, RESET_RECORDS).await?;
        let mut page = ResetPage { next, ..ResetPage::default() };
        let last = batches.len().saturating_sub(1);
        for (at, batch) in batches.iter().enumerate().filter(|(_, batch)| scope.covers(&batch.lane)) {
            self.reset_batch(batch, &mut page).await?;
            if page.reset + page.known + page.refused >= RESET_PER_PAGE && at < last {
                page.next = Some(batch.id.into());
                break;
            }
        }
        Ok(page)
    }

    /// Resets the failed members of a batch.
    async fn reset_batch(&self, batch: &Batch, page: &mut ResetPage) -> Result<(), ResetError> {
        let failed: Vec<Uuid> = batch.failed.iter().filter_map(|slot| single(batch.members.ids().get(slot)?)).collect();
        if failed.is_empty() {
            return Ok(());
        }
        let ids: Vec<TaskId> = failed.iter().map(|id| TaskId::Single(*id)).collect();
        let tasks: HashMap<TaskId, Task> = self.tasks.get_many(&ids).await?;
        let requests = failed.iter().enumerate().filter_map(|(at, id)| Some((at, request(*id, tasks.get(&ids[at])?)?)));
        let (mut good, mut accepted) = (Vec::new(), Vec::new());
        for assigned in self.registrar.assign_each(requests.collect(), "", true).await? {
            match assigned {
                Ok((at, task)) => {
                    good.push(task);
                    accepted.push(ids[at]);
                }
                Err(fault) => {
                    page.refused += 1;
                    page.problem.get_or_insert_with(|| format!("`{}`: {}", fault.field, fault.problem));
                }
            }
        }
        // One that is refused keeps its key: nobody asked for its work to be done by others.
        self.tasks.release_keys_of(batch.id, &accepted).await?;
        for registered in self.registrar.store(&good, &crate::tracking::GroupsRead::default()).await? {
            match registered.outcome {
                Registration::Registered => page.reset += 1,
                Registration::Known | Registration::Duplicate { .. } => page.known += 1,
            }
        }
        Ok(())
    }
}

fn single(id: &TaskId) -> Option<Uuid> {
    match id {
        TaskId::Single(id) => Some(*id),
        TaskId::Item(_) => None,
    }
}

/// The task that a failed one becomes; none, if its content cannot be read.
fn request(id: Uuid, task: &Task) -> Option<TaskRequest> {
    let content = serde_json::from_str(task.content.as_deref()?).ok()?;
    Some(TaskRequest { id: Some(derived::reset_task(id)), kind: task.lane.kind.clone(), content })
}
