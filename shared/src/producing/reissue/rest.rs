//! What a reissue that was cut short has left: the items that it had not taken on yet.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ReissueError;
use crate::aws::StoreError;
use crate::limits::GROUP_RETENTION;
use crate::policy::FieldError;
use crate::producing::{Producing, Reissue, Source, TakenOn};
use crate::store::fanouts::Fanout;
use crate::store::producers::{Partition, PartitionState};
use crate::tracking::{ItemCursor, Listed, Tracking, page_groups};

/// Where a reissue stands, as the cursor of its partition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReissuePlace {
    /// It counts the groups that the index shows. A group that the index shows only later might be passed by.
    Counts {
        /// So far.
        listed: Listed,
        /// How often it had read all of them and did not find as many as there are.
        short: u32,
    },
    /// It takes on items.
    Items(ItemCursor),
}

impl Default for ReissuePlace {
    fn default() -> Self {
        Self::Counts { listed: Listed::default(), short: 0 }
    }
}

impl Producing {
    /// The source for a fan-out that may have been reissued before: all of it if it was not, or the rest of it if that reissue
    /// was cut short.
    ///
    /// # Errors
    /// Nothing is left to reissue, or tables cannot be read.
    pub(super) async fn rest(
        &self,
        tracking: &Tracking,
        old: &Fanout,
        source: Reissue,
    ) -> Result<Reissue, ReissueError> {
        let Some(latest) = old.reissued_as else { return Ok(source) };
        let reissued = || ReissueError::Reissued { id: old.id, latest };
        // Once it is cut short, nothing is added to it: what it takes on is final.
        let earlier = tracking.fanouts.get(latest).await?.filter(|earlier| earlier.state.cut_short());
        let earlier = earlier.ok_or_else(reissued)?;
        let all = source.count(old);
        let rest = self.left_by(tracking, &earlier, source).await?.ok_or_else(reissued)?;
        if rest.taken_on.is_some_and(|taken_on| taken_on.items >= all) {
            return Err(reissued());
        }
        match reissue_of(&earlier) {
            Some(before) if before.missing != rest.missing => {
                let problem = format!(
                    "is {}: {latest} was opened with {} and was cut short; what it left can only be reissued with that",
                    rest.missing, before.missing
                );
                Err(ReissueError::Fields(vec![FieldError { field: "missing".to_owned(), problem }]))
            }
            _ => Ok(rest),
        }
    }

    /// What a reissue that was cut short has left; none: nothing, or that is not known any more.
    async fn left_by(
        &self,
        tracking: &Tracking,
        earlier: &Fanout,
        source: Reissue,
    ) -> Result<Option<Reissue>, StoreError> {
        let before = reissue_of(earlier).and_then(|before| before.taken_on);
        let partition = self.producers.get(earlier.id, 0).await?;
        let Some(at) = partition.filter(|at| at.state != PartitionState::Done) else { return Ok(None) };
        let (mut rows, mut next) = (at.rows, at.cursor.clone());
        let Some(added) = self.is_added(tracking, earlier, &at).await? else { return Ok(None) };
        // Its items are added before it is passed. Those are the earlier reissue's, whether or not their tasks were registered.
        if added {
            let Some(kept) = self.producers.page(&at).await? else { return Ok(None) };
            let Some(behind) = kept.page.next else { return Ok(None) };
            (rows, next) = (rows + kept.page.rows, Some(behind));
        }
        let corrupt = |error: serde_json::Error| StoreError::Corrupt {
            table: "producers",
            id: format!("{}/{}", at.fanout, at.number),
            attribute: "cursor",
            problem: error.to_string(),
        };
        let taken_on = match next.map(|next| serde_json::from_str(&next)).transpose().map_err(corrupt)? {
            None | Some(ReissuePlace::Counts { .. }) => before,
            Some(ReissuePlace::Items(until)) => {
                Some(TakenOn { until, items: rows + before.map_or(0, |before| before.items) })
            }
        };
        Ok(Some(Reissue { taken_on, ..source }))
    }

    /// Whether the items were added of the page that a reissue's partition is at; none: that is not known any more. The first
    /// group of the page shows it. The total does not, as users may add items of their own.
    async fn is_added(
        &self,
        tracking: &Tracking,
        earlier: &Fanout,
        at: &Partition,
    ) -> Result<Option<bool>, StoreError> {
        let first: Vec<Uuid> =
            page_groups(earlier.id, at.number, at.page, 1).into_iter().map(|group| group.id).collect();
        if !tracking.groups.get_many(&first).await?.is_empty() {
            return Ok(Some(true));
        }
        // No group goes sooner.
        let forgotten = self.world.now().since(earlier.created_at) >= GROUP_RETENTION;
        Ok((!forgotten || earlier.total <= at.rows - at.bad).then_some(false))
    }
}

fn reissue_of(fanout: &Fanout) -> Option<&Reissue> {
    match &fanout.producer.as_ref()?.source {
        Source::Reissue(reissue) => Some(reissue),
        _ => None,
    }
}
