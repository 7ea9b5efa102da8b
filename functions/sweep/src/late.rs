//! Messages that are late, not lost: as many of those that are overdue as wait in their queue.

use std::sync::{Mutex, PoisonError};

use fanfold::aws::Queue;
use fanfold::messages::{ElectMessage, GroupMessage, HandleMessage};

/// What waits in the queues of the messages that a sweep makes again.
#[derive(Debug)]
pub(crate) struct Late {
    elections: Backlog<ElectMessage>,
    /// For lanes in which tasks wait: perhaps for a leader that was elected.
    leaders_of_tasks: Backlog<GroupMessage>,
    pub(crate) leaders: Backlog<GroupMessage>,
    pub(crate) batches: Backlog<HandleMessage>,
}

impl Late {
    pub(crate) fn of(elect: &Queue<ElectMessage>, group: &Queue<GroupMessage>, handle: &Queue<HandleMessage>) -> Self {
        Self {
            elections: Backlog::of(elect),
            leaders_of_tasks: Backlog::of(group),
            leaders: Backlog::of(group),
            batches: Backlog::of(handle),
        }
    }

    /// Whether a message that tasks wait for is taken for one of those that wait.
    pub(crate) async fn holds_one_of_tasks(&self) -> bool {
        self.elections.holds_one().await || self.leaders_of_tasks.holds_one().await
    }
}

/// What waits in a queue. It is asked for once, and only if something is overdue.
#[derive(Debug)]
pub(crate) struct Backlog<M> {
    queue: Queue<M>,
    /// How many messages there may be for what is overdue and was not looked at yet.
    left: Mutex<Option<u64>>,
}

impl<M> Backlog<M> {
    fn of(queue: &Queue<M>) -> Self {
        Self { queue: queue.clone(), left: Mutex::new(None) }
    }

    /// Whether a message that is overdue is taken for one of those that wait in the queue. If their number cannot be read, it is not:
    /// a message that comes twice does no harm.
    pub(crate) async fn holds_one(&self) -> bool {
        let known = *self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let left = match known {
            Some(left) => left,
            None => self.queue.backlog().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "how many messages wait is not known: what is overdue is sent again");
                0
            }),
        };
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(left.saturating_sub(1));
        left > 0
    }
}
