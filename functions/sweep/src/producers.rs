//! Partitions of producers whose message may be lost.

use fanfold::limits::KEYS_PER_READ_MAX;

use crate::{Sweep, SweepError, SweepReport, SweepRequest};

impl Sweep {
    /// Sends the messages of silent partitions again: of those that are being read, and of those that are done and may have to
    /// seal their fan-out.
    pub(crate) async fn sweep_producers(
        &self,
        request: SweepRequest,
        report: &mut SweepReport,
    ) -> Result<(), SweepError> {
        let producers = &self.producing.producers;
        for segment in self.segments() {
            for names in producers.unfinished(segment).await?.chunks(KEYS_PER_READ_MAX) {
                for partition in producers.get_many(names).await? {
                    // The index may lag behind.
                    if !partition.unfinished() {
                        continue;
                    }
                    let lost = partition.lost(self.horizon(request), self.world.now());
                    if request.workers_dead || lost && producers.note_woken(&partition).await? {
                        self.producing.go_on(&partition).await?;
                        report.partitions += 1;
                    }
                }
            }
        }
        Ok(())
    }
}
