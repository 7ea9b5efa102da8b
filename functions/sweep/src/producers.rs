//! Partitions of producers whose message may be lost, or that failed.

use std::collections::BTreeMap;

use fanfold::limits::KEYS_PER_READ_MAX;
use fanfold::store::fanouts::FanoutState;
use fanfold::store::producers::{Partition, PartitionState};
use uuid::Uuid;

use crate::seen::Seen;
use crate::{Sweep, SweepError, SweepReport, SweepRequest};

/// Whether fan-outs are open, as far as this sweep has asked.
type Open = BTreeMap<Uuid, bool>;

impl Sweep {
    /// Sends the messages of silent partitions again: of those that are being read, and of those that are done and may have to
    /// seal their fan-out. Those that failed can be resumed, by a person, for as long as their fan-out is open.
    pub(crate) async fn sweep_producers(
        &self,
        request: SweepRequest,
        report: &mut SweepReport,
        seen: &mut Seen,
    ) -> Result<(), SweepError> {
        let producers = &self.producing.producers;
        let mut open = Open::new();
        for segment in self.segments(producers.unfinished_extent().await?) {
            for names in producers.unfinished(segment).await?.chunks(KEYS_PER_READ_MAX) {
                for partition in producers.get_many(names).await? {
                    // The index may lag behind.
                    if partition.closed {
                        continue;
                    }
                    if partition.state == PartitionState::Failed {
                        self.look_at_failed(&partition, &mut open, seen).await?;
                        continue;
                    }
                    let lost = partition.lost(self.horizon(request), self.world.now());
                    if request.workers_dead || lost && producers.note_woken(&partition).await? {
                        self.producing.send(&partition).await?;
                        report.partitions += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// A partition that failed is to be reported, or no longer looked at.
    async fn look_at_failed(&self, partition: &Partition, open: &mut Open, seen: &mut Seen) -> Result<(), SweepError> {
        let is_open = match open.get(&partition.fanout) {
            Some(is_open) => *is_open,
            None => {
                let fanout = self.tracking.fanouts.get(partition.fanout).await?;
                let is_open = fanout.is_some_and(|fanout| fanout.state == FanoutState::Open);
                *open.entry(partition.fanout).or_insert(is_open)
            }
        };
        if is_open {
            seen.failed(partition);
        } else {
            self.producing.producers.close(partition).await?;
        }
        Ok(())
    }
}
