//! What must be so when a write is applied: looked at on every one that was, with the record as it was before.

use serde_json::Value;

use crate::request::{Request, text};

/// What is wrong with a write that was applied to `before`.
pub(crate) fn check(request: &Request, before: Option<&Value>) -> Option<String> {
    let write = Write { values: &request.body["ExpressionAttributeValues"], before: before.unwrap_or(&Value::Null) };
    let right = match request.table() {
        "LocksTable" => write.acts_for_the_leader(),
        "BatchesTable" => write.begins_in_turn() && write.tells_in_turn(),
        "FanoutsTable" => write.tells_in_turn(),
        _ => true,
    };
    (!right).then(|| format!("a record was {before:?} when this was applied to it: {}", request.body))
}

/// A write's values and the record it met.
struct Write<'a> {
    values: &'a Value,
    before: &'a Value,
}

impl Write<'_> {
    /// A leader is elected where there is none, or led on to by a batch in flight where tasks wait. Who acts for it must be right
    /// about who leads and in which epoch, and who reminds it about its last sign of life.
    fn acts_for_the_leader(&self) -> bool {
        if self.tells(":max") {
            return self.before["holder"].is_null() && self.leads_on();
        }
        let acts = self.tells(":me") && self.tells(":epoch");
        let led = !acts || (self.right(":me", "holder") && self.right(":epoch", "epoch"));
        led && self.right(":silent", "holder") && self.right(":then", "acquired_at")
    }

    /// Whoever makes a leader by the write that ends a batch ends one that is in flight, and knows of tasks that wait.
    fn leads_on(&self) -> bool {
        let ids = |set: &Value| set["BS"].as_array().cloned().unwrap_or_default();
        let (ended, flying) = (ids(&self.values[":in_flight"]), ids(&self.before["in_flight"]));
        ended.is_empty() || (ended.iter().all(|batch| flying.contains(batch)) && !self.before["waiting"].is_null())
    }

    /// An attempt begins when the one before it has ended, or when its lease ran out by the clock of who begins.
    fn begins_in_turn(&self) -> bool {
        if !self.tells(":attempt") {
            return true;
        }
        let time = |value: &Value| value["N"].as_str().and_then(|time| time.parse::<u64>().ok());
        match time(&self.before["lease_until"]) {
            Some(lease_until) => {
                self.right(":attempt", "attempts") && time(&self.values[":now"]).is_some_and(|now| lease_until < now)
            }
            None if self.tells(":before") => self.right(":before", "attempts"),
            None => text(self.before, "status") == "dispatched",
        }
    }

    /// A try to tell a notice begins when it is due and none runs, by the clock of who begins, and not after its end.
    fn tells_in_turn(&self) -> bool {
        if !(self.tells(":notice_worker") && self.tells(":notice_lease")) {
            return true;
        }
        let time = |value: &Value| value["N"].as_str().and_then(|time| time.parse::<u64>().ok());
        let now = time(&self.values[":now"]);
        let over = !self.before["notified"].is_null() || !self.before["undeliverable"].is_null();
        !over && time(&self.before["notice_due"]) <= now && time(&self.before["notice_lease"]) <= now
    }

    fn tells(&self, name: &str) -> bool {
        !self.values[name].is_null()
    }

    /// Whether a value, if the write tells it, is what the record said.
    fn right(&self, name: &str, attribute: &str) -> bool {
        !self.tells(name) || self.values[name] == self.before[attribute]
    }
}
