//! The queues: the simulation keeps all messages itself and decides when, how often and in which order they come.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fanfold::delivery::Delivery;
use fanfold_local::Template;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::dice::Dice;
use crate::lock;

/// A message in a queue.
#[derive(Clone, Debug)]
struct Message {
    id: String,
    body: String,
    visible_at: Instant,
    receives: u32,
    /// Whether it can be made again from the tables.
    hint: bool,
    /// Whether it is there only because messages may come again.
    again: bool,
}

/// A queue with its event source.
#[derive(Debug)]
pub(crate) struct SimulatedQueue {
    pub(crate) name: String,
    pub(crate) batch: usize,
    pub(crate) timeout: Duration,
    visibility: Duration,
    max_receives: u32,
    messages: Mutex<Vec<Message>>,
    changed: Notify,
}

/// All messages of a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// With their queues, and how long it is until they are visible.
    messages: Vec<(String, Message, Duration)>,
    sent: usize,
}

/// What was received, with whether each message is deleted after success.
pub(crate) type Received = Vec<Delivery>;

impl SimulatedQueue {
    /// When the next message is visible.
    fn next(&self) -> Option<Instant> {
        lock(&self.messages).iter().map(|message| message.visible_at).min()
    }

    /// Waits until a message is visible.
    pub(crate) async fn ready(&self) {
        loop {
            match self.next() {
                Some(at) if at <= Instant::now() => return,
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, self.changed.notified()).await;
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// How many messages are visible.
    pub(crate) fn backlog(&self) -> usize {
        let now = Instant::now();
        lock(&self.messages).iter().filter(|message| message.visible_at <= now).count()
    }

    /// Takes some visible messages in any order; they stay in the queue, invisible for a time. Some stay visible: another
    /// worker gets them at the same time.
    pub(crate) fn receive(&self, dice: &Dice, again: u32) -> Received {
        self.bury();
        let now = Instant::now();
        let mut messages = lock(&self.messages);
        let mut visible: Vec<&mut Message> = messages.iter_mut().filter(|message| message.visible_at <= now).collect();
        dice.shuffle(&mut visible);
        let most = visible.len().min(self.batch);
        visible.truncate(if dice.chance(6_000) { most } else { 1 + dice.below(most.max(1)) });
        let mut received = Vec::with_capacity(visible.len());
        for message in visible {
            message.receives += 1;
            let (message_id, body) = (message.id.clone(), message.body.clone());
            received.push(Delivery { message_id, body, receive_count: message.receives });
            if !dice.chance(again / 4) {
                message.visible_at = now + self.visibility;
            }
        }
        received
    }

    /// An invocation is over: what did not fail is deleted, or comes again all the same after `again`.
    pub(crate) fn done(&self, received: &[Delivery], failed: &[String], mut again: impl FnMut() -> Option<Duration>) {
        let now = Instant::now();
        let mut messages = lock(&self.messages);
        for delivery in received {
            let Some(at) = messages.iter().position(|message| message.id == delivery.message_id) else { continue };
            if failed.contains(&delivery.message_id) {
                continue;
            }
            match again() {
                Some(delay) if !messages[at].again => {
                    messages[at].visible_at = now + delay;
                    messages[at].again = true;
                }
                _ => {
                    messages.remove(at);
                }
            }
        }
        drop(messages);
        self.bury();
        self.changed.notify_one();
    }

    /// Messages received too often leave the queue: a hint for good, a request until the operator sends it back.
    fn bury(&self) {
        let now = Instant::now();
        let mut messages = lock(&self.messages);
        let worn = |message: &Message| message.receives >= self.max_receives && message.visible_at <= now;
        messages.retain(|message| !(message.hint && worn(message)));
        for message in messages.iter_mut().filter(|message| worn(message)) {
            message.receives = 0;
            message.visible_at = now + Duration::from_secs(600);
        }
    }

    fn put(&self, message: Message) {
        lock(&self.messages).push(message);
        self.changed.notify_one();
    }
}

/// All queues of the template that invoke a step.
#[derive(Debug)]
pub(crate) struct Queues {
    queues: BTreeMap<String, SimulatedQueue>,
    sent: AtomicUsize,
}

impl Queues {
    /// The queues of a template.
    pub(crate) fn new(template: &Template) -> Self {
        let queue = |source: &fanfold_local::EventSource| {
            let queue = template.queue(&source.queue)?;
            Some(SimulatedQueue {
                name: queue.name.clone(),
                batch: source.batch_size,
                timeout: source.timeout,
                visibility: Duration::from_secs(queue.visibility_timeout.into()),
                max_receives: queue.redrive.as_ref().map_or(u32::MAX, |redrive| redrive.max_receive_count),
                messages: Mutex::default(),
                changed: Notify::new(),
            })
        };
        let queues = template.event_sources().iter().filter_map(queue);
        Self { queues: queues.map(|queue| (queue.name.clone(), queue)).collect(), sent: AtomicUsize::new(0) }
    }

    /// The names of the queues.
    pub(crate) fn names(&self) -> Vec<String> {
        self.queues.keys().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&SimulatedQueue> {
        self.queues.get(name)
    }

    /// The id the next message is going to have.
    pub(crate) fn peek_id(&self) -> String {
        format!("m{}", self.sent.load(Ordering::Relaxed))
    }

    /// An id for a message.
    pub(crate) fn next_id(&self) -> String {
        format!("m{}", self.sent.fetch_add(1, Ordering::Relaxed))
    }

    /// Puts a message in a queue.
    pub(crate) fn send(&self, queue: &str, id: String, body: String, delay: Duration, hint: bool) {
        if let Some(queue) = self.get(queue) {
            let visible_at = Instant::now() + delay;
            queue.put(Message { id, body, visible_at, receives: 0, hint, again: false });
        }
    }

    /// Every message, and how many there ever were.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let now = Instant::now();
        let of = |queue: &SimulatedQueue| -> Vec<(String, Message, Duration)> {
            let messages = lock(&queue.messages);
            let left = |message: &Message| message.visible_at.saturating_duration_since(now);
            messages.iter().map(|message| (queue.name.clone(), message.clone(), left(message))).collect()
        };
        Snapshot { messages: self.queues.values().flat_map(of).collect(), sent: self.sent.load(Ordering::Relaxed) }
    }

    /// Has these messages and no others.
    pub(crate) fn restore(&self, snapshot: Snapshot) {
        self.sent.store(snapshot.sent, Ordering::Relaxed);
        self.queues.values().for_each(|queue| lock(&queue.messages).clear());
        for (name, message, left) in snapshot.messages {
            if let Some(queue) = self.get(&name) {
                queue.put(Message { visible_at: Instant::now() + left, ..message });
            }
        }
    }

    /// Takes the message out of a queue that was sent first: its id and body.
    pub(crate) fn take(&self, queue: &str) -> Option<(String, String)> {
        let mut messages = lock(&self.get(queue)?.messages);
        let first = (!messages.is_empty()).then(|| messages.remove(0))?;
        Some((first.id, first.body))
    }

    /// The first body in a queue, in an order in which the times of sending do not count.
    pub(crate) fn peek(&self, queue: &str) -> Option<String> {
        lock(&self.get(queue)?.messages).iter().map(|message| message.body.clone()).min()
    }

    /// Every message: queue and body.
    pub(crate) fn all(&self) -> Vec<String> {
        let of = |queue: &SimulatedQueue| -> Vec<String> {
            let name = &queue.name;
            lock(&queue.messages).iter().map(|message| format!("{name}: {} {}", message.id, message.body)).collect()
        };
        self.queues.values().flat_map(of).collect()
    }

    /// Loses every hint.
    pub(crate) fn lose_hints(&self) {
        for queue in self.queues.values() {
            let mut messages = lock(&queue.messages);
            messages.retain(|message| !message.hint);
            // Nobody holds a message any more.
            messages.iter_mut().for_each(|message| message.visible_at = message.visible_at.min(Instant::now()));
            queue.changed.notify_one();
        }
    }
}
