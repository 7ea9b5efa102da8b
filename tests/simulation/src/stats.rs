//! What was injected, and where: over many runs this shows what the simulation reaches.

use std::collections::{BTreeMap, BTreeSet};

/// Requests made less often are only marked in the report if no worker died at one of their sides: chance decides that.
const SELDOM: u64 = 100;

/// Counts of one kind of request of one step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reached {
    /// Times it was made.
    pub made: u64,
    /// Crashes before it was applied.
    pub before: u64,
    /// Crashes after it was applied.
    pub after: u64,
}

/// Counts of one or many runs.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Faults by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// Requests by step and kind.
    pub reached: BTreeMap<(&'static str, String), Reached>,
    /// What steps need to be allowed: step, action as IAM names it, resource.
    pub actions: BTreeSet<(&'static str, String, String)>,
    /// What the scenarios brought: tasks, fan-outs, calls.
    pub brought: BTreeMap<&'static str, u64>,
    /// Writes that contracts applied to, by contract.
    pub judged: BTreeMap<&'static str, u64>,
}

impl Stats {
    /// Adds those of another run.
    pub fn merge(&mut self, other: &Self) {
        for (kind, count) in &other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (what, count) in &other.brought {
            *self.brought.entry(what).or_default() += count;
        }
        for (contract, count) in &other.judged {
            *self.judged.entry(contract).or_default() += count;
        }
        self.actions.extend(other.actions.iter().cloned());
        for (place, reached) in &other.reached {
            let sum = self.reached.entry(place.clone()).or_default();
            sum.made += reached.made;
            sum.before += reached.before;
            sum.after += reached.after;
        }
    }

    /// Requests, by step, that no worker died before, or none after, although they were made often.
    pub fn missed(&self) -> Vec<String> {
        let one_side = |reached: &Reached| reached.before == 0 || reached.after == 0;
        let missed = self.reached.iter().filter(|(_, reached)| reached.made >= SELDOM && one_side(reached));
        missed.map(|((step, kind), _)| format!("{step} {kind}")).collect()
    }

    /// Contracts that no write was judged by: what they look for is not there, or has another name by now.
    pub fn unjudged(&self) -> Vec<&'static str> {
        crate::contracts::names().filter(|name| !self.judged.contains_key(name)).collect()
    }

    /// The counts as tables for people.
    pub fn report(&self) -> String {
        let mut text = String::from("brought:");
        for (what, count) in &self.brought {
            text.push_str(&format!(" {count} {what},"));
        }
        text.push_str("\njudged:");
        for (contract, count) in &self.judged {
            text.push_str(&format!(" {count} times {contract},"));
        }
        text.push_str("\n\nfaults injected\n");
        for (kind, count) in &self.faults {
            text.push_str(&format!("  {kind:<34} {count:>9}\n"));
        }
        text.push_str("\nstep      request                                  made   crashed before    after\n");
        for ((step, kind), reached) in &self.reached {
            let missed = if reached.before == 0 || reached.after == 0 { "  <- never at one of them" } else { "" };
            let Reached { made, before, after } = reached;
            text.push_str(&format!("{step:<9} {kind:<36} {made:>9} {before:>16} {after:>8}{missed}\n"));
        }
        text
    }
}
