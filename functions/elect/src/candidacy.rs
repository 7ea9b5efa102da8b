//! Workflows that stand for tasks of one lane. No I/O.

use fanfold::ids::derived;
use fanfold::messages::ElectMessage;
use fanfold::store::tasks::Taken;
use fanfold::waiting::Waiting;

/// The workflows of one lane in one invocation: they hold one election together.
#[derive(Debug, Default)]
pub(crate) struct Candidacy {
    /// Ids and bodies of their messages.
    pub(crate) messages: Vec<(String, ElectMessage)>,
}

impl Candidacy {
    /// What they stand for without what is taken; `None` if there is nothing left to be elected for.
    pub(crate) fn open(&self, taken: &Taken) -> Option<Waiting> {
        let open = taken.out_of(self.waiting());
        (self.wakes() || !open.is_empty()).then_some(open)
    }

    /// Whether one of them names nothing: it wakes the lane for whatever waits there.
    pub(crate) fn wakes(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.waiting.is_empty())
    }

    /// What they stand for, each record once.
    pub(crate) fn waiting(&self) -> Waiting {
        self.messages.iter().fold(Waiting::default(), |all, (_, message)| all.union(&message.waiting))
    }

    /// A workflow that has tried before may find its tasks claimed; a new one has just stored them.
    pub(crate) fn tried(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.tries > 0)
    }

    /// All of the workflows as one; a repeated delivery of the same messages gives the same one.
    pub(crate) fn merged(&self, waiting: &Waiting) -> Vec<ElectMessage> {
        let Some((_, first)) = self.messages.iter().min_by_key(|(_, message)| message.workflow) else {
            return Vec::new();
        };
        let tries = self.messages.iter().map(|(_, message)| message.tries).max().unwrap_or(0);
        let message = |(at, waiting)| ElectMessage {
            lane: first.lane.clone(),
            waiting,
            workflow: if at == 0 { first.workflow } else { derived::workflow(first.workflow, at) },
            tries,
        };
        waiting.portions().into_iter().enumerate().map(message).collect()
    }
}
