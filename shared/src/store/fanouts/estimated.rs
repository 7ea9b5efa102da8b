//! Estimated fan-outs: counters in the header, and no items. An item that is counted twice counts twice.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::record::TOLERATED;
use super::{Fanout, FanoutState, Fanouts, counting_failures};
use crate::aws::attributes::{count, text};
use crate::aws::{StoreError, Write};

/// How a fan-out is tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// By its items, each of which counts once.
    #[default]
    Exact,
    /// By counters: an item that is counted twice counts twice. It has no items.
    Estimated,
}

impl Mode {
    /// Whether it is the exact one, which is left out in JSON.
    #[must_use]
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

/// The attribute that only estimated fan-outs have.
pub(super) const MODE: &str = "mode";
pub(super) const ESTIMATED: &str = "estimated";

/// Counts that are added together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Items to be done.
    pub add: u64,
    /// Items that succeeded.
    pub succeeded: u64,
    /// Items that failed.
    pub failed: u64,
}

impl Count {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            add: self.add + other.add,
            succeeded: self.succeeded + other.succeeded,
            failed: self.failed + other.failed,
        }
    }

    /// Whether nothing is counted.
    #[must_use]
    pub(crate) fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

impl Fanout {
    /// Whether it is estimated: it has counters, and no items.
    #[must_use]
    pub fn estimated(&self) -> bool {
        self.mode == Mode::Estimated
    }

    /// How many items of an estimated one were added and not counted as done. Zero if more were counted as done.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.total.saturating_sub(self.done)
    }
}

impl Fanouts {
    /// Counts in the header of an estimated fan-out: while it is open, and, once it is sealed, as long as something is
    /// outstanding. So a sealed one of which nothing is left no longer changes, whichever worker ends it. `judged`: it has a
    /// tolerance. Returns the fan-out as written. Refused: nothing can be counted, or `judged` is wrong.
    ///
    /// # Errors
    /// The table cannot be written, or the record is corrupt. It may have been counted all the same; nothing counts it again by
    /// itself.
    pub(crate) async fn count(
        &self,
        id: Uuid,
        of: Count,
        judged: bool,
    ) -> Result<Write<Fanout, Option<Fanout>>, StoreError> {
        let change = self
            .change(id)
            .add_some("total", count(of.add))
            .add_some("done", count(of.succeeded + of.failed))
            .add_some("failed", count(of.failed))
            .when_is(MODE, text(ESTIMATED))
            .when(
                "#state = :open OR #state = :sealed AND #done < #total",
                [(":open", text(FanoutState::Open.as_str())), (":sealed", text(FanoutState::Sealed.as_str()))],
            );
        let change = match (of.failed, judged) {
            (0, _) => change,
            (_, false) => change.when_absent(TOLERATED),
            (_, true) => counting_failures(change, id, of.failed).when_present(TOLERATED),
        };
        change.send_once_for_new().await?.decode(Fanout::decode)
    }
}
