//! The missing items of a fan-out, as the notice of its end names them: a limited number of ranges.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{ItemId, ItemRange};
use crate::limits::MISSING_RANGES_NAMED_MAX;

/// Missing items by group, as ranges of indices: first and last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Missing(Vec<(Uuid, Vec<(u16, u16)>)>);

impl Missing {
    /// Adds missing items of a group, as many ranges as there is room for.
    pub(crate) fn add(&mut self, group: Uuid, mut ranges: Vec<(u16, u16)>) {
        let named: usize = self.0.iter().map(|(_, ranges)| ranges.len()).sum();
        ranges.truncate(MISSING_RANGES_NAMED_MAX.saturating_sub(named));
        if !ranges.is_empty() {
            self.0.push((group, ranges));
        }
    }

    /// Whether it has as many ranges as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.0.iter().map(|(_, ranges)| ranges.len()).sum::<usize>() >= MISSING_RANGES_NAMED_MAX
    }

    /// The number of items.
    #[must_use]
    pub fn count(&self) -> u64 {
        let ranges = self.0.iter().flat_map(|(_, ranges)| ranges);
        ranges.map(|(first, last)| u64::from(last.saturating_sub(*first)) + 1).sum()
    }

    /// Their names, as acks take them.
    #[must_use]
    pub fn names(&self, fanout: Uuid) -> Vec<String> {
        let name = |group: &Uuid, (first, last): &(u16, u16)| {
            ItemRange { first: ItemId { fanout, group: *group, index: *first }, last: *last }.shortly()
        };
        self.0.iter().flat_map(|(group, ranges)| ranges.iter().map(move |range| name(group, range))).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_as_many_as_there_is_room_for() {
        let [fanout, one, other] = [1, 2, 3].map(Uuid::from_u128);
        let mut missing = Missing::default();
        missing.add(one, vec![(0, 4), (7, 7)]);
        missing.add(other, Vec::new());
        assert_eq!((missing.count(), missing.is_full()), (6, false));
        assert_eq!(missing.names(fanout), [format!("{fanout}:{one}:0-4"), format!("{fanout}:{one}:7")]);
        let most = u16::try_from(MISSING_RANGES_NAMED_MAX).unwrap();
        missing.add(other, (0..most).map(|n| (2 * n, 2 * n)).collect());
        assert!(missing.is_full());
        assert_eq!(missing.names(fanout).len(), MISSING_RANGES_NAMED_MAX);
        assert_eq!(missing.count(), 6 + u64::from(most) - 2);
        let kept = missing.clone();
        missing.add(other, vec![(5_000, 5_001)]);
        assert_eq!(missing, kept);
        let text = serde_json::to_string(&missing).unwrap();
        assert_eq!(serde_json::from_str::<Missing>(&text).unwrap(), missing);
    }
}
