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
use crate::wire::WireAnswer;

/// A request that waits.
#[derive(Debug)]
struct WaitingRequest {
    worker: String,
    touches: Arc<Touches>,
    picked: oneshot::Sender<Picked>,
}

/// A request is picked.
#[derive(Clone, Debug)]
pub(crate) struct Picked {
    /// What is to become of it.
    pub(crate) fault: Fault,
    /// What it was answered in an earlier schedule that began in the same way: it need not be applied again.
    pub(crate) reply: Option<WireAnswer>,
}

/// What passed the gate, and what stands before it.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    asks: Vec<WaitingRequest>,
    /// What the request picked last was answered.
    reply: Option<WireAnswer>,
    passed: Passed,
    /// The records when the workers began.
    began: BTreeMap<Record, Value>,
}

/// What has passed until a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passed {
    /// Every record that was ever written.
    pub(crate) records: BTreeMap<Record, Value>,
    /// A fingerprint of them.
    stands: u64,
    /// The messages sent, in any order.
    sent: u64,
    /// What those outside the stack were asked and answered, in that order.
    outside: u64,
    /// What each worker asked and heard.
    heard: BTreeMap<String, u64>,
}

impl Gate {
    /// From now on requests wait.
    pub(crate) fn close(&self) {
        let state = &mut *lock(&self.state);
        state.began.clone_from(&state.passed.records);
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
    pub(crate) async fn pass(&self, worker: &str, touches: Touches) -> Picked {
        let nothing = Picked { fault: Fault::None, reply: None };
        if !self.closed() {
            return nothing;
        }
        let (picked, waits) = oneshot::channel();
        lock(&self.state).asks.push(WaitingRequest { worker: worker.to_owned(), touches: Arc::new(touches), picked });
        waits.await.unwrap_or(nothing)
    }

    /// The request of a worker that has waited longest. What a worker asks at once goes in the order in which it asks.
    pub(crate) fn waits(&self, worker: &str) -> Option<Arc<Touches>> {
        let mut state = lock(&self.state);
        state.asks.retain(|ask| !ask.picked.is_canceled());
        state.asks.iter().find(|ask| ask.worker == worker).map(|ask| Arc::clone(&ask.touches))
    }

    /// Lets that request go on.
    pub(crate) fn pick(&self, worker: &str, picked: Picked) {
        let mut state = lock(&self.state);
        if let Some(at) = state.asks.iter().position(|ask| ask.worker == worker) {
            let _ = state.asks.remove(at).picked.send(picked);
        }
    }

    /// The request picked last was answered so.
    pub(crate) fn replied(&self, reply: WireAnswer) {
        lock(&self.state).reply = Some(reply);
    }

    /// What the request picked last was answered.
    pub(crate) fn reply(&self) -> Option<WireAnswer> {
        lock(&self.state).reply.take()
    }

    /// What has passed until now.
    pub(crate) fn passed(&self) -> Passed {
        lock(&self.state).passed.clone()
    }

    /// This has passed.
    pub(crate) fn go_on_from(&self, passed: Passed) {
        lock(&self.state).passed = passed;
    }

    /// Records are like this now.
    pub(crate) fn wrote(&self, written: &[Record], now: &BTreeMap<Record, Value>) {
        let passed = &mut lock(&self.state).passed;
        for record in written {
            let was = match now.get(record) {
                Some(item) => {
                    passed.stands = passed.stands.wrapping_add(hash((record, canonical(item))));
                    passed.records.insert(record.clone(), item.clone())
                }
                None => passed.records.remove(record),
            };
            if let Some(was) = was {
                passed.stands = passed.stands.wrapping_sub(hash((record, canonical(&was))));
            }
        }
    }

    /// Records as they are.
    pub(crate) fn images(&self, records: &[Record]) -> BTreeMap<Record, Value> {
        let passed = &lock(&self.state).passed;
        records.iter().filter_map(|record| Some((record.clone(), passed.records.get(record)?.clone()))).collect()
    }

    /// What a record was when the workers began, if it has changed since; none: it did not exist. The policies that a case
    /// begins with did not pass here.
    pub(crate) fn earlier(&self, record: &Record) -> Option<Option<Value>> {
        let state = lock(&self.state);
        let (began, now) = (state.began.get(record), state.passed.records.get(record));
        (record.0 != "PoliciesTable" && began != now).then(|| began.cloned())
    }

    /// Every record.
    pub(crate) fn records(&self) -> BTreeMap<Record, Value> {
        lock(&self.state).passed.records.clone()
    }

    /// A message was sent.
    pub(crate) fn sent(&self, message: impl Hash) {
        let passed = &mut lock(&self.state).passed;
        passed.sent = passed.sent.wrapping_add(hash(message));
    }

    /// Somebody outside the stack was called, or answered.
    pub(crate) fn called(&self, what: &str) {
        let passed = &mut lock(&self.state).passed;
        passed.outside = hash((passed.outside, what));
    }

    /// A worker asked, and heard this, or nothing.
    pub(crate) fn heard(&self, worker: &str, what: &str, answer: Option<&Value>) {
        let passed = &mut lock(&self.state).passed;
        let heard = passed.heard.entry(worker.to_owned()).or_default();
        *heard = hash((*heard, what, answer.map(canonical)));
    }

    /// What a worker knows: all that it does follows from it.
    pub(crate) fn knows(&self, worker: &str) -> u64 {
        lock(&self.state).passed.heard.get(worker).copied().unwrap_or_default()
    }

    /// A fingerprint of tables, queues and what was said outside.
    pub(crate) fn world(&self) -> u64 {
        let passed = &lock(&self.state).passed;
        hash((passed.stands, passed.sent, passed.outside))
    }
}

/// A fingerprint, in every run the same.
pub(crate) fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
