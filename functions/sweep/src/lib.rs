//! The step `sweep`: from the tables alone, makes every message again that may have been lost.

mod batches;
mod cancelled;
mod fanouts;
mod kinds;
mod known;
mod lanes;
mod late;
mod producers;
mod seen;
mod switches;

use std::time::Duration;

use fanfold::aws::{Extent, Queue, QueueError, Segment, StoreError};
use fanfold::clock::{Timestamp, World};
use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::control::{Cancelling, Switchboard};
use fanfold::grouping::rests;
use fanfold::lane::Lane;
use fanfold::limits::{HINT_LATE_MAX, HINT_LOST_AFTER, SWEEP_SEGMENTS};
use fanfold::messages::{ElectMessage, GroupMessage, HandleMessage};
use fanfold::metrics::{HEALED, SWEEPS};
use fanfold::producing::Producing;
use fanfold::store::batches::Batches;
use fanfold::store::findings::SweepRecord;
use fanfold::store::gates::{Gates, places_max};
use fanfold::store::locks::Locks;
use fanfold::store::policies::Policies;
use fanfold::store::tasks::Tasks;
use fanfold::tracking::{Tracking, TrackingError};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::known::Known;
use crate::late::Late;
use crate::seen::Seen;

/// Makes lost messages again, and tidies up after lanes that went idle.
#[derive(Debug)]
pub struct Sweep {
    tasks: Tasks,
    locks: Locks,
    batches: Batches,
    gates: Gates,
    /// Calls that one kind may have at once.
    places_max: u32,
    policies: Policies,
    tracking: Tracking,
    producing: Producing,
    cancelling: Cancelling,
    elect: Queue<ElectMessage>,
    group: Queue<GroupMessage>,
    handle: Queue<HandleMessage>,
    record: SweepRecord,
    world: World,
}

/// How a sweep is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepRequest {
    /// Age from which a message is taken for lost, unless it may be one of those that wait in its queue. One that was merely slow is
    /// sent twice, which does no harm.
    pub min_age: Duration,
    /// No other process works on these tables, and the connections of those that did are closed: a lease ends when its call's
    /// `timeout` is over.
    pub workers_dead: bool,
}

impl Default for SweepRequest {
    fn default() -> Self {
        Self { min_age: HINT_LOST_AFTER, workers_dead: false }
    }
}

/// What a sweep knows from its beginning.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) request: SweepRequest,
    pub(crate) begun_at: Timestamp,
    /// All switches.
    pub(crate) switches: Switchboard,
    /// The kinds that have a policy.
    pub(crate) known: Known,
    /// What is late rather than lost.
    pub(crate) late: Late,
}

impl Round {
    /// Whether nothing is begun in a lane.
    pub(crate) fn rests(&self, lane: &Lane) -> bool {
        rests(self.switches.hold(lane), self.known.has(&lane.kind))
    }
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Leaders whose message to form their batch was sent again.
    pub leaders: u64,
    /// Batches whose message was sent again.
    pub batches: u64,
    /// Lanes with unclaimed tasks that were woken.
    pub lanes: u64,
    /// Fan-outs that were completed, or whose notice was sent again.
    pub fanouts: u64,
    /// Partitions of producers whose message was sent again.
    pub partitions: u64,
    /// Kinds whose notice was sent again.
    pub kinds: u64,
    /// Idle lanes that were put aside.
    pub retired: u64,
    /// Cancellations of tasks that were finished.
    pub cancelled: u64,
    /// Switches whose work was done, and that were taken away.
    pub switches: u64,
    /// Kinds found to stand still with batches that wait; one with very many lanes counts several times.
    pub standing: u64,
}

impl SweepReport {
    /// What it mended: messages that it sent again, and work that it finished.
    #[must_use]
    pub fn healed(&self) -> u64 {
        self.leaders + self.batches + self.lanes + self.fanouts + self.partitions + self.kinds + self.cancelled
    }
}

/// A sweep broke off. The next one starts anew.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A message could not be sent.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A fan-out could not be finished.
    #[error(transparent)]
    Tracking(#[from] TrackingError),
}

