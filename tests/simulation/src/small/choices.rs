//! What can be chosen in a schedule, and what of it leads to the same in either order.

use std::sync::Arc;

use super::stage::Scene;
use super::touches::Touches;
use crate::faults::Fault;
use crate::wire::WireAnswer;

/// What becomes of a request that is picked. To die before a request is to die after the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Passes,
    DiesBefore,
    DiesAfter,
    AnswerLost,
    Stale,
}

impl Fate {
    pub(super) fn fault(self) -> Fault {
        match self {
            Self::Passes => Fault::None,
            Self::DiesBefore => Fault::CrashBefore,
            Self::DiesAfter => Fault::CrashAfter,
            Self::AnswerLost => Fault::LostAfter,
            Self::Stale => Fault::Stale,
        }
    }
}

/// A request of one of the workers, and what becomes of it.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub(super) player: usize,
    pub(super) fate: Fate,
    pub(super) touches: Arc<Touches>,
}

impl Move {
    pub(super) fn same(&self, other: &Self) -> bool {
        self.player == other.player && self.fate == other.fate
    }

    /// Whether these two lead to the same in either order. Two faults share what is left of the allowed ones.
    pub(super) fn commutes(&self, other: &Self) -> bool {
        let faults = self.fate != Fate::Passes && other.fate != Fate::Passes;
        let nothing = |it: &Self| it.fate == Fate::DiesBefore;
        let apart = nothing(self) || nothing(other) || !self.touches.meets(&other.touches);
        self.player != other.player && !faults && apart
    }

    pub(super) fn is_among(&self, moves: &[Self]) -> bool {
        moves.iter().any(|other| other.same(self))
    }
}

/// A moment at which there was a choice.
pub(super) struct Choice {
    pub(super) chosen: Move,
    /// What is still to be chosen here.
    pub(super) todo: Vec<Move>,
    /// What was chosen here before.
    pub(super) done: Vec<Move>,
    /// All that could be chosen here.
    pub(super) moves: Vec<Move>,
    /// What need not be chosen here: it commutes with all that was chosen since it could have been.
    pub(super) asleep: Vec<Move>,
    /// What stood at the gate.
    pub(super) before: u64,
    /// How things were, if there is something else to be chosen.
    pub(super) scene: Option<Scene>,
    /// What was answered to what is chosen.
    pub(super) reply: Option<WireAnswer>,
}

impl Choice {
    /// Whether only what commutes is left once the chosen worker has died. `left`: faults that are allowed then.
    pub(super) fn ends_asleep(&self, left: usize) -> bool {
        let dies = matches!(self.chosen.fate, Fate::DiesBefore | Fate::DiesAfter);
        let others = || self.moves.iter().filter(|one| one.player != self.chosen.player);
        let asleep =
            |one: &Move| one.commutes(&self.chosen) && (one.is_among(&self.asleep) || one.is_among(&self.done));
        let mut can_follow = others().filter(|one| left > 0 || one.fate == Fate::Passes).peekable();
        dies && can_follow.peek().is_some() && can_follow.all(asleep)
    }
}
