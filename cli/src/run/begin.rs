//! Takes a run up: what earlier processes did of it is known, and how its fan-out is opened.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use fanfold::config::variables;
use fanfold::ids::derived;
use fanfold::store::gates::Gates;
use fanfold::store::policies::Policies;
use fanfold::tracking::Tracking;
use uuid::Uuid;

use super::Run;
use super::meter::Meter;
use super::produce::Opening;
use super::record::RunRecord;
use super::take_up::take_up;
use super::tally::Auditor;
use crate::counters::Counters;
use crate::failure::Failure;
use crate::pages::Pages;
use crate::stack::EmbeddedStack;

/// A run that was taken up.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) stack: EmbeddedStack,
    pub(super) record: RunRecord,
    pub(super) tracking: Tracking,
    pub(super) gates: Gates,
    pub(super) fanout: Uuid,
    pub(super) opening: Opening,
    pub(super) pages: Arc<Pages>,
    pub(super) auditor: Auditor,
    pub(super) meter: Arc<Meter>,
    /// Tasks that were done when this process resumed an earlier one's run.
    pub(super) done_before: u64,
}

impl Run<'_> {
    pub(super) async fn begin(&self) -> Result<Begun, Failure> {
        let stack = EmbeddedStack::open(self.args.data.as_deref()).await?;
        let (record, resumed) = take_up(self.args, self.job, self.checked, stack.world().uuid())?;
        let surroundings = stack.surroundings("ApiFunction");
        Policies::new(surroundings.table(variables::POLICIES_TABLE)?).put(&self.job.policy.policy).await?;
        let tracking = Tracking::from_environment(&surroundings)?;
        let counters = Counters::install();
        let fanout = derived::fanout(&record.key.to_string());
        let pages = Arc::clone(&self.pages);
        let rows = Pages::source(&self.job.policy.policy.kind, self.checked.fingerprint);
        let opening = Opening::new(&surroundings, (record.key, self.job.name()), rows, pages.partitions())?;
        let auditor = Auditor::new(&stack)?;
        let before = auditor.tally(fanout).await?;
        let found = tracking.fanouts.get(fanout).await?;
        // Before the steps are at work, so that nothing is called for a run that is refused.
        found.as_ref().map_or(Ok(()), |found| opening.has_opened(found))?;
        // What earlier processes did is counted before that, too.
        let (done, duplicates) = match found {
            Some(found) => {
                let (_, progress) = tracking.progress(found).await?;
                (progress.done, progress.duplicates)
            }
            None => (0, 0),
        };
        let done_before = if resumed { before.settled + duplicates } else { 0 };
        let registered_before = auditor.partitions(fanout, pages.partitions()).await?.iter().map(|it| it.rows).sum();
        let meter = Arc::new(Meter {
            counters,
            registered: Arc::new(AtomicU64::new(registered_before)),
            registered_before,
            before,
            acked_before: done,
            duplicates_before: duplicates,
            total: self.checked.tasks,
            resumed,
            how: self.how,
        });
        let gates = Gates::new(surroundings.table(variables::LOCKS_TABLE)?);
        Ok(Begun { stack, record, tracking, gates, fanout, opening, pages, auditor, meter, done_before })
    }
}
