//! The order in which the tasks of a lane go.

use std::fmt;
use std::str::FromStr;

use crate::clock::Timestamp;
use crate::policy::HeadStart;

/// When a task was registered, and with which head start: its position in the order of its lane. A task overtakes only what was
/// registered within its head start before it, so whatever waits is reached in the end.
///
/// As a number it is the moment from which the task counts, in milliseconds, and after the point its head start in millionths of
/// a second: the index sorts by it, and still shows when the task was registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    /// When it was registered.
    pub created_at: Timestamp,
    /// Its head start.
    pub head_start: HeadStart,
}

/// Digits of the longest head start in seconds.
const DIGITS: usize = 6;

impl Rank {
    /// The position of what was registered then. A head start reaches back to the epoch at the furthest.
    #[must_use]
    pub fn new(created_at: Timestamp, head_start: HeadStart) -> Self {
        let furthest = u32::try_from(created_at.seconds()).unwrap_or(u32::MAX);
        Self { created_at, head_start: head_start.min(HeadStart::stored(furthest)) }
    }

    /// The moment from which it counts.
    #[must_use]
    pub fn counts_from(self) -> Timestamp {
        self.created_at.minus(self.head_start.into())
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |rank: &Self| (rank.counts_from(), rank.head_start);
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.counts_from().0;
        if self.head_start.is_none() {
            return write!(f, "{from}");
        }
        // As DynamoDB writes numbers: without zeros at the end.
        let seconds = format!("{:0DIGITS$}", self.head_start.seconds());
        write!(f, "{from}.{}", seconds.trim_end_matches('0'))
    }
}

/// A text is no rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a position in the order of a lane")]
pub struct RankError;

impl FromStr for Rank {
    type Err = RankError;

    fn from_str(text: &str) -> Result<Self, RankError> {
        let (from, seconds) = text.split_once('.').unwrap_or((text, "0"));
        let from = from.parse().map(Timestamp).map_err(|_| RankError)?;
        if seconds.is_empty() || seconds.len() > DIGITS || !seconds.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(RankError);
        }
        let head_start = format!("{seconds:0<DIGITS$}").parse().map(HeadStart::stored).map_err(|_| RankError)?;
        Ok(Self { created_at: from.plus(head_start.into()), head_start })
    }
}

#[cfg(test)]
pub(crate) fn any_rank() -> impl proptest::strategy::Strategy<Value = Rank> {
    use proptest::prelude::*;
    let head_start = prop_oneof![Just(0), 0..=HeadStart::MAX.seconds()];
    (0..=10_000_000_000_000_u64, head_start)
        .prop_map(|(at, head_start)| Rank::new(Timestamp(at), HeadStart::stored(head_start)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rank(created_at: u64, head_start: u32) -> Rank {
        Rank::new(Timestamp(created_at), HeadStart::stored(head_start))
    }

    /// The text as DynamoDB sorts it: a decimal number.
    fn sorted_by(rank: Rank) -> (u64, String) {
        let text = rank.to_string();
        let (whole, parts) = text.split_once('.').unwrap_or((&text, ""));
        (whole.parse().unwrap(), format!("{parts:0<9}"))
    }

    #[test]
    fn what_was_stored_without_a_head_start_has_none() {
        assert_eq!("1800000000123".parse(), Ok(rank(1_800_000_000_123, 0)));
        assert_eq!(rank(1_800_000_000_123, 0).to_string(), "1800000000123");
    }

    #[test]
    fn a_head_start_stands_after_the_point() {
        for (head_start, text) in [
            (1, "1799999999123.000001"),
            (600, "1799999400123.0006"),
            (604_800, "1799395200123.6048"),
            (100_000, "1799900000123.1"),
        ] {
            assert_eq!(rank(1_800_000_000_123, head_start).to_string(), text);
            assert_eq!(text.parse(), Ok(rank(1_800_000_000_123, head_start)));
        }
        assert_eq!(rank(5_500, 60).counts_from(), Timestamp(500), "not before the epoch");
        for text in ["", "x", "1.", "1.0000001", "1.x", "-1", "1e3", ".5"] {
            assert_eq!(text.parse::<Rank>(), Err(RankError), "{text}");
        }
    }

    #[test]
    fn an_urgent_task_overtakes_what_came_within_its_head_start() {
        let urgent = rank(100_000_000, 60);
        assert!(rank(99_940_001, 0) > urgent && urgent > rank(99_939_999, 0));
        assert!(rank(99_940_000, 0) < urgent, "who was registered first, where both count alike");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_and_sorts_the_same(one in any_rank(), other in any_rank()) {
            prop_assert_eq!(one.to_string().parse(), Ok(one));
            prop_assert_eq!(one.cmp(&other), sorted_by(one).cmp(&sorted_by(other)));
        }
    }
}
