//! Fan-outs that are drained but not completed, or completed but not told.

use std::collections::BTreeSet;

use fanfold::store::fanouts::FanoutState;
use uuid::Uuid;

use crate::{Sweep, SweepError, SweepReport, SweepRequest};

impl Sweep {
    /// Finishes what a crash left between the last ack and the notice. A fan-out that only drains slowly is not touched.
    pub(crate) async fn sweep_fanouts(
        &self,
        request: SweepRequest,
        report: &mut SweepReport,
    ) -> Result<(), SweepError> {
        let horizon = self.horizon(request);
        let mut ids: BTreeSet<Uuid> = self.tracking.fanouts.in_state(FanoutState::Sealed).await?.into_iter().collect();
        ids.extend(self.tracking.fanouts.notifying().await?);
        let ids: Vec<Uuid> = ids.into_iter().collect();
        for fanout in self.tracking.fanouts.get_many(&ids).await? {
            if (fanout.drained() || fanout.to_notify()) && fanout.updated_at <= horizon {
                self.tracking.finish(fanout).await?;
                report.fanouts += 1;
            }
        }
        Ok(())
    }
}
