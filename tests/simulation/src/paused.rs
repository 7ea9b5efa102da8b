//! Pauses, as workers have to know of them: those that began some time after the response to a pause send no message
//! about its lanes, and intend no batch of them, and the end of a batch leads none of them on. And who wakes a lane that
//! is resumed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::control::Scope;
use fanfold::lane::Lane;
use fanfold::limits::POLICY_CACHE_MAX;
use fanfold::store::locks::is_lane;
use serde_json::Value;
use tokio::time::Instant;

use crate::faults::Fault;
use crate::later::Deadlines;
use crate::lock;
use crate::order::intended;
use crate::request::{Request, queue_of};
use crate::wire::Line;

/// Who begins this much later than the response to a pause knows of it: what is cached is not older.
pub(crate) const KNOWN_WITHIN: Duration = Duration::from_secs(POLICY_CACHE_MAX.as_secs() + 1);

/// What invocations know, and what they sent.
#[derive(Debug, Default)]
pub(crate) struct Heeding {
    /// When an invocation made its first request.
    begun: BTreeMap<String, Instant>,
    /// Those that could not read switches, for which nothing is paused then.
    blind: BTreeSet<String>,
    /// When the last election was asked for, by lane.
    woken: BTreeMap<Lane, Instant>,
    /// When an invocation took a batch out of a lane's flight, first: right before that it read the lane's switches.
    left: BTreeMap<(String, Lane), Instant>,
    /// The open calls that invocations wrote of.
    pub(crate) deadlines: Deadlines,
}

impl Heeding {
    /// A request of an invocation is to meet this fault.
    pub(crate) fn read_with(&mut self, request: &Request, fault: Fault, who: &str) {
        let harmless = matches!(fault, Fault::None | Fault::CrashBefore | Fault::CrashAfter);
        if !harmless && request.table() == "PoliciesTable" {
            self.blind.insert(who.to_owned());
        }
    }

    /// When an invocation made its first request; none, if it could not read switches.
    pub(crate) fn knows_switches_of(&self, who: &str) -> Option<Instant> {
        self.begun.get(who).copied().filter(|_| !self.blind.contains(who))
    }

    /// Whether an election was asked for in a lane.
    pub(crate) fn woken_since(&self, lane: &Lane, then: Instant) -> bool {
        self.woken.get(lane).is_some_and(|at| *at >= then)
    }
}

impl Line {
    /// Looks at a request before it is made.
    pub(crate) fn heeds(&self, request: &Request, who: &str, step: &str) {
        let begun = *lock(&self.sim.heeding).begun.entry(who.to_owned()).or_insert_with(Instant::now);
        let (lanes, knows) = match (queue_of(&request.body), step) {
            (queue @ ("ElectQueue" | "GroupQueue"), _) => {
                let lanes = lanes_in(request);
                if queue == "ElectQueue" {
                    let now = Instant::now();
                    lock(&self.sim.heeding).woken.extend(lanes.iter().map(|lane| (lane.clone(), now)));
                }
                (if matches!(step, "register" | "produce" | "elect") { lanes } else { Vec::new() }, begun)
            }
            (_, "group") => {
                let intended = intended(request).filter(|(_, _, members)| !members.is_empty());
                (intended.and_then(|(_, lane, _)| lane.parse().ok()).into_iter().collect(), begun)
            }
            (_, "handle") => match self.led_on(request, who) {
                Some((lane, left)) => (vec![lane], left),
                None => return,
            },
            _ => return,
        };
        if lock(&self.sim.heeding).blind.contains(who) {
            return;
        }
        for (lane, scope) in self.paused_before(&lanes, knows) {
            self.sim.violate(format!("{who} works on lane {lane}, although {scope} is paused: {}", request.names));
        }
    }

    /// The lane in which this request makes the next batch the leader, since one has ended; and when its worker had just
    /// read the lane's switches: others may have paused the lane since.
    fn led_on(&self, request: &Request, who: &str) -> Option<(Lane, Instant)> {
        let (_, key) = request.writes.first().filter(|(table, key)| table == "LocksTable" && is_lane(key))?;
        let name = (who.to_owned(), key.parse::<Lane>().ok()?);
        let mut heeding = lock(&self.sim.heeding);
        let change = request.body["UpdateExpression"].as_str().unwrap_or("");
        if change.contains("DELETE #in_flight") {
            heeding.left.entry(name.clone()).or_insert_with(Instant::now);
        }
        let leads = !request.body["ExpressionAttributeValues"][":max"].is_null();
        let left = heeding.left.get(&name).filter(|_| leads).copied()?;
        Some((name.1, left))
    }

    /// The lanes that an invocation must know to be paused: it knows the switches as they were at that moment.
    fn paused_before(&self, lanes: &[Lane], knows: Instant) -> Vec<(Lane, Scope)> {
        let model = lock(&self.sim.model);
        let paused = |scope: &Scope| model.control.paused.get(scope).is_some_and(|since| *since + KNOWN_WITHIN < knows);
        let paused = |lane: &Lane| Some((lane.clone(), Scope::of(lane).into_iter().find(paused)?));
        lanes.iter().filter_map(paused).collect()
    }
}

/// The lanes that messages are about.
fn lanes_in(request: &Request) -> Vec<Lane> {
    let entries = request.body["Entries"].as_array().into_iter().flatten();
    let lane = |entry: &Value| {
        let body: Value = serde_json::from_str(entry["MessageBody"].as_str()?).ok()?;
        body["lane"].as_str()?.parse().ok()
    };
    entries.filter_map(lane).collect()
}
