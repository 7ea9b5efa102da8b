//! The turns that a batch waits for.

use super::Batch;
use crate::pacing::{Allowance, Turn, Turns};
use crate::policy::{Policy, Rate};

impl Batch {
    /// Its turns, without those by rates that its policy does not have any more: these are void.
    #[must_use]
    pub fn turns_under(&self, policy: &Policy) -> Turns {
        let Turns { lane, kind } = &self.turns;
        Turns { lane: by(lane.as_ref(), policy.lane_rate.as_ref()), kind: by(kind.as_ref(), policy.kind_rate.as_ref()) }
    }
}

/// A turn, if this rate gave it.
fn by(turn: Option<&Turn>, rate: Option<&Rate>) -> Option<Turn> {
    let (turn, allowance) = (turn?, rate.and_then(Allowance::of)?);
    (turn.rate == allowance.name()).then(|| turn.clone())
}
