//! Which records that a hint names still wait, and which are taken.

use std::collections::HashSet;

use uuid::Uuid;

use super::Tasks;
use super::record::State;
use crate::aws::StoreError;
use crate::grouping::{Bundle, BundleState};
use crate::ids::TaskId;
use crate::lane::Lane;
use crate::waiting::Waiting;

impl Tasks {
    /// The named records that wait in a lane, not yet claimed by a batch. Strongly consistent.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn waiting(&self, named: &Waiting, lane: &Lane) -> Result<Waiting, StoreError> {
        let standings = self.standings(named.tasks.ids(), true).await?.into_iter();
        let tasks = standings.filter(|task| task.state == State::Created && task.lane == *lane).map(|task| task.id);
        let ids: Vec<Uuid> = named.bundles.keys().copied().collect();
        let bundles = self.bundles(&ids, true).await?.into_values();
        let bundles = bundles.filter(|bundle| bundle.lane == *lane && bundle.waiting() > 0);
        Ok(Waiting { tasks: tasks.collect(), bundles: bundles.map(|bundle| (bundle.id, bundle.waiting())).collect() })
    }

    /// The named records that batches have claimed completely: tasks on their own, and bundles. Eventually consistent: recent
    /// claims may be missing.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn taken(&self, named: &Waiting) -> Result<Taken, StoreError> {
        let standings = self.standings(named.tasks.ids(), false).await?.into_iter();
        // One that was in a bundle, as far as is known, may have been freed from it a moment ago.
        let claimed = |state: &State| !matches!(state, State::Created | State::Bundled(_));
        let tasks = standings.filter(|task| claimed(&task.state)).map(|task| task.id).collect();
        let ids: Vec<Uuid> = named.bundles.keys().copied().collect();
        let bundles = self.bundles(&ids, false).await?.into_values();
        let over = |bundle: &Bundle| matches!(bundle.state, BundleState::Taken | BundleState::Dead);
        Ok(Taken { tasks, bundles: bundles.filter(over).map(|bundle| bundle.id).collect() })
    }
}

/// Records that batches have claimed completely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Tasks on their own.
    pub tasks: HashSet<TaskId>,
    /// Bundles.
    pub bundles: HashSet<Uuid>,
}

impl Taken {
    /// The rest of `waiting` without them.
    #[must_use]
    pub fn out_of(&self, waiting: Waiting) -> Waiting {
        let Waiting { tasks, mut bundles } = waiting;
        bundles.retain(|id, _| !self.bundles.contains(id));
        Waiting { bundles, ..Waiting::alone(tasks.ids().iter().filter(|id| !self.tasks.contains(id)).copied()) }
    }
}
