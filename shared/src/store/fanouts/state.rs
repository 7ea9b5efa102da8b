//! How far a fan-out has come, and how it ended.

/// The state of a fan-out. It ends in one of the last four, whichever is decided first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FanoutState {
    /// Items may be added.
    Open,
    /// No more items can be added.
    Sealed,
    /// Sealed, and every item was acked.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// More items failed than it tolerates.
    Failed,
    /// It had no activity for longer than its idle limit.
    Expired,
}

impl FanoutState {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Sealed, Self::Completed, Self::Cancelled, Self::Failed, Self::Expired];

    /// The state as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Sealed => "sealed",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Expired => "expired",
        }
    }

    /// Whether its end is decided.
    #[must_use]
    pub fn decided(self) -> bool {
        !matches!(self, Self::Open | Self::Sealed)
    }

    /// Whether it was cut short: its end is decided, and is not completion. Nothing is begun for it any more, and items that
    /// are not done count as missing.
    #[must_use]
    pub fn cut_short(self) -> bool {
        matches!(self, Self::Cancelled | Self::Failed | Self::Expired)
    }
}

impl std::str::FromStr for FanoutState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or_else(|| format!("is `{text}`"))
    }
}
