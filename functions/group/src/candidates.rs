//! Which tasks go in a batch. No I/O.

use std::collections::BTreeMap;

use fanfold::bits::Bits;
use fanfold::grouping::Bundle;
use fanfold::ids::TaskId;
use fanfold::limits::MEMBERS_BYTES_MAX;
use fanfold::masks::Masks;
use fanfold::members::Members;
use fanfold::store::tasks::Source;
use fanfold::waiting::Waiting;
use uuid::Uuid;

/// Tasks that could be grouped.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Those chosen for the batch.
    pub(crate) chosen: Members,
    /// Those of them that come from bundles.
    pub(crate) bundles: Masks,
    named: Waiting,
    sources: Vec<Source>,
}

/// Tasks that a batch leaves for the next one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// What the leader's message named: no other workflow names it.
    pub(crate) named: Waiting,
    /// What else waits.
    pub(crate) others: Waiting,
}

impl Rest {
    pub(crate) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.others.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.named.len() + self.others.len()
    }

    /// What a message can name, first what nobody else names.
    pub(crate) fn to_name(&self) -> Waiting {
        let portions = [&self.named, &self.others].map(Waiting::portions);
        let [named, others] = portions.map(|portions| portions.into_iter().next().unwrap_or_default());
        let both = named.clone().union(&others);
        if both.portions().len() == 1 { both } else { named }
    }
}

impl Candidates {
    /// Takes tasks in the order in which they were found; at most `max`, and no more than a record can hold beside their
    /// outcomes.
    pub(crate) fn choose(named: Waiting, sources: Vec<Source>, max: usize) -> Self {
        let mut slots: Vec<(TaskId, Slot)> = sources.iter().flat_map(slots).take(max).collect();
        let members = |slots: &[(TaskId, _)]| slots.iter().map(|(id, _)| *id).collect::<Members>();
        while let packed = members(&slots).pack().len()
            && packed > MEMBERS_BYTES_MAX
        {
            slots.truncate(slots.len() * MEMBERS_BYTES_MAX / packed);
        }
        let bundles = slots.iter().filter_map(|(_, of)| *of).map(|(bundle, slot)| (bundle, Bits::from_iter([slot])));
        Self { chosen: members(&slots), bundles: bundles.collect(), named, sources }
    }

    /// How many tasks were found.
    pub(crate) fn found(&self) -> usize {
        self.sources.iter().map(Source::waiting).sum()
    }

    /// The bundles, as they were read.
    pub(crate) fn read(&self) -> BTreeMap<Uuid, Bundle> {
        let bundle = |source: &Source| match source {
            Source::Bundle(bundle) => Some((bundle.id, Bundle::clone(bundle))),
            Source::Task(_) => None,
        };
        self.sources.iter().filter_map(bundle).collect()
    }

    /// What is left beside the batch's intent. A task of the intent that did not become a member belongs to another batch.
    pub(crate) fn rest(&self, intent: &Members) -> Rest {
        let mut rest = Rest::default();
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for source in &self.sources {
            let left = slots(source).filter(|(id, _)| intent.slot(id).is_none()).count();
            match source {
                _ if left == 0 => {}
                Source::Task(id) => {
                    if self.named.tasks.slot(id).is_some() { &mut named } else { &mut others }.push(*id);
                }
                Source::Bundle(bundle) => {
                    let is_named = self.named.bundles.contains_key(&bundle.id);
                    let waiting = if is_named { &mut rest.named } else { &mut rest.others };
                    waiting.bundles.insert(bundle.id, u16::try_from(left).unwrap_or(u16::MAX));
                }
            }
        }
        (rest.named.tasks, rest.others.tasks) = (Members::new(named), Members::new(others));
        rest
    }
}

/// Where a task waits: its bundle, and its slot there. None for a task that waits alone.
type Slot = Option<(Uuid, usize)>;

