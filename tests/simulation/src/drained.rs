//! Scopes that drain or are paused: until when.

use std::collections::{BTreeMap, BTreeSet};

use aws_smithy_runtime_api::client::result::ConnectorError;
use fanfold::control::Scope;
use fanfold::lane::Lane;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::lock;
use crate::order::created_at;
use crate::request::{Record, Request, text};
use crate::wire::Line;

/// A switch, as a record has it.
#[derive(Debug, PartialEq, Eq)]
struct Switch {
    scope: Scope,
    state: String,
    since: u64,
}

/// The switches in a record of the policies.
fn switches((_, key): &Record, item: Option<&Value>) -> Vec<Switch> {
    let rows = item.and_then(|item| serde_json::from_str::<Vec<Value>>(text(item, "switches")).ok());
    let switch = |row: &Value| {
        let partition = row["partition"].as_u64().and_then(|partition| u32::try_from(partition).ok());
        let kind = key.clone();
        let scope = match (row["target"].as_str().map(str::to_owned), partition) {
            _ if key == "*" => Scope::All,
            (None, _) => Scope::Kind(kind),
            (Some(target), None) => Scope::Target { kind, target },
            (Some(target), Some(partition)) => Scope::Lane(Lane { kind, partition, target }),
        };
        let (state, since) = (row["state"].as_str().unwrap_or("").to_owned(), row["since"].as_u64().unwrap_or(0));
        Switch { scope, state, since }
    };
    rows.iter().flatten().map(switch).collect()
}

/// Whether the switch of a scope says that it drains.
pub(crate) fn is_draining(record: &Record, item: &Value, scope: &Scope) -> bool {
    switches(record, Some(item)).iter().any(|switch| switch.scope == *scope && switch.state == "draining")
}

impl Line {
    /// Remembers when a sweep began that asks for other switches: what it asks for may be applied when it is over.
    pub(crate) fn sweeps(&self, request: &Request, who: &str) {
        let (_, step) = self.worker.who();
        if !matches!(step, "sweep" | "resume") || request.writes.first().is_none_or(|(of, _)| of != "PoliciesTable") {
            return;
        }
        let Some(begun) = lock(&self.sim.heeding).knows_switches_of(who) else { return };
        let mut looks = lock(&self.sim.looks);
        let first = looks.switching.entry(request.body.to_string()).or_insert(begun);
        *first = begun.min(*first);
    }

    /// A pause ends only when somebody ends it, and its switch stays for a sweep. A sweep takes the switch of a scope
    /// away that drains once nothing waits there any more that waited when it was set. `before`: the records before a
    /// write, which was applied just now.
    pub(crate) async fn drained(
        &self,
        request: &Request,
        before: &BTreeMap<Record, Value>,
    ) -> Result<(), ConnectorError> {
        let Some(record) = request.writes.first().filter(|(table, _)| table == "PoliciesTable") else { return Ok(()) };
        let now = self.images(std::slice::from_ref(record)).await?;
        let (was, left) = (switches(record, before.get(record)), switches(record, now.get(record)));
        let gone = |scope: &Scope| left.iter().all(|switch| switch.scope != *scope);
        for Switch { scope, .. } in was.iter().filter(|switch| switch.state == "paused" && gone(&switch.scope)) {
            self.sim.violate(format!("{scope} was paused, and is not any more, nor was it resumed: {}", request.body));
        }
        let begun = lock(&self.sim.looks).switching.get(&request.body.to_string()).copied();
        // What has no policy is not waited for.
        let Some(begun) = begun.filter(|_| !lock(&self.sim.model).ever_missing) else { return Ok(()) };
        for switch in was.iter().filter(|switch| switch.state == "draining" && !left.contains(switch)) {
            *lock(&self.sim.stats).brought.entry("scopes that drain no longer").or_default() += 1;
            self.nothing_waits(switch, begun).await?;
        }
        Ok(())
    }

    /// Nothing is left of what waited in a scope, as a sweep that began then must know.
    async fn nothing_waits(&self, switch: &Switch, begun: Instant) -> Result<(), ConnectorError> {
        let unchanged = |record: &Record, since| lock(&self.sim.lag).at(record, since).is_none();
        let shown = begun.checked_sub(self.sim.plan.index_lag).unwrap_or(begun);
        let scan = json!({"TableName": "TasksTable", "IndexName": "pending"});
        let mut waiting = self.waiting("Scan", &scan).await?;
        // The index may not have shown what was written later.
        waiting.retain(|record, item| created_at(item) <= switch.since && unchanged(record, shown));
        let lanes = waiting.values().filter_map(|item| text(item, "lane").parse::<Lane>().ok());
        let lanes: BTreeSet<Lane> = lanes.filter(|lane| switch.scope.covers(lane)).collect();
        for lane in lanes {
            // What is paused by itself is not waited for: this is known if its switches are as when the sweep began.
            let records = [lane.kind.as_str(), "*"].map(|key| ("PoliciesTable".to_owned(), key.to_owned()));
            let images = self.images(&records).await?;
            let mut others = records.iter().flat_map(|record| switches(record, images.get(record)));
            let paused = others.any(|other| other.state == "paused" && other.scope.covers(&lane));
            if !paused && records.iter().all(|record| unchanged(record, begun)) {
                let Switch { scope, since, .. } = switch;
                self.sim.violate(format!("{scope} drains no longer; in lane {lane} waits what came before {since}"));
            }
        }
        Ok(())
    }
}
