//! How far a batch has come.

/// The status of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BatchStatus {
    /// Its leader is claiming members.
    Grouping,
    /// Its members are fixed, and no call has begun.
    Formed,
    /// At least one call of the batch API has begun.
    InProgress,
    /// Every member has its outcome.
    Done,
}

impl BatchStatus {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Grouping, Self::Formed, Self::InProgress, Self::Done];

    /// The status as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Grouping => "grouping",
            Self::Formed => "formed",
            Self::InProgress => "in_progress",
            Self::Done => "done",
        }
    }
}

impl std::str::FromStr for BatchStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| format!("is `{text}`"))
    }
}
