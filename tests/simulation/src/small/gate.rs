//! The gate at the wire: in a small case every request of a worker stops here until the explorer picks it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures::channel::oneshot;
use serde_json::Value;

use super::touches::{Touches, canonical};
use crate::faults::Fault;
use crate::lock;
use crate::request::Record;

/// A request that waits.
#[derive(Debug)]
struct Ask {
    worker: String,
    touches: Arc<Touches>,
    picked: oneshot::Sender<Fault>,
}

/// What passed the gate, and what stands before it.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    asks: Vec<Ask>,
    /// Every record that was ever written.
    records: BTreeMap<Record, Value>,
    /// A fingerprint of them.
    stands: u64,
    /// The messages sent, in whatever order.
    sent: u64,
    /// What those outside the stack were asked and answered, in that order.
    outside: u64,
    /// What each worker asked and heard.
    heard: BTreeMap<String, u64>,
}

impl Gate {
    /// From now on requests wait.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// From now on requests pass.
    pub(crate) fn open(&self) {
        self.closed.store(false, Ordering::Relaxed);
    }

    /// Whether requests wait. Clocks stand still meanwhile.
    pub(crate) fn closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Waits until a request is picked. Returns what is to become of it.
    pub(crate) async fn pass(&self, worker: &str, touches: Touches) -> Fault {
        if !self.closed() {
            return Fault::None;
        }
        let (picked, waits) = oneshot::channel();
        lock(&self.state).asks.push(Ask { worker: worker.to_owned(), touches: Arc::new(touches), picked });
        waits.await.unwrap_or(Fault::None)
    }

    /// The request of a worker that has waited longest. What a worker asks at once goes in the order in which it asks.
    pub(crate) fn waits(&self, worker: &str) -> Option<Arc<Touches>> {
        let mut state = lock(&self.state);
        state.asks.retain(|ask| !ask.picked.is_canceled());
        state.asks.iter().find(|ask| ask.worker == worker).map(|ask| Arc::clone(&ask.touches))
    }

    /// Lets that request go on.
    pub(crate) fn pick(&self, worker: &str, fault: Fault) {
        let mut state = lock(&self.state);
        if let Some(at) = state.asks.iter().position(|ask| ask.worker == worker) {
            let _ = state.asks.remove(at).picked.send(fault);
        }
    }

    /// Records are like this now.
    pub(crate) fn wrote(&self, written: &[Record], now: &BTreeMap<Record, Value>) {
        let mut state = lock(&self.state);
        for record in written {
            let was = match now.get(record) {
                Some(item) => {
                    state.stands = state.stands.wrapping_add(hash((record, canonical(item))));
                    state.records.insert(record.clone(), item.clone())
                }
                None => state.records.remove(record),
            };
            if let Some(was) = was {
                state.stands = state.stands.wrapping_sub(hash((record, canonical(&was))));
            }
        }
    }

    /// Every record.
    pub(crate) fn records(&self) -> BTreeMap<Record, Value> {
        lock(&self.state).records.clone()
    }

    /// The tables are like this from the beginning.
    pub(crate) fn begin_with(&self, records: BTreeMap<Record, Value>) {
        let mut state = lock(&self.state);
        state.records = records;
        state.stands = 0;
    }

    /// A message was sent.
    pub(crate) fn sent(&self, message: impl Hash) {
        let mut state = lock(&self.state);
        state.sent = state.sent.wrapping_add(hash(message));
    }

    /// Somebody outside the stack was called, or answered.
    pub(crate) fn called(&self, what: &str) {
        let mut state = lock(&self.state);
        state.outside = hash((state.outside, what));
    }

    /// A worker asked, and heard this, or nothing.
    pub(crate) fn heard(&self, worker: &str, what: &str, answer: Option<&Value>) {
        let mut state = lock(&self.state);
        let heard = state.heard.entry(worker.to_owned()).or_default();
        *heard = hash((*heard, what, answer.map(canonical)));
    }

    /// What a worker knows: all that it does follows from it.
    pub(crate) fn knows(&self, worker: &str) -> u64 {
        lock(&self.state).heard.get(worker).copied().unwrap_or_default()
    }

    /// A fingerprint of tables, queues and what was said outside.
    pub(crate) fn world(&self) -> u64 {
        let state = lock(&self.state);
        hash((state.stands, state.sent, state.outside))
    }
}

/// A fingerprint, in every run the same.
pub(crate) fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