impl Sweep {
    /// The step in the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            tasks: Tasks::from_environment(surroundings)?,
            locks: Locks::from_environment(surroundings)?,
            batches: Batches::from_environment(surroundings)?,
            gates: Gates::from_environment(surroundings)?,
            places_max: places_max(surroundings.number(variables::BATCH_API_CONCURRENCY)?),
            policies: Policies::from_environment(surroundings)?,
            tracking: Tracking::from_environment(surroundings)?,
            producing: Producing::from_environment(surroundings)?,
            cancelling: Cancelling::from_environment(surroundings)?,
            elect: surroundings.queue(variables::ELECT_QUEUE_URL)?,
            group: surroundings.queue(variables::GROUP_QUEUE_URL)?,
            handle: surroundings.handle_queue()?,
            record: SweepRecord::from_environment(surroundings)?,
            world: surroundings.world.clone(),
        })
    }

    /// Looks through all unfinished tasks, fan-outs, lanes with their batches, kinds, and producers.
    ///
    /// # Errors
    /// A table cannot be read or written, or a message not sent. What was done until then stands.
    pub fn sweep(&self, request: SweepRequest) -> BoxFuture<'_, Result<SweepReport, SweepError>> {
        self.look_through(request).boxed()
    }

    /// Looks through everything, and records what was seen: what is stale, or why the sweep broke off.
    async fn look_through(&self, request: SweepRequest) -> Result<SweepReport, SweepError> {
        let (mut report, mut seen) = (SweepReport::default(), Seen::new(self.world.now()));
        let swept = self.look_at_all(request, &mut report, &mut seen).await;
        metrics::counter!(HEALED).increment(report.healed());
        if let Err(error) = swept {
            if let Err(unrecorded) = self.record.put_failure(&error.to_string()).await {
                tracing::warn!(error = %unrecorded, "that the sweep broke off cannot be recorded");
            }
            return Err(error);
        }
        seen.finish();
        self.record.put(&seen.findings).await?;
        metrics::counter!(SWEEPS).increment(1);
        Ok(report)
    }

    async fn look_at_all(
        &self,
        request: SweepRequest,
        report: &mut SweepReport,
        seen: &mut Seen,
    ) -> Result<(), SweepError> {
        let (known, read) = self.known().await;
        let round = self.begin_round(request, known).await;
        // A failure in one part does not keep the others from healing. A sweep that times out favours none: either half
        // comes first.
        let mut tracked = None;
        if self.world.random.next().is_multiple_of(2) {
            tracked = Some(self.sweep_tracking(request, report, seen).await);
        }
        let (pending, locks, kinds) = match &round {
            Ok(round) => (
                self.sweep_pending(round, report).await,
                self.sweep_locks(round, report, seen).await,
                self.sweep_kinds(round, report).await,
            ),
            Err(_) => (Ok(Default::default()), Ok(()), Ok(())),
        };
        let tracked = match tracked {
            Some(tracked) => tracked,
            None => self.sweep_tracking(request, report, seen).await,
        };
        let waiting = pending.and_then(|waiting| locks.map(|()| waiting));
        let switches = match (&round, &waiting) {
            (Ok(round), Ok(waiting)) => {
                self.judge_waiting(round, waiting, seen).await;
                self.finish_switches(round, waiting, report).await
            }
            _ => Ok(()),
        };
        round.map(drop).and(waiting.map(drop)).and(switches).and(tracked).and(kinds).and(read)
    }

    /// Goes through fan-outs and producers.
    async fn sweep_tracking(
        &self,
        request: SweepRequest,
        report: &mut SweepReport,
        seen: &mut Seen,
    ) -> Result<(), SweepError> {
        let fanouts = self.sweep_fanouts(request, report, seen).await;
        let idle = self.sweep_idle(report).await;
        let producers = self.sweep_producers(request, report, seen).await;
        fanouts.and(idle).and(producers)
    }

    /// The segments in which a sparse index is read. If there is much in it, they begin anywhere, so that a sweep that times out
    /// favours none.
    fn segments(&self, extent: Extent) -> impl Iterator<Item = Segment> + use<> {
        let of = match extent {
            Extent::Empty => 0,
            Extent::Little => 1,
            Extent::Much => SWEEP_SEGMENTS,
        };
        let first = i32::try_from(self.world.random.next() % SWEEP_SEGMENTS as u64).unwrap_or(0);
        (0..of).map(move |at| Segment { number: (first + at) % of, of })
    }

    /// The moment before which a message must have been due to be taken for lost.
    fn horizon(&self, request: SweepRequest) -> Timestamp {
        self.world.now().minus(request.min_age)
    }

    /// The same for a message that may be among those that wait in its queue.
    fn late_horizon(&self, request: SweepRequest) -> Timestamp {
        self.world.now().minus(late_max(request))
    }
}

/// For how long what is overdue may be late. Nothing waits in a queue of workers that are dead.
fn late_max(request: SweepRequest) -> Duration {
    if request.workers_dead { request.min_age } else { HINT_LATE_MAX.max(request.min_age) }
}
