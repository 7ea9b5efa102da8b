//! Tasks of one lane that come together are stored as bundles.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::aws::StoreError;
use crate::bits::Bits;
use crate::clock::World;
use crate::grouping::{BatchSize, Bundle, Load, cut};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::policy::HeadStart;
use crate::store::tasks::{NewTask, Waits};
use crate::waiting::Waiting;
use uuid::Uuid;

use super::Registrar;

/// What waits, by lane, and may need a hint.
#[derive(Debug, Default)]
pub(crate) struct Awake(BTreeMap<Lane, (Vec<TaskId>, BTreeMap<Uuid, u16>)>);

impl Awake {
    /// Adds a task that waits.
    pub(crate) fn add(&mut self, lane: &Lane, id: TaskId, waits: Waits) {
        let (tasks, bundles) = self.0.entry(lane.clone()).or_default();
        match waits {
            Waits::Alone | Waits::Freed => tasks.push(id),
            Waits::In(bundle, waiting) => drop(bundles.insert(bundle, waiting)),
        }
    }

    /// What waits in each lane.
    pub(crate) fn lanes(self) -> impl Iterator<Item = (Lane, Waiting)> {
        let waiting = |(lane, (tasks, bundles))| (lane, Waiting { bundles, ..Waiting::alone(tasks) });
        self.0.into_iter().map(waiting)
    }
}

/// Assigns tasks to bundles, and returns these. A task that comes alone to its lane, or alone with its head start, has none: it waits
/// on its own, which costs less, unless it goes in small batches: a bundle shows that, while what single tasks take is not always read.
/// `sizes`: the batch sizes of the kinds.
pub(crate) fn bundle(tasks: &mut [NewTask], sizes: &HashMap<&str, BatchSize>, world: &World) -> Vec<Bundle> {
    let mut lanes: BTreeMap<(&Lane, HeadStart), BTreeMap<TaskId, Load>> = BTreeMap::new();
    for task in tasks.iter() {
        lanes.entry((&task.lane, task.head_start)).or_default().insert(task.id, task.load);
    }
    let mut bundles = Vec::new();
    for ((lane, head_start), tasks) in lanes {
        let Some(size) = sizes.get(lane.kind.as_str()) else { continue };
        let cut = cut(&tasks, lane, *size)
            .into_iter()
            .filter(|(members, loads)| members.len() > 1 || loads.get(0).at_most.is_some());
        let new = |slots| Bundle::filling(world.uuid(), lane.clone(), slots, world.now()).ahead(head_start);
        bundles.extend(cut.map(new));
    }
    let of: HashMap<TaskId, Uuid> =
        bundles.iter().flat_map(|bundle| bundle.members.ids().iter().map(|id| (*id, bundle.id))).collect();
    for task in tasks {
        task.bundle = of.get(&task.id).copied();
    }
    bundles
}

impl Registrar {
    /// Lets batches claim the tasks that were stored: all but those at the positions `known`. Returns what waits now.
    pub(crate) async fn open(
        &self,
        bundles: &[Bundle],
        tasks: &[NewTask],
        known: &HashSet<usize>,
    ) -> Result<Awake, StoreError> {
        let mut awake = Awake::default();
        let mut stored: HashMap<Uuid, Vec<TaskId>> = HashMap::new();
        for (_, task) in tasks.iter().enumerate().filter(|(at, _)| !known.contains(at)) {
            match task.bundle {
                Some(bundle) => stored.entry(bundle).or_default().push(task.id),
                None => awake.add(&task.lane, task.id, Waits::Alone),
            }
        }
        let slots = |bundle: &Bundle| {
            let stored = stored.get(&bundle.id).into_iter().flatten();
            stored.filter_map(|id| bundle.members.slot(id)).collect::<Bits>()
        };
        let opened: Vec<Bundle> = bundles.iter().map(|bundle| bundle.opened(slots(bundle))).collect();
        let dead = self.tasks.open_bundles(&opened).await?;
        for bundle in opened {
            let ids: Vec<TaskId> = bundle.tasks(&bundle.free).collect();
            if dead.contains(&bundle.id) {
                self.tasks.free_from(&bundle, &ids).await?;
                ids.iter().for_each(|id| awake.add(&bundle.lane, *id, Waits::Alone));
            } else if let Some(id) = ids.first() {
                awake.add(&bundle.lane, *id, Waits::In(bundle.id, bundle.waiting()));
            }
        }
        Ok(awake)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn size() -> BatchSize {
        let policy = json!({"kind": "a", "target": "kind", "batch_api": {"command": ["x"]}, "max_batch": 100});
        BatchSize::of(&serde_json::from_value(policy).unwrap())
    }

    fn task(id: u128, lane: &str) -> NewTask {
        let (id, lane) = (TaskId::Single(Uuid::from_u128(id)), lane.parse().unwrap());
        let (load, head_start) = (Load::default(), HeadStart::NONE);
        NewTask { id, lane, content: "{}".to_owned(), key: None, load, head_start, bundle: None }
    }

    #[test]
    fn a_bundle_has_one_head_start() {
        let ahead = |id: u128, seconds| NewTask { head_start: HeadStart::stored(seconds), ..task(id, "parcel:0:NY") };
        let mut tasks: Vec<NewTask> =
            (0..10).map(|id| ahead(id, if id == 7 { 5 } else { 60 * (id % 2) as u32 })).collect();
        let bundles = bundle(&mut tasks, &HashMap::from([("parcel", size())]), &World::system());
        let heads: Vec<_> = bundles.iter().map(|bundle| (bundle.head_start.seconds(), bundle.members.len())).collect();
        assert_eq!((heads, tasks[7].bundle), (vec![(0, 5), (60, 4)], None));
        for task in tasks.iter().filter(|task| task.bundle.is_some()) {
            let of = bundles.iter().find(|bundle| Some(bundle.id) == task.bundle).unwrap();
            assert_eq!(of.head_start, task.head_start);
        }
    }

    #[test]
    fn tasks_of_one_lane_come_in_bundles_and_a_single_one_alone() {
        let mut tasks: Vec<NewTask> = (0..60).map(|id| task(id, "parcel:0:NY")).collect();
        tasks.push(task(60, "parcel:0:NJ"));
        tasks.extend((61..63).map(|id| task(id, "letter:0:NY")));
        let bundles = bundle(&mut tasks, &HashMap::from([("parcel", size()), ("letter", size())]), &World::system());
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