/// The tasks that wait in a record, with their slots.
fn slots(source: &Source) -> Box<dyn Iterator<Item = (TaskId, Slot)> + '_> {
    match source {
        Source::Task(id) => Box::new(std::iter::once((*id, None))),
        Source::Bundle(bundle) => Box::new(bundle.free.iter().filter_map(|slot| {
            let id = bundle.members.ids().get(slot)?;
            Some((*id, Some((bundle.id, slot))))
        })),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use fanfold::clock::Timestamp;
    use proptest::prelude::*;

    fn id(number: u128) -> TaskId {
        TaskId::Single(Uuid::from_u128(number))
    }

    fn ids(numbers: &[u128]) -> Members {
        numbers.iter().map(|number| id(*number)).collect()
    }

    fn alone(numbers: &[u128]) -> Vec<Source> {
        numbers.iter().map(|number| Source::Task(id(*number))).collect()
    }

    /// A bundle under its first task's number, of which those at `taken` slots are claimed.
    fn bundle(numbers: std::ops::Range<u128>, taken: &[usize]) -> Source {
        let members: Members = numbers.clone().map(id).collect();
        let free = Bits::ones(members.len()).minus(&taken.iter().copied().collect());
        let id = Uuid::from_u128(numbers.start);
        let bundle = Bundle::filling(id, "parcel:0:NY".parse().unwrap(), members, Timestamp(0));
        Source::Bundle(Box::new(bundle.opened(free)))
    }

    fn named(tasks: &[u128], bundles: &[u128]) -> Waiting {
        let bundles = bundles.iter().map(|number| (Uuid::from_u128(*number), 1)).collect();
        Waiting { bundles, ..Waiting::alone(tasks.iter().map(|number| id(*number))) }
    }

    #[test]
    fn what_was_found_first_goes_first() {
        let candidates = Candidates::choose(named(&[9, 2], &[]), alone(&[5, 2, 7, 8, 9]), 3);
        assert_eq!(candidates.chosen, ids(&[5, 2, 7]));
        let rest = Rest { named: named(&[9], &[]), others: named(&[8], &[]) };
        assert_eq!(candidates.rest(&candidates.chosen), rest);
    }

    #[test]
    fn a_bundle_may_be_taken_in_parts() {
        let sources = vec![bundle(10..20, &[0, 1]), Source::Task(id(5)), bundle(20..30, &[])];
        let candidates = Candidates::choose(named(&[], &[20]), sources, 12);
        assert_eq!(candidates.chosen, ids(&[12, 13, 14, 15, 16, 17, 18, 19, 5, 20, 21, 22]));
        let slots = |number| candidates.bundles.get(Uuid::from_u128(number)).unwrap().iter().collect::<Vec<_>>();
        assert_eq!((slots(10), slots(20)), ((2..10).collect(), vec![0, 1, 2]));
        let rest = candidates.rest(&candidates.chosen);
        assert_eq!((rest.named.bundles.get(&Uuid::from_u128(20)), rest.len()), (Some(&7), 7));
        assert!(rest.others.is_empty());
    }

    #[test]
    fn what_another_worker_left_out_of_its_intent_is_left() {
        let candidates = Candidates::choose(named(&[2], &[]), alone(&[1, 2]), 2);
        assert_eq!(candidates.rest(&ids(&[1])), Rest { named: named(&[2], &[]), others: Waiting::default() });
    }

    proptest! {
        #[test]
        fn never_more_than_allowed_and_none_lost(
            tasks in prop::collection::btree_set(0_u128..50, 0..40),
            bundles in prop::collection::btree_map(1_u128..9, (1_u128..30, prop::collection::vec(0_usize..30, 0..9)), 0..6),
            max in 1_usize..60,
        ) {
            let mut sources = alone(&tasks.into_iter().collect::<Vec<_>>());
            sources.extend(bundles.into_iter().map(|(at, (size, taken))| bundle(at * 100..at * 100 + size, &taken)));
            let all: Members = sources.iter().flat_map(slots).map(|(id, _)| id).collect();
            let candidates = Candidates::choose(Waiting::default(), sources, max);
            prop_assert_eq!(candidates.chosen.len(), all.len().min(max));
            prop_assert_eq!(candidates.rest(&candidates.chosen).len() + candidates.chosen.len(), all.len());
            let bundled: u64 = candidates.bundles.iter().map(|(_, slots)| slots.count()).sum();
            prop_assert!(bundled <= candidates.chosen.len() as u64);
        }
    }
}
