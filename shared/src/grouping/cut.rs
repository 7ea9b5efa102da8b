//! Cutting tasks into bundles.

use std::collections::BTreeMap;

use crate::grouping::{BatchSize, Load, Loads};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::limits::BUNDLE_BYTES_MAX;
use crate::masks::ENTRY_BYTES;
use crate::members::Members;
use crate::store::tasks::{AT_MOST, FLUSHES};

/// Cuts tasks of one lane into bundles, each of which stays within one DynamoDB write unit with the claims of batches of this
/// size: a longer record would make every claim dearer. One that has a single task is better stored alone.
#[must_use]
pub fn cut(tasks: &BTreeMap<TaskId, Load>, lane: &Lane, size: BatchSize) -> Vec<(Members, Loads)> {
    let lane = lane.to_string().len();
    let mut bundles = Vec::new();
    let tasks: Vec<(TaskId, Load)> = tasks.iter().map(|(id, load)| (*id, *load)).collect();
    let mut rest = tasks.as_slice();
    while !rest.is_empty() {
        // Tasks of one item group take two bytes each, others 16: the size is not known before they are packed.
        let (mut fits, mut most) = (1, rest.len());
        while fits < most {
            let middle = (fits + most).div_ceil(2);
            if record_bytes(&rest[..middle], lane, size) <= BUNDLE_BYTES_MAX {
                fits = middle
            } else {
                most = middle - 1
            }
        }
        let (bundle, others) = rest.split_at(fits);
        bundles.push(split(bundle));
        rest = others;
    }
    bundles
}

/// Tasks in the order of their ids, with what each takes of a batch.
fn split(tasks: &[(TaskId, Load)]) -> (Members, Loads) {
    (tasks.iter().map(|(id, _)| *id).collect(), tasks.iter().map(|(_, load)| *load).collect())
}

/// Bytes of a bundle's record once it is claimed. DynamoDB counts names and values of attributes.
fn record_bytes(tasks: &[(TaskId, Load)], lane: usize, size: BatchSize) -> usize {
    /// Names of all attributes, id, state, and times.
    const FIXED: usize = 140;
    let slots = tasks.len().div_ceil(8);
    // Its tasks fill batches, and the first and last of these may be shared with other bundles.
    let claims = size.batches(tasks.len(), tasks.iter().map(|(_, load)| *load)) + 1;
    let (members, loads) = split(tasks);
    let columns = loads.columns();
    let named = [(&columns.flushes, FLUSHES), (&columns.at_most, AT_MOST)].into_iter();
    let names: usize = named.filter(|(column, _)| !column.is_empty()).map(|(_, name)| name.len()).sum();
    let columns = columns.len() + names;
    FIXED + 2 * lane + members.pack().len() + columns + slots + claims * (ENTRY_BYTES + slots)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::ids::ItemId;
    use crate::policy::Weight;
    use crate::testing::{lane, parcels};

    fn tasks(number: usize) -> Members {
        (0..number).map(|id| TaskId::Single(Uuid::from_u128(id as u128))).collect()
    }

    fn items(number: u16) -> Members {
        (0..number).map(|index| TaskId::Item(ItemId { fanout: Uuid::nil(), group: Uuid::nil(), index })).collect()
    }

    fn size(max_batch: usize, max_weight: u32) -> BatchSize {
        let most = serde_json::json!({"max_batch": max_batch, "weight": "content.kg", "max_weight": max_weight});
        BatchSize::of(&parcels(most))
    }

    /// Each of these tasks with this load.
    fn loaded(tasks: &Members, load: Load) -> BTreeMap<TaskId, Load> {
        tasks.ids().iter().map(|id| (*id, load)).collect()
    }

    #[test]
    fn a_bundle_is_about_forty_tasks_or_three_hundred_items() {
        let cut = |tasks, max_batch, load| cut(&loaded(&tasks, load), &lane(), size(max_batch, 1_000));
        let sizes = |tasks, max_batch| {
            let bundles = cut(tasks, max_batch, Load::default());
            bundles.iter().map(|(members, _)| members.len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(tasks(100), 100), [50, 50]);
        assert_eq!(sizes(items(700), 100), [287, 287, 126]);
        assert_eq!(sizes(tasks(1), 100), [1]);
        assert_eq!(sizes(tasks(0), 100), [0; 0]);
        // Small batches claim a bundle many times, and each claim is kept.
        assert_eq!(sizes(tasks(100), 1)[0], 22);
        // So do batches of heavy tasks.
        let heavy = cut(tasks(100), 100, Load { weight: Weight(1_000_000), ..Load::default() });
        assert_eq!((heavy[0].0.len(), heavy[0].1.get(21).weight), (22, Weight(1_000_000)));
    }

    proptest! {
        #[test]
        fn every_task_is_in_one_bundle(
            number in 0_u16..900,
            max_batch in 1_usize..500,
            weights in prop::collection::vec(0_u64..3_000, 0..900),
        ) {
            let mut tasks = loaded(&items(number), Load::default());
            tasks.values_mut().zip(&weights).for_each(|(load, weight)| load.weight = Weight(*weight));
            let size = size(max_batch, 1);
            let bundles = cut(&tasks, &lane(), size);
            let slots = |(members, loads): &(Members, Loads)| {
                let load = |slot| loads.get(slot);
                members.ids().iter().enumerate().map(|(slot, id)| (*id, load(slot))).collect::<Vec<_>>()
            };
            prop_assert_eq!(&bundles.iter().flat_map(slots).collect::<BTreeMap<_, _>>(), &tasks);
            for bundle in &bundles {
                let bytes = record_bytes(&slots(bundle), lane().to_string().len(), size);
                prop_assert!(bundle.0.len() == 1 || bytes <= BUNDLE_BYTES_MAX);
            }
        }
    }
}
