//! What becomes of a request: whether its worker dies over it, and whether it is refused, lost or late.

use std::sync::atomic::Ordering;

use super::Sim;
use crate::dice::hash;
use crate::faults::Fault;
use crate::stats::Reached;

/// The most that a worker dies at one kind of request, in ten-thousandths.
const MOST_CRASHES: u32 = 5_000;

/// Deaths at one kind of request in one run: after so many its step is let through, or a long sweep would never come to its end.
const MOST_DEATHS: u64 = 40;

/// How often a worker dies at a request that its run has seen rarely, in ten-thousandths.
const RARE_CRASHES: u32 = 4_000;

/// How often everything dies with it, where a run waits for that.
const RARE_DISASTERS: u32 = 5_000;

/// Deaths at one kind of request in one run from which on it is no longer struck for being rare.
const RARE_DEATHS: u64 = 4;

/// Requests of which fewer than one in so many was of this kind are rare in a run.
const RARE: u64 = 150;

/// Seconds for which all requests of a kind by a step are refused, and in how many such spans once.
const OUT_SECONDS: u64 = 10;
const OUT_ONCE_IN: u128 = 24;

impl Sim {
    /// What becomes of a request of a kind that was `reached` as often in this run.
    pub(crate) fn fault(&self, step: &str, kind: &str, sqs: bool, reached: Reached) -> Fault {
        match self.death(step, kind, reached) {
            Some(death) => death,
            None if self.healed() => Fault::None,
            None if self.is_out(step, kind) => {
                self.count("requests of a kind that is out");
                if sqs { Fault::Refused(500, "InternalFailure") } else { Fault::Refused(503, "ServiceUnavailable") }
            }
            None => Fault::draw(&self.plan, &self.dice, sqs),
        }
    }

    /// Whether every request of this kind by this step is refused for a while, so that the SDK gives up.
    fn is_out(&self, step: &str, kind: &str) -> bool {
        if self.rate(self.plan.refuse) == 0 {
            return false;
        }
        let span = (self.start.elapsed().as_secs() / OUT_SECONDS).to_string();
        hash(self.seed, &["out", step, kind, span.as_str()]).as_u128().is_multiple_of(OUT_ONCE_IN)
    }

    /// The side of a request on which its worker dies, if it does. The first requests of a kind are struck more often, those
    /// of which a run makes few most of all, also once other faults have stopped; and each run has some kinds of
    /// requests that its workers hardly survive.
    pub(crate) fn death(&self, step: &str, kind: &str, reached: Reached) -> Option<Fault> {
        let made = self.requests.fetch_add(1, Ordering::Relaxed);
        let died = reached.before + reached.after;
        if self.plan.calm || self.rests() {
            return None;
        }
        // Each such death costs minutes. In half of the runs they come later, so that more is done while faults last.
        let late = hash(self.seed, &["late deaths"]).as_u128().is_multiple_of(2);
        let rare = (self.healed() || !late) && died < RARE_DEATHS && reached.made * RARE <= made;
        let first = if reached.made <= 3 { 5 } else { 1 };
        let hot = hash(self.seed, &["hot", step, kind]).as_u128().is_multiple_of(8);
        let crash = match self.rate(self.plan.crash) * first * if hot { 6 } else { 1 } {
            _ if died >= MOST_DEATHS => 0,
            crash if rare => crash.max(RARE_CRASHES),
            crash => crash.min(MOST_CRASHES),
        };
        if !self.dice.chance(crash) {
            return None;
        }
        if rare && self.dice.chance(RARE_DISASTERS) {
            self.disaster.notify_waiters();
        }
        Some(if self.dice.chance(5_000) { Fault::CrashBefore } else { Fault::CrashAfter })
    }
}
