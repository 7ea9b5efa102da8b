//! The workflows of one lane that hold an election together.

use crate::ids::derived;
use crate::messages::ElectMessage;
use crate::store::tasks::Taken;
use crate::waiting::Waiting;

/// The workflows of one lane in one invocation.
#[derive(Debug, Default)]
pub struct Candidacy {
    /// Ids and bodies of their messages.
    pub messages: Vec<(String, ElectMessage)>,
}

impl Candidacy {
    /// Their tasks, without those that are taken; `None` if no election is needed.
    #[must_use]
    pub fn open(&self, taken: &Taken) -> Option<Waiting> {
        let open = taken.out_of(self.waiting());
        (self.wakes() || !open.is_empty()).then_some(open)
    }

    /// Whether one of them names no tasks: it wakes the lane for all that wait there.
    #[must_use]
    pub fn wakes(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.waiting.is_empty())
    }

    /// Whether one of them has a task that ends the linger of the lane.
    fn flushes(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.flushes)
    }

    /// Whether one of them has such a task, and has just come: later its task is in a batch, or the leader knows of it.
    #[must_use]
    pub fn flushes_now(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.flushes && message.is_recent())
    }

    /// Their tasks, each record once.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        self.messages.iter().fold(Waiting::default(), |all, (_, message)| all.union(&message.waiting))
    }

    /// Whether one of them is new, or was so a moment ago: its tasks have just come.
    #[must_use]
    pub fn brings(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.is_recent() && !message.waiting.is_empty())
    }

    /// Whether one of them has tried before, and may find its tasks claimed. A new one has just stored them.
    #[must_use]
    pub fn tried(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.tries > 0)
    }

    /// All of the workflows merged into one; a repeated delivery of the same messages gives the same one.
    #[must_use]
    pub fn merged(&self, waiting: &Waiting) -> Vec<ElectMessage> {
        let Some((_, first)) = self.messages.iter().min_by_key(|(_, message)| message.workflow) else {
            return Vec::new();
        };
        let tries = self.messages.iter().map(|(_, message)| message.tries).max().unwrap_or(0);
        let message = |(at, waiting)| ElectMessage {
            lane: first.lane.clone(),
            waiting,
            workflow: if at == 0 { first.workflow } else { derived::workflow(first.workflow, at) },
            tries,
            flushes: self.flushes(),
        };
        waiting.portions().into_iter().enumerate().map(message).collect()
    }
}
