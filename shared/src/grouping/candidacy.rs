//! The workflows of one lane that hold an election together.

use std::time::Duration;

use super::BatchSize;
use crate::clock::Timestamp;
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
    fn flushes_now(&self) -> bool {
        self.messages.iter().any(|(_, message)| message.flushes && message.is_recent())
    }

    /// Whether a leader that lingers looks at its lane because of them: one of the tasks flushes, or they may be enough for it. A
    /// wake-up stands for messages that were lost. `elected`: when the leader was. How long it has lingered, if that is over.
    #[must_use]
    pub fn hurries(&self, size: BatchSize, elected: Timestamp, now: Timestamp) -> Option<Duration> {
        let over = size.linger().over(elected, now);
        let flushes = size.may_flush() && (self.flushes_now() || self.wakes());
        let may_do = over.is_some() && (self.brings() || self.wakes());
        (flushes || may_do).then_some(over.unwrap_or(Duration::ZERO))
    }

    /// Their tasks, each record once.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        self.messages.iter().fold(Waiting::default(), |all, (_, message)| all.union(&message.waiting))
    }

    /// Whether one of them is new, or was so a moment ago: its tasks have just come.
    fn brings(&self) -> bool {
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
        let message = |(at, waiting)| {
            let workflow = if at == 0 { first.workflow } else { derived::workflow(first.workflow, at) };
            ElectMessage::stored(first.lane.clone(), waiting, workflow).flushing(self.flushes()).tried(tries)
        };
        waiting.portions().into_iter().enumerate().map(message).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::Policy;

    const ELECTED: Timestamp = Timestamp(1_000);

    fn size(changes: serde_json::Value) -> BatchSize {
        let mut policy = json!({
            "kind": "parcel", "target": "kind", "linger": "5s", "max_batch": 9, "batch_api": {"command": ["truck"]}
        });
        policy.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        BatchSize::of(&serde_json::from_value::<Policy>(policy).unwrap())
    }

    fn of(message: ElectMessage) -> Candidacy {
        Candidacy { messages: vec![("1".to_owned(), message)] }
    }

    fn brought() -> ElectMessage {
        let waiting = Waiting { bundles: [(uuid::Uuid::nil(), 1)].into(), ..Waiting::default() };
        ElectMessage::stored("parcel:0:NY".parse().unwrap(), waiting, uuid::Uuid::nil())
    }

    fn wake_up() -> ElectMessage {
        ElectMessage::wake(brought().lane, brought().workflow)
    }

    #[test]
    fn a_task_that_flushes_hurries_a_leader_while_it_is_new() {
        let (flushing, plain) = (size(json!({"flush_when": "true"})), size(json!({})));
        let hurries = |message, size| of(message).hurries(size, ELECTED, ELECTED);
        assert_eq!(hurries(brought().flushing(true), flushing), Some(Duration::ZERO));
        assert_eq!(hurries(brought().flushing(true).again().again(), flushing), None, "the leader knows of it");
        assert_eq!(hurries(brought(), flushing), None);
        assert_eq!(hurries(wake_up(), flushing), Some(Duration::ZERO), "its message may be lost");
        assert_eq!(hurries(brought().flushing(true), plain), None, "no task of this policy flushes");
    }

    #[test]
    fn tasks_that_may_be_enough_hurry_a_leader_whose_linger_is_over() {
        let few = size(json!({"min_batch": 3, "min_batch_wait": "1m"}));
        let (early, late) = (ELECTED.plus(Duration::from_secs(4)), ELECTED.plus(Duration::from_secs(5)));
        let linger = Duration::from_secs(5);
        assert_eq!(of(brought()).hurries(few, ELECTED, early), None);
        assert_eq!(of(brought()).hurries(few, ELECTED, late), Some(linger));
        assert_eq!(of(brought().again().again()).hurries(few, ELECTED, late), None, "they were counted");
        assert_eq!(of(wake_up()).hurries(few, ELECTED, late), Some(linger));
        assert_eq!(of(brought()).hurries(size(json!({})), ELECTED, late), None, "nobody waits for enough");
    }
}
