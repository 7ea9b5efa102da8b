//! Tasks of one lane that come together are stored as bundles.

use std::collections::{BTreeMap, HashMap, HashSet};

use fanfold::aws::StoreError;
use fanfold::bits::Bits;
use fanfold::grouping::cut;
use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use fanfold::store::tasks::{NewBundle, NewTask, Waits};
use fanfold::waiting::Waiting;
use uuid::Uuid;

use crate::Register;

/// What is to be told of, by lane: it waits, and perhaps nobody knows.
#[derive(Debug, Default)]
pub(crate) struct Awake(BTreeMap<Lane, (Vec<TaskId>, BTreeMap<Uuid, u16>)>);

impl Awake {
    /// Adds a task that waits.
    pub(crate) fn add(&mut self, lane: &Lane, id: TaskId, waits: Waits) {
        let (tasks, bundles) = self.0.entry(lane.clone()).or_default();
        match waits {
            Waits::Alone => tasks.push(id),
            Waits::In(bundle, waiting) => drop(bundles.insert(bundle, waiting)),
        }
    }

    /// What waits in each lane.
    pub(crate) fn lanes(self) -> impl Iterator<Item = (Lane, Waiting)> {
        let waiting = |(lane, (tasks, bundles))| (lane, Waiting { bundles, ..Waiting::alone(tasks) });
        self.0.into_iter().map(waiting)
    }
}

/// Says for each task which bundle it is stored for. Returns the bundles. A task that comes alone to its lane has none: it
/// waits on its own, which costs less. `max_batch`: of each kind; `new_id`: makes ids that nobody else has.
pub(crate) fn bundle(
    tasks: &mut [NewTask],
    max_batch: &HashMap<&str, usize>,
    new_id: impl Fn() -> Uuid,
) -> Vec<NewBundle> {
    let mut lanes: BTreeMap<&Lane, Vec<TaskId>> = BTreeMap::new();
    for task in tasks.iter() {
        lanes.entry(&task.lane).or_default().push(task.id);
    }
    let mut bundles = Vec::new();
    for (lane, ids) in lanes {
        let max_batch = max_batch.get(lane.kind.as_str()).copied().unwrap_or(1);
        let cut = cut(ids.into_iter().collect(), lane, max_batch).into_iter().filter(|members| members.len() > 1);
        bundles.extend(cut.map(|members| NewBundle { id: new_id(), lane: lane.clone(), members }));
    }
    let of: HashMap<TaskId, Uuid> =
        bundles.iter().flat_map(|bundle| bundle.members.ids().iter().map(|id| (*id, bundle.id))).collect();
    for task in tasks {
        task.bundle = of.get(&task.id).copied();
    }
    bundles
}

impl Register {
    /// Lets batches claim what was stored: all tasks but those at the positions `known`. Returns what waits now.
    pub(crate) async fn open(
        &self,
        bundles: &[NewBundle],
        tasks: &[NewTask],
        known: &HashSet<usize>,
    ) -> Result<Awake, StoreError> {
        let mut slots: BTreeMap<Uuid, Bits> =
            bundles.iter().map(|bundle| (bundle.id, Bits::zeros(bundle.members.len()))).collect();
        let by_id: HashMap<Uuid, &NewBundle> = bundles.iter().map(|bundle| (bundle.id, bundle)).collect();
        let mut awake = Awake::default();
        for (_, task) in tasks.iter().enumerate().filter(|(at, _)| !known.contains(at)) {
            match task.bundle.and_then(|bundle| Some((slots.get_mut(&bundle)?, by_id.get(&bundle)?))) {
                Some((slots, bundle)) => bundle.members.slot(&task.id).into_iter().for_each(|slot| slots.set(slot)),
                None => awake.add(&task.lane, task.id, Waits::Alone),
            }
        }
        let dead = self.tasks.open_bundles(&slots).await?;
        for bundle in bundles {
            let stored = slots.remove(&bundle.id).unwrap_or_default();
            let ids: Vec<TaskId> = stored.iter().filter_map(|slot| bundle.members.ids().get(slot)).copied().collect();
            if dead.contains(&bundle.id) {
                self.tasks.free(bundle.id, &bundle.lane, &ids).await?;
                ids.iter().for_each(|id| awake.add(&bundle.lane, *id, Waits::Alone));
            } else if let Some(id) = ids.first() {
                let waiting = u16::try_from(ids.len()).unwrap_or(u16::MAX);
                awake.add(&bundle.lane, *id, Waits::In(bundle.id, waiting));
            }
        }
        Ok(awake)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn task(id: u128, lane: &str) -> NewTask {
        let (id, lane) = (TaskId::Single(Uuid::from_u128(id)), lane.parse().unwrap());
        NewTask { id, lane, content: "{}".to_owned(), key: None, bundle: None }
    }

    #[test]
    fn tasks_of_one_lane_come_in_bundles_and_a_single_one_alone() {
        let mut tasks: Vec<NewTask> = (0..60).map(|id| task(id, "parcel:0:NY")).collect();
        tasks.push(task(60, "parcel:0:NJ"));
        tasks.extend((61..63).map(|id| task(id, "letter:0:NY")));
        let ids = AtomicU64::new(100);
        let new_id = || Uuid::from_u128(u128::from(ids.fetch_add(1, Ordering::Relaxed)));
        let bundles = bundle(&mut tasks, &HashMap::from([("parcel", 100)]), new_id);
        let sizes: Vec<usize> = bundles.iter().map(|bundle| bundle.members.len()).collect();
        assert_eq!(sizes, [2, 50, 10]);
        assert_eq!(tasks[60].bundle, None);
        for task in tasks.iter().filter(|task| task.bundle.is_some()) {
            let of = bundles.iter().find(|bundle| Some(bundle.id) == task.bundle).unwrap();
            assert_eq!(of.lane, task.lane);
            assert!(of.members.slot(&task.id).is_some());
        }
    }
}
