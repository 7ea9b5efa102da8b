//! What a batch says of the members in its slots.

use super::Batch;
use crate::ids::{ItemId, TaskId};

/// The outcome of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It has no outcome yet.
    Pending,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It is not called (any more), because its fan-out was cancelled, failed or expired.
    Dropped,
}

impl Batch {
    /// Whether a member is an item of a fan-out: its outcome is acked.
    #[must_use]
    pub fn has_items(&self) -> bool {
        self.items().next().is_some()
    }

    /// The members that are items of fan-outs.
    pub fn items(&self) -> impl Iterator<Item = ItemId> + '_ {
        self.members.ids().iter().filter_map(TaskId::item)
    }

    /// What became of the member in a slot.
    #[must_use]
    pub fn outcome(&self, slot: usize) -> MemberState {
        match () {
            () if self.failed.get(slot) => MemberState::Failed,
            () if self.succeeded.get(slot) => MemberState::Succeeded,
            () if self.dropped.get(slot) => MemberState::Dropped,
            () => MemberState::Pending,
        }
    }

    /// What became of a member; none: the task is no member.
    #[must_use]
    pub fn outcome_of(&self, id: &TaskId) -> Option<MemberState> {
        self.members.slot(id).map(|slot| self.outcome(slot))
    }

    /// Whether a slot has no outcome.
    #[must_use]
    pub fn is_open(&self, slot: usize) -> bool {
        self.outcome(slot) == MemberState::Pending
    }

    /// Slots without an outcome.
    #[must_use]
    pub fn unsettled(&self) -> Vec<usize> {
        (0..self.members.len()).filter(|slot| self.is_open(*slot)).collect()
    }

    /// The slots of the next call: all without an outcome, or a part of them.
    #[must_use]
    pub fn called(&self) -> Vec<usize> {
        self.parts.next(&self.unsettled()).0
    }

    /// Why a slot failed.
    #[must_use]
    pub fn error(&self, slot: usize) -> Option<&str> {
        self.errors.iter().find(|(_, slots)| slots.get(slot)).map(|(error, _)| error.as_str())
    }

    /// The code of the error of a slot that failed, if it has one.
    #[must_use]
    pub fn code(&self, slot: usize) -> Option<&str> {
        self.codes.iter().find(|(_, slots)| slots.get(slot)).map(|(code, _)| code.as_str())
    }
}
