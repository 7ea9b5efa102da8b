//! Head starts: by how much earlier than it was registered a task counts in the order of its lane.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::Span;
use crate::limits::HEAD_START_MAX;

/// A head start, in whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeadStart(u32);

/// Up to how many seconds a head start is rounded down to a multiple of how many. Tasks that are registered together wait in
/// bundles of one head start each: there are some hundred different ones, however many values an expression gives.
const STEPS: [(u32, u32); 4] = [(60, 1), (600, 10), (3_600, 60), (36_000, 600)];
const LARGEST_STEP: u32 = 3_600;

impl HeadStart {
    /// None.
    pub const NONE: Self = Self(0);

    /// The longest.
    pub(crate) const MAX: Self = Self(HEAD_START_MAX.as_secs() as u32);

    /// So long, rounded down, if it is not too long.
    #[must_use]
    pub fn of(span: Duration) -> Option<Self> {
        let seconds = u32::try_from(span.as_secs()).ok().filter(|_| span <= HEAD_START_MAX)?;
        let step = STEPS.iter().find(|(below, _)| seconds < *below).map_or(LARGEST_STEP, |(_, step)| *step);
        Some(Self(seconds - seconds % step))
    }

    /// So many seconds, rounded down, if it is 0 or more, and not too long.
    #[must_use]
    pub(crate) fn from_float(seconds: f64) -> Option<Self> {
        (0.0..=HEAD_START_MAX.as_secs_f64())
            .contains(&seconds)
            .then(|| Duration::from_secs_f64(seconds))
            .and_then(Self::of)
    }

    /// What a text such as `10m` says, rounded down, if it is not too long.
    #[must_use]
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        humantime::parse_duration(text).ok().and_then(Self::of)
    }

    /// So many seconds as they were stored.
    pub(crate) fn stored(seconds: u32) -> Self {
        Self(seconds)
    }

    /// In seconds.
    #[must_use]
    pub fn seconds(self) -> u32 {
        self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl From<HeadStart> for Duration {
    fn from(head_start: HeadStart) -> Self {
        Self::from_secs(head_start.0.into())
    }
}

impl fmt::Display for HeadStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span((*self).into()).fmt(f)
    }
}

impl Serialize for HeadStart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn usual_ones_are_kept_and_others_rounded_down() {
        for text in ["0s", "1s", "59s", "90s", "10m", "15m", "45m", "90m", "2h", "12h", "1day", "7days"] {
            let span = humantime::parse_duration(text).unwrap();
            assert_eq!(Duration::from(HeadStart::from_text(text).unwrap()), span, "{text}");
        }
        for (seconds, rounded) in [(0.9, 0), (59.9, 59), (69.0, 60), (619.0, 600), (3_659.0, 3_600), (40_000.0, 39_600)]
        {
            assert_eq!(HeadStart::from_float(seconds).unwrap().seconds(), rounded);
        }
        assert_eq!([-1.0, 604_801.0, f64::NAN, f64::INFINITY].map(HeadStart::from_float), [None; 4]);
        assert_eq!(["", "soon", "10", "8days", "-1s"].map(HeadStart::from_text), [None; 5]);
        assert_eq!(HeadStart::from_text("7days"), Some(HeadStart::MAX));
    }

    #[test]
    fn there_are_some_hundred() {
        let all: BTreeSet<HeadStart> =
            (0..=HEAD_START_MAX.as_secs()).filter_map(|seconds| HeadStart::of(Duration::from_secs(seconds))).collect();
        assert_eq!(all.len(), 377);
        for head_start in all {
            assert_eq!(HeadStart::of(head_start.into()), Some(head_start), "a rounded one is kept");
        }
    }
}
