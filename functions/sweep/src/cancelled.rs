//! Cancellations whose worker died before it was done.

use uuid::Uuid;

use crate::{Round, Sweep, SweepError, SweepReport};

impl Sweep {
    /// Finishes cancellations that began some time ago.
    pub(crate) async fn finish_cancelling(
        &self,
        notes: &[Uuid],
        round: &Round,
        report: &mut SweepReport,
    ) -> Result<(), SweepError> {
        let before = self.horizon(round.request);
        for note in notes {
            report.cancelled += u64::from(self.cancelling.finish(*note, before).await?);
        }
        Ok(())
    }
}
