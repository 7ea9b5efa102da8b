//! For how long leaders wait in all, however often they look.

use std::time::Duration;

use fanfold::delivery::Delivery;
use fanfold::ids::derived;
use fanfold::messages::GroupMessage;
use uuid::Uuid;

use super::Told;
use crate::lock;
use crate::request::{Request, queue_of};
use crate::wire::Line;

/// A wait is rounded up to whole seconds, if the policy has no others. It may have had when the leader waited first.
const ROUNDED: Duration = Duration::from_secs(1);

impl Told {
    /// A worker gets these messages.
    pub(crate) fn gets(&mut self, worker: &str, messages: &[Delivery]) {
        self.got.insert(worker.to_owned(), messages.iter().map(|message| message.body.clone()).collect());
    }

    /// For how long a leader has waited by its messages that a worker got; of several the one counts that says least.
    fn waited_before(&self, worker: &str, batch: Uuid) -> Duration {
        let waited = |body: &String| {
            let message: GroupMessage = serde_json::from_str(body).ok()?;
            if derived::next_batch(message.batch) == batch {
                // It leads just now, and has not waited.
                return Some(Duration::ZERO);
            }
            (message.batch == batch).then(|| self.waited.get(body).copied().unwrap_or_default())
        };
        self.got.get(worker).into_iter().flatten().filter_map(waited).min().unwrap_or_default()
    }
}

impl Line {
    /// A leader does not wait for longer than its policy says, however often it looks: each message that it sends
    /// itself adds to the time that it has waited. Looked at before a request is made: what is applied late may be of
    /// an invocation that is over.
    pub(crate) fn adds_up(&self, request: &Request) {
        if queue_of(&request.body) != "GroupQueue" {
            return;
        }
        let (_, step) = self.worker.who();
        for entry in request.body["Entries"].as_array().into_iter().flatten() {
            let body = entry["MessageBody"].as_str().unwrap_or("");
            let Ok(message) = serde_json::from_str::<GroupMessage>(body) else { continue };
            let wait = Duration::from_secs(entry["DelaySeconds"].as_u64().unwrap_or(0)) + message.worker_waits();
            let waited = {
                let mut told = lock(&self.sim.told);
                let own = step == "group";
                let before = if own { told.waited_before(&self.worker.name, message.batch) } else { Duration::ZERO };
                let most = told.waited.entry(body.to_owned()).or_default();
                *most = (before + wait).max(*most);
                before + wait
            };
            let longest = lock(&self.sim.model).kinds.get(&message.lane.kind).map(|kind| kind.waits.longest);
            if !wait.is_zero() && longest.is_some_and(|longest| waited > longest + ROUNDED) {
                self.sim.violate(format!("a leader lingers for {waited:?} in all, {longest:?} is allowed: {body}"));
            }
        }
    }
}
