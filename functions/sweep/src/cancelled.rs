//! Cancellations whose worker died before it was done.

use uuid::Uuid;

use crate::{Round, Sweep, SweepError, SweepReport};

impl Sweep {
    /// Finishes cancellations that began some time ago. One that cannot be finished does not keep the others from it.
    pub(crate) async fn finish_cancelling(
        &self,
        notes: &[Uuid],
        round: &Round,
        report: &mut SweepReport,
    ) -> Result<(), SweepError> {
        let before = self.horizon(round.request);
        let mut finished = Ok(());
        for note in notes {
            match self.cancelling.finish(*note, before).await {
                Ok(done) => report.cancelled += u64::from(done),
                Err(error) => finished = finished.and(Err(error)),
            }
        }
        Ok(finished?)
    }
}
