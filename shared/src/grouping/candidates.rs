//! Which tasks go in a batch.

use std::collections::{BTreeMap, HashMap};

use crate::bits::Bits;
use crate::grouping::{BatchSize, Bundle, Filling, Load};
use crate::ids::TaskId;
use crate::limits::MEMBERS_BYTES_MAX;
use crate::masks::Masks;
use crate::members::Members;
use crate::policy::Weight;
use crate::store::tasks::WaitingRecord;
use crate::waiting::Waiting;
use uuid::Uuid;

/// Tasks that could be grouped.
#[derive(Debug)]
pub struct Candidates {
    /// Those chosen for the batch.
    pub chosen: Members,
    /// The slots of bundles among them.
    pub bundles: Masks,
    /// Their weights together.
    pub weight: Weight,
    /// Whether these fill the batch, or no more would be read.
    pub full: bool,
    /// Whether a task that was found ends the linger of the lane.
    pub flushes: bool,
    size: BatchSize,
    named: Waiting,
    /// Those of them that were not looked at.
    unread: Waiting,
    records: Vec<WaitingRecord>,
    /// What tasks on their own take, as far as it was read.
    loads: HashMap<TaskId, Load>,
}

/// Tasks that a batch leaves for the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// Named by the leader's message: no other workflow names it.
    pub named: Waiting,
    /// Not named by it.
    pub others: Waiting,
    /// Whether it fills the next batch.
    pub full: bool,
    /// Whether a task of it ends the linger of the lane.
    pub flushes: bool,
    /// It does not fill the next batch, but more may wait than was read.
    pub is_part: bool,
}

impl Rest {
    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.others.is_empty()
    }

    /// As much of it as one message can name, first what no other workflow names.
    pub fn to_name(&self) -> Waiting {
        let portions = [&self.named, &self.others].map(Waiting::portions);
        let [named, others] = portions.map(|portions| portions.into_iter().next().unwrap_or_default());
        let both = named.clone().union(&others);
        if both.portions().len() == 1 { both } else { named }
    }
}

impl Candidates {
    /// No tasks at all.
    #[must_use]
    pub fn none(size: BatchSize) -> Self {
        Self::choose(Waiting::default(), Vec::new(), HashMap::new(), size)
    }

    /// Chooses tasks in the order in which they were found, as far as there is room for them, and no more than a record can
    /// hold with their outcomes. `loads`: of tasks on their own, where they were read.
    pub fn choose(named: Waiting, records: Vec<WaitingRecord>, loads: HashMap<TaskId, Load>, size: BatchSize) -> Self {
        let mut filling = Filling::new(size);
        let mut chosen: Vec<Slot> =
            records.iter().flat_map(|record| slots(record, &loads)).filter(|slot| filling.take(slot.load)).collect();
        let members = |slots: &[Slot]| slots.iter().map(|slot| slot.id).collect::<Members>();
        while let packed = members(&chosen).pack().len()
            && packed > MEMBERS_BYTES_MAX
        {
            chosen.truncate(chosen.len() * MEMBERS_BYTES_MAX / packed);
        }
        let bundles = chosen.iter().filter_map(|slot| slot.at).map(|(bundle, slot)| (bundle, Bits::from_iter([slot])));
        let weight = chosen.iter().fold(Weight::default(), |weight, slot| weight.plus(slot.load.weight));
        let (members, bundles) = (members(&chosen), bundles.collect());
        let full = filling.is_full() || size.is_all_it_sees(found(&records));
        let flushes = filling.flushes();
        let unread = Waiting::default();
        Self { chosen: members, bundles, weight, full, flushes, size, named, unread, records, loads }
    }

    /// The same beside what the leader's message names, too, but was not looked at, as enough had been found. It waits for the next
    /// batch: nobody else may know of it.
    #[must_use]
    pub fn beside(self, unread: Waiting) -> Self {
        Self { unread, ..self }
    }

    /// Whether tasks on their own were found, of which the index may show some that batches have claimed.
    #[must_use]
    pub fn any_alone(&self) -> bool {
        self.records.iter().any(|record| matches!(record, WaitingRecord::Task(_)))
    }

    /// The bundles, as they were read.
    #[must_use]
    pub fn read(&self) -> BTreeMap<Uuid, Bundle> {
        let bundle = |record: &WaitingRecord| match record {
            WaitingRecord::Bundle(bundle) => Some((bundle.id, Bundle::clone(bundle))),
            WaitingRecord::Task(_) => None,
        };
        self.records.iter().filter_map(bundle).collect()
    }

    /// What is left for the next batch. A task of the intent that did not become a member belongs to another batch.
    #[must_use]
    pub fn rest(&self, intent: &Members) -> Rest {
        let mut rest = Rest::default();
        let (mut named, mut others) = (Vec::new(), Vec::new());
        let mut next = Filling::new(self.size);
        for record in &self.records {
            let left = slots(record, &self.loads).filter(|slot| intent.slot(&slot.id).is_none());
            let left = left.inspect(|slot| _ = next.take(slot.load)).count();
            match record {
                _ if left == 0 => {}
                WaitingRecord::Task(id) => {
                    if self.named.tasks.slot(id).is_some() { &mut named } else { &mut others }.push(*id);
                }
                WaitingRecord::Bundle(bundle) => {
                    let is_named = self.named.bundles.contains_key(&bundle.id);
                    let waiting = if is_named { &mut rest.named } else { &mut rest.others };
                    waiting.bundles.insert(bundle.id, u16::try_from(left).unwrap_or(u16::MAX));
                }
            }
        }
        (rest.named.tasks, rest.others.tasks) = (Members::new(named), Members::new(others));
        rest.named = rest.named.union(&self.unread);
        (rest.full, rest.flushes) = (next.is_full(), next.flushes());
        let more = self.size.is_all_it_sees(found(&self.records)) || !self.unread.is_empty();
        rest.is_part = !rest.full && more;
        rest
    }
}

/// How many tasks were found.
fn found(records: &[WaitingRecord]) -> usize {
    records.iter().map(WaitingRecord::waiting).sum()
}

/// A task that waits.
#[derive(Clone, Copy, Debug)]
struct Slot {
    id: TaskId,
    load: Load,
    /// Its bundle, and its slot there; none, if it waits alone.
    at: Option<(Uuid, usize)>,
}

/// The tasks that wait in a record.
fn slots<'a>(record: &'a WaitingRecord, loads: &HashMap<TaskId, Load>) -> Box<dyn Iterator<Item = Slot> + 'a> {
    match record {
        WaitingRecord::Task(id) => {
            let load = loads.get(id).copied().unwrap_or_default();
            Box::new(std::iter::once(Slot { id: *id, load, at: None }))
        }
        WaitingRecord::Bundle(bundle) => Box::new(bundle.free.iter().filter_map(|slot| {
            let id = *bundle.members.ids().get(slot)?;
            Some(Slot { id, load: bundle.loads.get(slot), at: Some((bundle.id, slot)) })
        })),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
