//! Switches: which scopes are paused, drain, or were just resumed. No I/O.
//!
//! A scope has one switch: paused, draining, or, for some minutes after a pause, resumed. *Resumed* is an intent: what waits
//! in the scope is to be woken. `sweep` takes the switch away when it has woken that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Scope;
use crate::clock::Timestamp;
use crate::lane::Lane;
use crate::limits::SWITCHES_PER_KIND_MAX;

/// The state of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SwitchState {
    /// No call of a batch API begins.
    Paused,
    /// Batches are formed without linger, until all that waited when it began is in a batch.
    Draining,
    /// The scope is not paused any more, and what waits is being woken.
    Resumed,
}

/// A switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its state.
    pub state: SwitchState,
    /// Since when.
    pub since: Timestamp,
}

/// The switches of one record: those of a kind and its targets and lanes, or the switch of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switches(BTreeMap<Scope, Switch>);

/// A record has no room for another switch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{SWITCHES_PER_KIND_MAX} targets and lanes of kind `{kind}` are paused or drain, which is the maximum; a kind can \
     be paused as a whole"
)]
pub struct TooMany {
    /// The kind.
    pub kind: String,
}

/// The effect of all switches on a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// It is paused, whatever the other fields are.
    pub paused: bool,
    /// Its leaders do not linger.
    pub draining: bool,
    /// When it was resumed, if that was just now.
    pub resumed_at: Option<Timestamp>,
}

impl Switches {
    /// The switches, by scope.
    pub fn iter(&self) -> impl Iterator<Item = (&Scope, Switch)> {
        self.0.iter().map(|(scope, switch)| (scope, *switch))
    }

    /// The switch of a scope.
    #[must_use]
    pub fn get(&self, scope: &Scope) -> Option<Switch> {
        self.0.get(scope).copied()
    }

    /// Pauses a scope. If it is paused already, its switch does not change.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn pause(&mut self, scope: &Scope, now: Timestamp) -> Result<(), TooMany> {
        match self.get(scope) {
            Some(switch) if switch.state == SwitchState::Paused => Ok(()),
            _ => self.set(scope, SwitchState::Paused, now),
        }
    }

    /// Drains what waits now in a scope. If it is paused, the pause ends.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn drain(&mut self, scope: &Scope, now: Timestamp) -> Result<(), TooMany> {
        self.set(scope, SwitchState::Draining, now)
    }

    /// Resumes a scope. The switches of wider and narrower scopes stay as they are.
    pub fn resume(&mut self, scope: &Scope, now: Timestamp) {
        if let Some(switch) = self.0.get_mut(scope).filter(|switch| switch.state != SwitchState::Resumed) {
            *switch = Switch { state: SwitchState::Resumed, since: now };
        }
    }

    /// Takes a switch away whose work is done, unless it was changed meanwhile.
    pub fn finish(&mut self, scope: &Scope, switch: Switch) {
        if self.get(scope) == Some(switch) && switch.state != SwitchState::Paused {
            self.0.remove(scope);
        }
    }

    /// Their effect on a lane.
    #[must_use]
    pub fn hold(&self, lane: &Lane) -> Hold {
        if self.0.is_empty() {
            return Hold::default();
        }
        let of = Scope::of(lane);
        let found = of.iter().filter_map(|scope| self.get(scope));
        found.fold(Hold::default(), |hold, switch| hold.and(switch.hold()))
    }

    fn set(&mut self, scope: &Scope, state: SwitchState, since: Timestamp) -> Result<(), TooMany> {
        if self.0.len() >= SWITCHES_PER_KIND_MAX && !self.0.contains_key(scope) {
            return Err(TooMany { kind: scope.kind().unwrap_or_default().to_owned() });
        }
        self.0.insert(scope.clone(), Switch { state, since });
        Ok(())
    }

    /// The stored form; none, if there are none.
    pub(crate) fn encode(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let row = |(scope, switch): (&Scope, &Switch)| Row {
            target: scope.target().map(str::to_owned),
            partition: scope.partition(),
            state: switch.state,
            since: switch.since.0,
        };
        serde_json::to_string(&self.0.iter().map(row).collect::<Vec<_>>()).ok()
    }

    /// Reads the stored form. `kind`: the kind of the record; none for the switch of everything.
    pub(crate) fn decode(kind: Option<&str>, text: &str) -> Result<Self, serde_json::Error> {
        let rows: Vec<Row> = serde_json::from_str(text)?;
        let switch = |row: Row| {
            let switch = Switch { state: row.state, since: Timestamp(row.since) };
            let scope = match (kind.map(str::to_owned), row.target, row.partition) {
                (None, ..) => Scope::All,
                (Some(kind), None, _) => Scope::Kind(kind),
                (Some(kind), Some(target), None) => Scope::Target { kind, target },
                (Some(kind), Some(target), Some(partition)) => Scope::Lane(Lane { kind, partition, target }),
            };
            (scope, switch)
        };
        Ok(Self(rows.into_iter().map(switch).collect()))
    }
}

impl Switch {
    fn hold(self) -> Hold {
        Hold {
            paused: self.state == SwitchState::Paused,
            draining: self.state == SwitchState::Draining,
            resumed_at: (self.state != SwitchState::Paused).then_some(self.since),
        }
    }
}

impl Hold {
    /// The effect of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            paused: self.paused || other.paused,
            draining: self.draining || other.draining,
            resumed_at: self.resumed_at.max(other.resumed_at),
        }
    }
}

/// A switch as it is stored.
#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
    state: SwitchState,
    since: u64,
}

/// All switches there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switchboard {
    /// The switch of everything.
    pub all: Switches,
    /// Those of each kind that has a policy.
    pub kinds: BTreeMap<String, Switches>,
}

impl Switchboard {
    /// Their effect on a lane.
    #[must_use]
    pub fn hold(&self, lane: &Lane) -> Hold {
        let of_kind = self.kinds.get(&lane.kind).map(|switches| switches.hold(lane)).unwrap_or_default();
        self.all.hold(lane).and(of_kind)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&Scope, Switch)> {
        self.all.iter().chain(self.kinds.values().flat_map(Switches::iter))
    }

    /// The scopes that are paused and contain this one: as long as there are any, it is paused.
    pub fn pausing(&self, scope: &Scope) -> impl Iterator<Item = &Scope> {
        let pauses = |(other, switch): &(&Scope, Switch)| switch.state == SwitchState::Paused && other.contains(scope);
        self.iter().filter(pauses).map(|(scope, _)| scope)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
