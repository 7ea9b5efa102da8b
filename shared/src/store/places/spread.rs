//! How the places of a party are spread over records. No I/O.

use crate::limits::PLACES_PER_RECORD;

/// How many places a record has. The records of a party are numbered from 0. All are full except for the last, so a party with few
/// places has one record.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    per_record: u32,
}

impl Default for Spread {
    fn default() -> Self {
        Self::of(PLACES_PER_RECORD)
    }
}

impl Spread {
    /// So many places per record, at least one.
    #[must_use]
    pub fn of(per_record: u32) -> Self {
        Self { per_record: per_record.max(1) }
    }

    /// How many records so many places are in.
    #[must_use]
    pub fn records(self, places_max: u32) -> u32 {
        places_max.div_ceil(self.per_record).max(1)
    }

    /// How many of `places_max` places are in this record.
    #[must_use]
    pub fn room(self, record: u32, places_max: u32) -> u32 {
        places_max.saturating_sub(record.saturating_mul(self.per_record)).min(self.per_record)
    }

    /// The record that the `n`th look for a free place is into. The first is into that of a random place, the next ones
    /// are into those after it.
    #[must_use]
    pub fn looked_into(self, places_max: u32, random: u64, n: u32) -> u32 {
        let place = u32::try_from(random % u64::from(places_max.max(1))).unwrap_or(0);
        (place / self.per_record).wrapping_add(n) % self.records(places_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_places_are_in_one_record() {
        let spread = Spread::of(15);
        assert_eq!([0, 1, 15, 16, 75, 750].map(|places| spread.records(places)), [1, 1, 1, 2, 5, 50]);
        assert_eq!([0, 1, 2].map(|record| spread.room(record, 18)), [15, 3, 0]);
    }

    proptest! {
        #[test]
        fn the_records_have_all_places_together(per_record in 1_u32..40, places in 1_u32..1_000) {
            let spread = Spread::of(per_record);
            let rooms: Vec<u32> = (0..spread.records(places)).map(|record| spread.room(record, places)).collect();
            prop_assert_eq!(rooms.iter().sum::<u32>(), places);
            prop_assert!(rooms.iter().all(|room| (1..=per_record).contains(room)));
            prop_assert_eq!(spread.room(spread.records(places), places), 0);
        }

        #[test]
        fn every_record_is_looked_into(per_record in 1_u32..40, places in 1_u32..1_000, random: u64) {
            let spread = Spread::of(per_record);
            let records = spread.records(places);
            let mut looked: Vec<u32> = (0..records).map(|n| spread.looked_into(places, random, n)).collect();
            looked.sort_unstable();
            prop_assert_eq!(looked, (0..records).collect::<Vec<_>>());
        }
    }
}
