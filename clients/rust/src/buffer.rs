//! Packs acks into full messages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::compact::{Acks, Outcome, estimate, messages};
use crate::error::AckError;
use crate::ids::{GroupName, Item};
use crate::models::{AckedFanout, Refused};
use crate::senders::AckSender;

/// Collects acks, and sends them when a message is full, when the oldest ack is `max_age` old (from a tokio task), and on [`Self::flush`]:
/// call it at the end. Clones share one buffer.
///
/// No ack is dropped: if acks cannot be sent, the buffer keeps them and returns [`AckError::NotSent`]. After a failure in the background,
/// the next call returns it. A buffer that is dropped with acks in it logs an error.
#[derive(Debug)]
pub struct AckBuffer<S>(Arc<Shared<S>>);

#[derive(Debug)]
struct Shared<S> {
    sender: S,
    max_age: Option<Duration>,
    waiting: Mutex<Waiting>,
    /// Held while acks are sent.
    sending: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Waiting {
    acks: Acks,
    counts: BTreeMap<(GroupName, Outcome), usize>,
    bytes: usize,
    /// Whether a task waits for the oldest ack to be old enough.
    timed: bool,
    causes: Vec<String>,
    refused: Vec<Refused>,
}

impl<S> Clone for AckBuffer<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Drop for Shared<S> {
    fn drop(&mut self) {
        let left = self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner).len();
        if left > 0 {
            tracing::error!(acks = left, "a buffer was dropped before it was flushed: these acks are lost");
        }
    }
}

impl<S: AckSender> AckBuffer<S> {
    /// A buffer that sends acks after five seconds at most.
    #[must_use]
    pub fn new(sender: S) -> Self {
        Self::with_max_age(sender, Some(Duration::from_secs(5)))
    }

    /// A buffer that sends when the oldest ack is this old; without an age, only when a message is full and on `flush`.
    #[must_use]
    pub fn with_max_age(sender: S, max_age: Option<Duration>) -> Self {
        Self(Arc::new(Shared { sender, max_age, waiting: Mutex::default(), sending: tokio::sync::Mutex::default() }))
    }

    /// Acks an item as succeeded. If an item is acked more than once, the first ack counts. The ack is kept even if this returns an error.
    ///
    /// # Errors
    /// Acks of a full message, or acks sent in the background, could not be sent or were refused.
    pub async fn succeeded(&self, item: Item) -> Result<(), AckError> {
        self.add(item, Outcome::Succeeded).await
    }

    /// Acks an item as failed.
    ///
    /// # Errors
    /// Those of [`Self::succeeded`].
    pub async fn failed(&self, item: Item) -> Result<(), AckError> {
        self.add(item, Outcome::Failed).await
    }

    /// Whether the buffer holds an ack of this item.
    #[must_use]
    pub fn contains(&self, item: Item) -> bool {
        self.waiting().acks.get(&item.of).is_some_and(|of| of.contains_key(&item.index))
    }

    /// How many acks the buffer holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting().len()
    }

    /// Whether the buffer holds no ack.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sends all acks. Over HTTP, returns the fan-outs with their new states, by id.
    ///
    /// # Errors
    /// Acks could not be sent, or were refused.
    pub async fn flush(&self) -> Result<BTreeMap<Uuid, AckedFanout>, AckError> {
        let fanouts = self.send().await;
        self.kept_errors().map(|()| fanouts)
    }

    /// Drops the acks that are left: SQS delivers their messages again.
    pub(crate) fn give_up(&self) {
        *self.waiting() = Waiting::default();
    }

    async fn add(&self, item: Item, outcome: Outcome) -> Result<(), AckError> {
        let full = {
            let mut waiting = self.waiting();
            waiting.add(item, outcome);
            if let Some(age) = self.0.max_age.filter(|_| !std::mem::replace(&mut waiting.timed, true)) {
                self.send_in(age);
            }
            waiting.bytes >= self.0.sender.limit()
        };
        self.kept_errors()?;
        if full {
            self.flush().await?;
        }
        Ok(())
    }

    /// Sends all acks after `max_age`, and again until none is left.
    fn send_in(&self, age: Duration) {
        let shared = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(age).await;
            if let Some(shared) = shared.upgrade() {
                let buffer = Self(shared);
                buffer.send().await;
                let mut waiting = buffer.waiting();
                waiting.timed = waiting.len() > 0;
                if waiting.timed {
                    buffer.send_in(age);
                }
            }
        });
    }

    /// Sends all acks, and keeps the errors.
    async fn send(&self) -> BTreeMap<Uuid, AckedFanout> {
        let _sending = self.0.sending.lock().await;
        let made = messages(&self.waiting().acks, self.0.sender.limit());
        let sent = self.0.sender.send(&made).await;
        let mut waiting = self.waiting();
        for (_, message) in made.iter().enumerate().filter(|(at, _)| !sent.unsent.contains_key(at)) {
            for (group, outcome, indexes) in &message.acks {
                waiting.remove(*group, *outcome, indexes);
            }
        }
        waiting.causes = sent.unsent.into_values().collect();
        waiting.causes.dedup();
        waiting.refused.extend(sent.refused);
        sent.fanouts
    }

    /// Returns the errors that were kept, once.
    fn kept_errors(&self) -> Result<(), AckError> {
        let mut waiting = self.waiting();
        let (causes, refused) = (std::mem::take(&mut waiting.causes), std::mem::take(&mut waiting.refused));
        if !causes.is_empty() {
            return Err(AckError::NotSent { items: waiting.len(), causes, refused });
        }
        if refused.is_empty() { Ok(()) } else { Err(AckError::Refused { refused }) }
    }

    /// No panic leaves it half changed.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn len(&self) -> usize {
        self.counts.values().sum()
    }

    fn add(&mut self, item: Item, outcome: Outcome) {
        let mut first = false;
        self.acks.entry(item.of).or_default().entry(item.index).or_insert_with(|| {
            first = true;
            outcome
        });
        if first {
            self.count(item.of, outcome, |count| count + 1);
        }
    }

    fn remove(&mut self, group: GroupName, outcome: Outcome, indexes: &[u16]) {
        if let Some(acks) = self.acks.get_mut(&group) {
            acks.retain(|index, _| indexes.binary_search(index).is_err());
            if acks.is_empty() {
                self.acks.remove(&group);
            }
        }
        self.count(group, outcome, |count| count.saturating_sub(indexes.len()));
    }

    fn count(&mut self, group: GroupName, outcome: Outcome, change: impl Fn(usize) -> usize) {
        let before = self.counts.remove(&(group, outcome)).unwrap_or(0);
        let now = change(before);
        if now > 0 {
            self.counts.insert((group, outcome), now);
        }
        self.bytes = self.bytes + estimate(now) - estimate(before);
    }
}
