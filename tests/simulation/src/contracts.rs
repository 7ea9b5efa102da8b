//! What must be so when a write is applied: looked at on every one that was, with the record as it was before.

use serde_json::Value;

use crate::lock;
use crate::request::{Request, text};
use crate::sim::Sim;

/// What holds for some writes: which these are is seen by the values they name, so each contract counts its writes.
struct Contract {
    name: &'static str,
    tables: &'static [&'static str],
    applies: fn(&Write<'_>) -> bool,
    holds: fn(&Write<'_>) -> bool,
}

/// Every contract. Over many runs each must have had writes.
const CONTRACTS: [Contract; 6] = [
    Contract {
        name: "a leader comes",
        tables: &["LocksTable"],
        applies: |write| write.names(":max"),
        holds: |write| write.before["holder"].is_null() && write.leads_on(),
    },
    Contract {
        name: "a write acts for the leader",
        tables: &["LocksTable"],
        applies: |write| !write.names(":max") && write.names(":me") && write.names(":epoch"),
        holds: |write| write.right(":me", "holder") && write.right(":epoch", "epoch"),
    },
    Contract {
        name: "a silent leader is woken",
        tables: &["LocksTable"],
        applies: |write| !write.names(":max") && (write.names(":silent") || write.names(":then")),
        holds: |write| write.right(":silent", "holder") && write.right(":then", "acquired_at"),
    },
    Contract {
        name: "an attempt begins",
        tables: &["BatchesTable"],
        applies: |write| write.names(":attempt"),
        holds: |write| write.begins_in_turn(),
    },
    Contract {
        name: "a try of a notice begins",
        tables: &["BatchesTable", "FanoutsTable", "LocksTable"],
        applies: |write| write.names(":notice_worker") && write.names(":notice_lease"),
        holds: |write| write.notifies_in_turn(),
    },
    Contract {
        name: "a try of a notice is taken for lost",
        tables: &["BatchesTable", "FanoutsTable"],
        applies: |write| write.breaks_off_a_try(),
        holds: |write| write.dead || write.comes_after_the_try(),
    },
];

/// The names of all contracts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CONTRACTS.iter().map(|contract| contract.name)
}

/// What is wrong with a write that was applied to `before`.
pub(crate) fn check(sim: &Sim, request: &Request, before: Option<&Value>) -> Option<String> {
    let write = Write {
        change: request.body["UpdateExpression"].as_str().unwrap_or(""),
        values: &request.body["ExpressionAttributeValues"],
        before: before.unwrap_or(&Value::Null),
        dead: sim.plan.restarts > 0,
    };
    let mut broken = None;
    for contract in CONTRACTS.iter().filter(|contract| contract.tables.contains(&request.table())) {
        if (contract.applies)(&write) {
            *lock(&sim.stats).judged.entry(contract.name).or_default() += 1;
            broken = broken.or(Some(contract.name).filter(|_| !(contract.holds)(&write)));
        }
    }
    broken.map(|name| format!("{name}, but the record was {before:?} when this was applied to it: {}", request.body))
}

/// A write and the record it met.
struct Write<'a> {
    change: &'a str,
    values: &'a Value,
    before: &'a Value,
    /// Whether workers may be known to be dead: then nobody waits for the end of what they hold.
    dead: bool,
}

impl Write<'_> {
    /// The write that ends a batch and makes a leader ends one that is in flight, where tasks wait.
    fn leads_on(&self) -> bool {
        let ids = |set: &Value| set["BS"].as_array().cloned().unwrap_or_default();
        let (ended, flying) = (ids(&self.values[":in_flight"]), ids(&self.before["in_flight"]));
        ended.is_empty() || (ended.iter().all(|batch| flying.contains(batch)) && !self.before["waiting"].is_null())
    }

    /// An attempt begins when the one before it has ended, or when its lease ran out by the clock of the worker that begins.
    fn begins_in_turn(&self) -> bool {
        let time = |value: &Value| value["N"].as_str().and_then(|time| time.parse::<u64>().ok());
        match time(&self.before["lease_until"]) {
            Some(lease_until) => {
                self.right(":attempt", "attempts") && time(&self.values[":now"]).is_some_and(|now| lease_until < now)
            }
            None if self.names(":before") => self.right(":before", "attempts"),
            None => text(self.before, "status") == "formed",
        }
    }

    /// A try to deliver a notice begins when it is due and none runs, by the clock of the worker that begins, and not after its end.
    fn notifies_in_turn(&self) -> bool {
        let time = |value: &Value| value["N"].as_str().and_then(|time| time.parse::<u64>().ok());
        let now = time(&self.values[":now"]);
        let over = !self.before["notified"].is_null() || !self.before["undeliverable"].is_null();
        !over && time(&self.before["notice_due"]) <= now && time(&self.before["notice_lease"]) <= now
    }

    /// A try that runs is ended by who does not run it, and the notice was not delivered.
    fn breaks_off_a_try(&self) -> bool {
        let ends = self.change.contains("#notice_lease") && !self.before["notice_lease"].is_null();
        ends && !self.names(":notice_worker") && !self.names(":notified")
    }

    /// Its lease is over by the clock of the worker that says when the next try is due: now.
    fn comes_after_the_try(&self) -> bool {
        let time = |value: &Value| value["N"].as_str().and_then(|time| time.parse::<u64>().ok());
        // With the time that was to be met, that of now has the next name.
        let now = time(&self.values[":notice_due2"]).or(time(&self.values[":notice_due"]));
        time(&self.before["notice_lease"]) <= now
    }

    fn names(&self, name: &str) -> bool {
        !self.values[name].is_null()
    }

    /// Whether a value, if the write names it, is what the record said.
    fn right(&self, name: &str, attribute: &str) -> bool {
        !self.names(name) || self.values[name] == self.before[attribute]
    }
}
