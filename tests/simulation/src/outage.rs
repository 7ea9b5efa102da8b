//! Times at which a kind's batch API refuses every call: the caller is wrong, must wait, or reaches nobody.

use std::time::Duration;

use fanfold_batch_api::{CallError, Cause};

use crate::dice::Dice;

/// What every call meets in an outage.
const CAUSES: [Cause; 10] = [
    Cause::Status(308),
    Cause::Status(401),
    Cause::Status(403),
    Cause::Status(404),
    Cause::Status(405),
    Cause::Status(415),
    Cause::Status(429),
    Cause::Status(503),
    Cause::Unreachable,
    Cause::Tls,
];

/// An outage of one kind's batch API.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    /// The kind ends with this number.
    kind: usize,
    from: Duration,
    until: Duration,
    cause: Cause,
}

impl Outage {
    /// Many last from the start, or for long.
    pub(crate) fn draw(dice: &Dice, until: Duration) -> Self {
        let most = until.as_millis() as u64;
        let from = if dice.chance(5_000) { Duration::ZERO } else { dice.millis(0, most) };
        let lasts = if dice.chance(5_000) { until } else { dice.skewed(Duration::from_secs(30), until) };
        Self { kind: dice.below(3), from, until: from + lasts, cause: dice.pick(&CAUSES) }
    }

    /// What a call of this kind meets, so long after the beginning of a run.
    pub(crate) fn meets(&self, kind: &str, now: Duration) -> Option<CallError> {
        let of_kind = kind.ends_with(&self.kind.to_string());
        let holds = of_kind && (self.from..self.until).contains(&now);
        holds.then(|| CallError::new(self.cause, format!("an outage: {:?}", self.cause)))
    }
}
