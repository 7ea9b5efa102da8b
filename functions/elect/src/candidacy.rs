//! Workflows that stand for tasks of one lane. No I/O.

use std::collections::HashSet;

use fanfold::ids::{TaskId, derived};
use fanfold::limits::NAMED_TASKS_MAX;
use fanfold::members::Members;
use fanfold::messages::ElectMessage;

/// The workflows of one lane in one invocation: they hold one election together.
#[derive(Debug, Default)]
pub(crate) struct Candidacy {
    /// Ids and bodies of their messages.
    pub(crate) messages: Vec<(String, ElectMessage)>,
}

impl Candidacy {
    /// Their tasks without those that are claimed; `None` if there is nothing left to be elected for.
    pub(crate) fn open_tasks(&self, claimed: &HashSet<TaskId>) -> Option<Vec<TaskId>> {
        let open: Vec<TaskId> = self.tasks().into_iter().filter(|id| !claimed.contains(id)).collect();
        (self.wakes() || !open.is_empty()).then_some(open)
    }

    /// Whether one of them names no tasks: it wakes the lane for whatever waits there.
    pub(crate) fn wakes(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.tasks.is_empty())
    }

    /// Their tasks, each once.
    pub(crate) fn tasks(&self) -> Vec<TaskId> {
        let mut tasks: Vec<TaskId> =
            self.messages.iter().flat_map(|(_, message)| message.tasks.ids()).copied().collect();
        tasks.sort_unstable();
        tasks.dedup();
        tasks
    }

    /// A workflow that has tried before may find its tasks claimed; a new one has just stored them.
    pub(crate) fn tried(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.tries > 0)
    }

    /// All of the workflows as one; a repeated delivery of the same messages gives the same one.
    pub(crate) fn merged(&self, tasks: &[TaskId]) -> Vec<ElectMessage> {
        let Some((_, first)) = self.messages.iter().min_by_key(|(_, message)| message.workflow) else {
            return Vec::new();
        };
        let tries = self.messages.iter().map(|(_, message)| message.tries).max().unwrap_or(0);
        let chunks: Vec<&[TaskId]> = if tasks.is_empty() { vec![&[]] } else { tasks.chunks(NAMED_TASKS_MAX).collect() };
        let message = |(at, chunk): (usize, &[TaskId])| ElectMessage {
            lane: first.lane.clone(),
            tasks: Members::new(chunk.iter().copied()),
            workflow: if at == 0 { first.workflow } else { derived::workflow(first.workflow, at) },
            tries,
        };
        chunks.into_iter().enumerate().map(message).collect()
    }
}
