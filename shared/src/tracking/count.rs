//! Counts of estimated fan-outs: one write each. The worker that leaves none outstanding ends the fan-out.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use uuid::Uuid;

use super::{Tracking, TrackingError};
use crate::aws::{StoreError, Write};
use crate::limits::ACKS_AT_ONCE_MAX;
use crate::messages::{CountEntry, CountRequest};
use crate::store::fanouts::{Count, Fanout};

/// What is counted, by fan-out.
pub type Counts = BTreeMap<Uuid, Count>;

/// The result of counts: each fan-out after them, or why nothing of it was counted.
pub type Counted = BTreeMap<Uuid, Result<Fanout, TrackingError>>;

/// Adds what a request counts.
pub fn collect_counts(counts: &mut Counts, request: &CountRequest) {
    for CountEntry { fanout, add, succeeded, failed } in &request.counts {
        let count = Count { add: (*add).into(), succeeded: (*succeeded).into(), failed: (*failed).into() };
        let sum = counts.entry(*fanout).or_default();
        *sum = sum.plus(count);
    }
}

impl Tracking {
    /// Counts in the headers of estimated fan-outs, each by itself: a failure for one does not affect the others. Nothing here
    /// is safe to repeat. Counts after the end change nothing, as acks do not.
    pub async fn count(&self, counts: &Counts) -> Counted {
        let mut each = Vec::with_capacity(counts.len());
        for (id, count) in counts {
            each.push(async { (*id, self.count_one(*id, *count).await) });
        }
        stream::iter(each).buffer_unordered(ACKS_AT_ONCE_MAX).collect().await
    }

    async fn count_one(&self, id: Uuid, count: Count) -> Result<Fanout, TrackingError> {
        let counted = if count.is_nothing() {
            Write::Refused(self.fanouts.get(id).await?)
        } else {
            self.count_in(id, count).await?
        };
        let fanout = match counted {
            Write::Done(fanout) => fanout,
            Write::Refused(None) => return Err(TrackingError::UnknownFanout(id)),
            Write::Refused(Some(fanout)) if !fanout.estimated() => return Err(TrackingError::Exact(id)),
            Write::Refused(Some(fanout)) if count.add > 0 => {
                return Err(TrackingError::CountedOut { id, state: fanout.state });
            }
            Write::Refused(Some(fanout)) => fanout,
        };
        // The counts are written and must not be repeated, even if finishing fails: a sweep finishes it.
        let finished = self.finish(fanout.clone()).await;
        Ok(finished.unwrap_or_else(|error| {
            tracing::error!(%error, fanout = %id, "an estimated fan-out was counted, and is to be finished by a sweep");
            fanout
        }))
    }

    /// Most fan-outs tolerate any number of failures. Others refuse this write.
    async fn count_in(&self, id: Uuid, count: Count) -> Result<Write<Fanout, Option<Fanout>>, StoreError> {
        match self.fanouts.count(id, count, false).await? {
            Write::Refused(Some(stands)) if count.failed > 0 && stands.tolerated.is_some() => {
                self.fanouts.count(id, count, true).await
            }
            other => Ok(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_one_fanout_is_added_up() {
        let [one, other] = [7, 8].map(Uuid::from_u128);
        let entry = |fanout, add, succeeded, failed| CountEntry { fanout, add, succeeded, failed };
        let mut counts = Counts::new();
        let most = u32::MAX;
        collect_counts(&mut counts, &CountRequest { counts: vec![entry(one, most, 1, 0), entry(other, 0, 0, 1)] });
        collect_counts(&mut counts, &CountRequest { counts: vec![entry(one, most, 2, 3)] });
        let sum = Count { add: 2 * u64::from(most), succeeded: 3, failed: 3 };
        assert_eq!(counts, Counts::from([(one, sum), (other, Count { failed: 1, ..Count::default() })]));
    }
}
