//! Takes a run up: its fan-out is open, and what earlier processes did of it is known.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use fanfold::config::variables;
use fanfold::store::gates::Gates;
use fanfold::store::policies::Policies;
use fanfold::tracking::Tracking;

use super::Run;
use super::meter::Meter;
use super::produce::{self, Opened};
use super::record::Record;
use super::take_up::take_up;
use super::tally::Auditor;
use crate::counters::Counters;
use crate::failure::Failure;
use crate::stack::EmbeddedStack;

/// A run that was taken up.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) stack: EmbeddedStack,
    pub(super) record: Record,
    pub(super) tracking: Tracking,
    pub(super) gates: Gates,
    pub(super) opened: Opened,
    pub(super) auditor: Auditor,
    pub(super) meter: Meter,
    /// Tasks that were done when this process went on with an earlier one's run.
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
        let opened = produce::open(&tracking, record.key, &self.job.name(), self.checked.tasks).await?;
        let auditor = Auditor::new(&stack)?;
        let before = auditor.tally(opened.fanout.id).await?;
        let (_, progress) = tracking.progress(opened.fanout.clone()).await?;
        let done_before = if resumed { before.settled + progress.duplicates } else { 0 };
        let meter = Meter {
            counters,
            registered: Arc::new(AtomicU64::new(opened.fanout.cursor)),
            registered_before: opened.fanout.cursor,
            before,
            acked_before: progress.done,
            duplicates_before: progress.duplicates,
            total: self.checked.tasks,
            resumed,
            how: self.how,
        };
        let gates = Gates::new(surroundings.table(variables::LOCKS_TABLE)?);
        Ok(Begun { stack, record, tracking, gates, opened, auditor, meter, done_before })
    }
}
