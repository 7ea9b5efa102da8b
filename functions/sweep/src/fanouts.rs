//! Fan-outs that are drained but not completed, or completed but not reported.

use fanfold::clock::Timestamp;
use fanfold::messages::About;
use fanfold::store::notices::{NoticeProgress, Notices};

use crate::{Sweep, SweepError, SweepReport, SweepRequest};

impl Sweep {
    /// Finishes what a crash left between the last ack and the notice. A fan-out that only drains slowly is not touched.
    pub(crate) async fn sweep_fanouts(
        &self,
        request: SweepRequest,
        report: &mut SweepReport,
    ) -> Result<(), SweepError> {
        let horizon = self.horizon(request);
        for segment in self.segments() {
            let ids = self.tracking.fanouts.ending(segment).await?;
            for fanout in self.tracking.fanouts.get_many(&ids).await? {
                if fanout.drained() && fanout.updated_at <= horizon {
                    self.tracking.finish(fanout).await?;
                    report.fanouts += 1;
                } else if fanout.to_notify() {
                    let notices = self.tracking.fanouts.notices();
                    let about = About::Fanout(fanout.id);
                    let again = self.tell_again(&notices, about, &fanout.notice, fanout.updated_at, request).await?;
                    report.fanouts += u64::from(again);
                }
            }
        }
        Ok(())
    }

    /// Sends the message of a notice again if it is overdue; `ended`: when what it reports happened.
    pub(crate) async fn tell_again(
        &self,
        notices: &Notices,
        about: About,
        notice: &NoticeProgress,
        ended: Timestamp,
        request: SweepRequest,
    ) -> Result<bool, SweepError> {
        if request.workers_dead {
            self.tracking.resume(about, notice).await?;
            return Ok(true);
        }
        let lost = notice.waiting_since(ended) <= self.horizon(request);
        Ok(lost && self.tracking.remind(notices, about, notice).await?)
    }
}
