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

    /// The record of a random place.
    #[must_use]
    pub fn any(self, places_max: u32, random: u64) -> u32 {
        u32::try_from(random % u64::from(places_max.max(1))).unwrap_or(0) / self.per_record
    }

    /// Each record once, beginning with that of a random place.
    pub fn all(self, places_max: u32, random: u64) -> impl Iterator<Item = u32> {
        let (first, records) = (self.any(places_max, random), self.records(places_max));
        (0..records).map(move |n| (first + n) % records)
    }
}

/// A random one of the free places: its record. `free`: how many each record has.
#[must_use]
pub fn pick(free: &[u32], random: u64) -> Option<u32> {
    let all: u64 = free.iter().map(|free| u64::from(*free)).sum();
    let mut left = random.checked_rem(all)?;
    let record = free.iter().position(|free| {
        let here = left < u64::from(*free);
        left = left.saturating_sub(u64::from(*free));
        here
    });
    record.and_then(|record| u32::try_from(record).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_record_is_picked_by_what_it_has() {
        let picked: Vec<Option<u32>> = (0..4).map(|random| pick(&[0, 1, 3], random)).collect();
        assert_eq!(picked, [Some(1), Some(2), Some(2), Some(2)]);
    }

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
        fn all_records_come_once(per_record in 1_u32..40, places in 1_u32..1_000, random: u64) {
            let spread = Spread::of(per_record);
            let mut all: Vec<u32> = spread.all(places, random).collect();
            prop_assert_eq!(all.first(), Some(&spread.any(places, random)));
            all.sort_unstable();
            prop_assert_eq!(all, (0..spread.records(places)).collect::<Vec<_>>());
        }

        #[test]
        fn a_record_with_a_free_place_is_picked(free in prop::collection::vec(0_u32..3, 0..9), random: u64) {
            match pick(&free, random) {
                Some(record) => prop_assert!(free[record as usize] > 0),
                None => prop_assert!(free.iter().all(|free| *free == 0)),
            }
        }
    }
}
