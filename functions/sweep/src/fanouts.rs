//! Fan-outs that are drained but not ended, whose end has work left (an ack, a task, a notice), or whose progress is to be
//! reported.

use fanfold::aws::Extent;
use fanfold::clock::Timestamp;
use fanfold::limits::{FEW_SHARDS, LOOKS_PER_SHARD_MAX, SWEEP_CLOSES_MAX};
use fanfold::messages::About;
use fanfold::store::fanouts::Fanout;
use fanfold::store::notices::{NoticeProgress, Notices};

use crate::seen::Seen;
use crate::{Sweep, SweepError, SweepReport, SweepRequest};

impl Sweep {
    /// Finishes what a crash interrupted between the last ack, or the decision to end, and the notice. A fan-out that is only
    /// acked slowly is not touched; in one that was cut short, items to which nothing happens for long become missing.
    pub(crate) async fn sweep_fanouts(
        &self,
        request: SweepRequest,
        report: &mut SweepReport,
        seen: &mut Seen,
    ) -> Result<(), SweepError> {
        let horizon = self.horizon(request);
        for segment in self.segments(self.tracking.fanouts.ending_extent().await?) {
            let ids = self.tracking.fanouts.ending(segment).await?;
            for fanout in self.tracking.fanouts.get_many(&ids).await? {
                seen.fanout(&fanout);
                report.fanouts += u64::from(self.register_again(&fanout, request).await?);
                report.fanouts += u64::from(self.follow_again(&fanout, request).await?);
                let reaches = || fanout.reaches(self.world.now()).is_some();
                if (fanout.nothing_left() || fanout.to_fail() || reaches()) && fanout.updated_at <= horizon {
                    self.tracking.finish(fanout).await?;
                    report.fanouts += 1;
                } else if fanout.ending_early() && fanout.updated_at <= horizon {
                    let before = (fanout.open_groups, fanout.ended_at);
                    let after = self.tracking.close(fanout, SWEEP_CLOSES_MAX).await?;
                    report.fanouts += u64::from((after.open_groups, after.ended_at) != before);
                } else if let Some(since) = fanout.undelivered_since() {
                    let notices = self.tracking.fanouts.notices();
                    let about = About::Fanout(fanout.id);
                    let again = self.wake_overdue(&notices, about, &fanout.notice, since, request).await?;
                    report.fanouts += u64::from(again);
                }
            }
        }
        Ok(())
    }

    /// Sends a message to register the tasks that a fan-out was opened with, if the worker that opened it died before it had done so.
    async fn register_again(&self, fanout: &Fanout, request: SweepRequest) -> Result<bool, SweepError> {
        let late = fanout.registers_late(self.horizon(request), self.world.now());
        let again = (request.workers_dead && fanout.to_register())
            || (late && self.tracking.fanouts.note_tasks_woken(fanout).await?);
        if again {
            self.producing.register_again(fanout.id).await?;
        }
        Ok(again)
    }

    /// Sends the message of what follows from an end again, if it is lost. A fan-out for which nothing is left leaves the
    /// index: a count that came just before its end may have put it there.
    async fn follow_again(&self, fanout: &Fanout, request: SweepRequest) -> Result<bool, SweepError> {
        if !fanout.ended() {
            return Ok(false);
        }
        if !fanout.ending() {
            self.tracking.fanouts.forget(fanout).await?;
        }
        let lost = fanout.to_follow() && (request.workers_dead || fanout.follows_by() <= self.world.now());
        if lost {
            self.tracking.follow_again(fanout).await?;
        }
        Ok(lost)
    }

    /// Ends fan-outs to which nothing happened for longer than their limit. Reads only those that are due for a look.
    pub(crate) async fn sweep_idle(&self, report: &mut SweepReport) -> Result<(), SweepError> {
        let watched = self.tracking.fanouts.watched_extent().await? != Extent::Empty;
        for shard in 0..FEW_SHARDS {
            let ids = self.tracking.fanouts.to_look_at(shard, LOOKS_PER_SHARD_MAX, watched).await?;
            for fanout in self.tracking.fanouts.get_many(&ids).await? {
                report.fanouts += u64::from(self.tracking.expire(fanout).await?);
            }
        }
        Ok(())
    }

    /// Sends the message of a notice again if it is overdue; `ended`: when the event that it reports happened.
    pub(crate) async fn wake_overdue(
        &self,
        notices: &Notices,
        about: About,
        notice: &NoticeProgress,
        ended: Timestamp,
        request: SweepRequest,
    ) -> Result<bool, SweepError> {
        if request.workers_dead {
            self.tracking.send_when_due(about, notice).await?;
            return Ok(true);
        }
        let lost = notice.waiting_since(ended) <= self.horizon(request);
        Ok(lost && self.tracking.wake_notice(notices, about, notice).await?)
    }
}
