//! Delayed messages, held here until they are due. The embedded queue would go through all its delayed messages at every
//! receive, and would notice only once per second that one is due.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::Duration;

use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_model::input::SendMessageInput;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep_until};

/// Messages handed over before others may use what is held.
const CHUNK: usize = 64;

/// What is held for all queues of an engine.
#[derive(Clone, Debug)]
pub(super) struct Delayed(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    provider: Arc<RustackSqs>,
    held: Mutex<Held>,
    /// Wakes the timer: something is due earlier than it thinks, or the engine is gone.
    sooner: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Held {
    heap: BinaryHeap<Reverse<Entry>>,
    by_queue: HashMap<String, u64>,
    /// Queues whose messages are not delayed any more.
    at_once: HashSet<String>,
    next_order: u64,
    has_timer: bool,
}

#[derive(Debug)]
struct Entry {
    due: Instant,
    /// Messages due at the same time leave in the order they came.
    order: u64,
    queue: String,
    message: SendMessageInput,
}

impl Delayed {
    pub(super) fn new(provider: Arc<RustackSqs>) -> Self {
        Self(Arc::new(Shared { provider, held: Mutex::default(), sooner: Arc::default() }))
    }

    /// Holds a message of a queue.
    pub(super) async fn hold(&self, queue: &str, message: SendMessageInput, delay: Duration) {
        let mut held = self.0.held.lock().await;
        let delay = if held.at_once.contains(queue) { Duration::ZERO } else { delay };
        let is_first = held.push(queue, message, Instant::now() + delay);
        if !held.has_timer {
            held.has_timer = true;
            tokio::spawn(run(Arc::downgrade(&self.0), Arc::clone(&self.0.sooner)));
        } else if is_first {
            self.0.sooner.notify_one();
        }
    }

    /// Hands over some of what is due, so that a receive sees it even if it comes before the timer.
    pub(super) async fn hand_over(&self) {
        self.0.hand_over(CHUNK).await;
    }

    /// Hands over all that is due, then runs `count` with the number of messages still held for a queue; none is handed
    /// over meanwhile.
    pub(super) async fn counted<T>(&self, queue: &str, count: impl AsyncFnOnce(u64) -> T) -> T {
        let mut held = self.0.held.lock().await;
        self.0.hand_over_from(&mut held, usize::MAX).await;
        count(held.by_queue.get(queue).copied().unwrap_or_default()).await
    }

    /// When the next message is due, of whatever queue.
    pub(super) async fn next_due(&self) -> Option<Instant> {
        self.0.held.lock().await.heap.peek().map(|Reverse(entry)| entry.due)
    }

    /// From now on nothing is held for a queue; what is held for it is handed over.
    pub(super) async fn end_delays(&self, queue: &str) {
        let mut held = self.0.held.lock().await;
        held.at_once.insert(queue.to_owned());
        let now = Instant::now();
        for Reverse(mut entry) in std::mem::take(&mut held.heap) {
            entry.due = if entry.queue == queue { now } else { entry.due };
            held.heap.push(Reverse(entry));
        }
        self.0.hand_over_from(&mut held, usize::MAX).await;
    }

    /// Drops what is held for a queue.
    pub(super) async fn forget(&self, queue: &str) {
        let mut held = self.0.held.lock().await;
        held.heap.retain(|Reverse(entry)| entry.queue != queue);
        held.by_queue.remove(queue);
    }
}

impl Shared {
    /// Hands over at most `most` messages; returns when the next is due.
    async fn hand_over(&self, most: usize) -> Option<Instant> {
        let mut held = self.held.lock().await;
        self.hand_over_from(&mut held, most).await;
        held.heap.peek().map(|Reverse(entry)| entry.due)
    }

    async fn hand_over_from(&self, held: &mut Held, most: usize) {
        for _ in 0..most {
            let Some(Reverse(entry)) = held.heap.peek().filter(|Reverse(entry)| entry.due <= Instant::now()) else {
                return;
            };
            // It leaves the heap only afterwards: a caller may be dropped while it waits, and nothing may get lost.
            if let Err(error) = self.provider.send_message(entry.message.clone()).await {
                tracing::error!(queue = entry.queue, error = error.message, "a delayed message is lost");
            }
            held.pop();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.sooner.notify_one();
    }
}

/// Hands messages over when they are due, until the engine is gone.
async fn run(shared: Weak<Shared>, sooner: Arc<Notify>) {
    loop {
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let next = shared.hand_over(CHUNK).await;
        drop(shared);
        match next {
            Some(due) => tokio::select! {
                () = sleep_until(due) => {}
                () = sooner.notified() => {}
            },
            None => sooner.notified().await,
        }
    }
}

impl Held {
    /// Returns whether no other message is due earlier.
    fn push(&mut self, queue: &str, message: SendMessageInput, due: Instant) -> bool {
        let is_first = self.heap.peek().is_none_or(|Reverse(first)| due < first.due);
        self.heap.push(Reverse(Entry { due, order: self.next_order, queue: queue.to_owned(), message }));
        self.next_order += 1;
        *self.by_queue.entry(queue.to_owned()).or_default() += 1;
        is_first
    }

    fn pop(&mut self) {
        if let Some(Reverse(entry)) = self.heap.pop()
            && let Some(count) = self.by_queue.get_mut(&entry.queue)
        {
            *count -= 1;
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}
