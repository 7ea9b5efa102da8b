//! Calls that are kept open: whoever writes that one is looks at it again by its deadline.

use std::collections::BTreeMap;
use std::time::Duration;

use fanfold::clock::{Clock, Timestamp};
use fanfold::limits::DELAY_MIN;

use crate::lock;
use crate::observe::next_attempt;
use crate::request::{Record, Request, queue_of};
use crate::wire::Line;

/// How long it was until the deadline of an open call when an invocation wrote of it, by invocation, batch and attempt.
#[derive(Debug, Default)]
pub(crate) struct Deadlines(BTreeMap<(String, Record, u32), Duration>);

impl Line {
    /// Looks at a request before it is made. A message about a call that its worker keeps open is to come by the
    /// deadline. The worker's own clock counts, from its last write about the call: repeated requests and late messages
    /// change nothing. Delays are rounded up to whole seconds, and are one at least.
    pub(crate) fn comes_back(&self, request: &Request, who: &str) {
        let values = &request.body["ExpressionAttributeValues"];
        let number = |name: &str| values[name]["N"].as_str().and_then(|number| number.parse::<u64>().ok());
        let until = number(":answers_until").filter(|_| request.table() == "BatchesTable").map(Timestamp);
        let attempt = number(":attempts").and_then(|attempt| u32::try_from(attempt).ok());
        if let (Some(until), Some(attempt), Some(record)) = (until, attempt, request.writes.first()) {
            let left = until.since(self.worker.clock.now());
            lock(&self.sim.heeding).deadlines.0.insert((who.to_owned(), record.clone(), attempt), left);
        }
        if queue_of(&request.body) != "HandleQueue" {
            return;
        }
        for entry in request.body["Entries"].as_array().into_iter().flatten() {
            let delay = Duration::from_secs(entry["DelaySeconds"].as_u64().unwrap_or(0));
            let body = entry["MessageBody"].as_str().unwrap_or("");
            let Some((record, attempt)) = next_attempt("HandleQueue", body) else { continue };
            let left = lock(&self.sim.heeding).deadlines.0.get(&(who.to_owned(), record, attempt)).copied();
            if let Some(left) = left.filter(|left| delay > *left.max(&DELAY_MIN) + DELAY_MIN) {
                self.sim.violate(format!("{who} comes back in {delay:?}, but the deadline is in {left:?}: {body}"));
            }
        }
    }
}
