//! What waits, and what is claimed, as the tables say.

use fanfold::ids::TaskId;
use fanfold::store::tasks::{Stored, Waits};
use fanfold::waiting::Waiting;

use crate::stack::TestStack;

impl TestStack {
    /// How many of the tasks a batch has claimed.
    pub async fn claimed(&self, ids: &[TaskId]) -> usize {
        let mut claimed = 0;
        for id in ids {
            claimed += usize::from(self.tasks.get(id).await.unwrap().is_some_and(|task| task.batch.is_some()));
        }
        claimed
    }

    /// The records in which these tasks wait, as a hint names them.
    pub async fn waiting(&self, ids: &[TaskId]) -> Waiting {
        let mut waiting = Waiting::default();
        for (id, stored) in self.tasks.stored(ids).await.unwrap() {
            if let Stored::Task { waits: Some(waits), .. } = stored {
                match waits {
                    Waits::Alone | Waits::Freed => waiting = waiting.union(&Waiting::alone([id])),
                    Waits::In(bundle, tasks) => drop(waiting.bundles.insert(bundle, tasks)),
                }
            }
        }
        waiting
    }
}
