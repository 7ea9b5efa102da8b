//! How runs end, and the words for it.

use fanfold::store::fanouts::FanoutState;
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunEnd {
    /// Every task has an outcome.
    #[default]
    Completed,
    /// Its fan-out was cancelled.
    Cancelled,
    /// More tasks failed than its fan-out tolerates.
    Failed,
    /// Nothing happened to its fan-out for too long.
    Expired,
    /// As many tasks failed as `--fail-fast` allows.
    FailFast,
}

impl RunEnd {
    /// The end of a run whose fan-out ended in this state.
    pub(crate) fn of(state: FanoutState) -> Self {
        match state {
            FanoutState::Open | FanoutState::Sealed | FanoutState::Completed => Self::Completed,
            FanoutState::Cancelled => Self::Cancelled,
            FanoutState::Failed => Self::Failed,
            FanoutState::Expired => Self::Expired,
        }
    }

    /// What follows the number of tasks and the time, if there is something to say.
    pub(super) fn aside(self) -> &'static str {
        match self {
            Self::Completed => "",
            Self::Cancelled => ", cancelled",
            Self::Failed => ", failed because too many tasks did",
            Self::Expired => ", expired because nothing happened for too long",
            Self::FailFast => ", stopped early by --fail-fast",
        }
    }

    /// What a run is that is shown again.
    pub(super) fn before(self) -> &'static str {
        match self {
            Self::Completed | Self::FailFast => "finished before",
            Self::Cancelled => "cancelled before",
            Self::Failed => "failed before",
            Self::Expired => "expired before",
        }
    }
}
