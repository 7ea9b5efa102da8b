//! Opens the fan-out of a run, whose producer brings in the rows of its file, and waits until they are all registered.

use std::sync::atomic::Ordering;
use std::time::Duration;

use fanfold::config::Surroundings;
use fanfold::ids::derived;
use fanfold::limits::IDLE_WITH_TASKS;
use fanfold::policy::{Destination, NoticesQueue, Span};
use fanfold::producing::{Producer, Producing, RunRows, Source};
use fanfold::store::fanouts::{Fanout, FanoutState, IdleLimit};
use fanfold::store::producers::PartitionState;
use fanfold::tracking::{OpenRequest, Tracking};
use tokio::time::timeout;
use uuid::Uuid;

use super::begin::Begun;
use super::source::Moves;
use crate::failure::Failure;

/// Between two looks at how far the partitions are, if no move ends.
const LOOK: Duration = Duration::from_millis(500);

/// Why a run whose fan-out was opened otherwise cannot be resumed.
const OTHER_VERSION: &str =
    "another version of fanfold began the run in this data folder; finish it with that version, or use another folder";

/// What opens the fan-out of a run.
#[derive(Debug)]
pub(super) struct Opening {
    producing: Producing,
    tracking: Tracking,
    key: Uuid,
    request: OpenRequest,
}

impl Opening {
    pub(super) fn new(
        surroundings: &Surroundings,
        (key, name): (Uuid, String),
        rows: RunRows,
        partitions: u32,
    ) -> Result<Self, Failure> {
        let producer = Producer { source: Source::Rows(rows), partitions, key: None, tolerated_bad_rows: None };
        // A run that was stopped may be resumed after weeks, whether or not all its rows are registered.
        let idle_limit = IdleLimit { open: Some(Span(IDLE_WITH_TASKS)), sealed: None };
        let request = OpenRequest {
            user_key: Some(name),
            notify: Some(Destination::Queue(NoticesQueue::Notices)),
            idle_limit: Some(idle_limit),
            producer: Some(producer),
            ..OpenRequest::default()
        };
        let (producing, tracking) =
            (Producing::from_environment(surroundings)?, Tracking::from_environment(surroundings)?);
        Ok(Self { producing, tracking, key, request })
    }

    /// Refuses a fan-out whose pages or partitions are others.
    pub(super) fn has_opened(&self, found: &Fanout) -> Result<(), Failure> {
        let same = found.producer == self.request.producer;
        if same { Ok(()) } else { Err(Failure::Rows(OTHER_VERSION.to_owned())) }
    }

    /// Opens it, or finds it again, whatever its folder was called then. Steps must be at work before that: they begin with messages
    /// for partitions that they find, and opening sends some, too.
    pub(super) async fn open(&self) -> Result<Fanout, Failure> {
        let key = self.key.to_string();
        let Some(found) = self.tracking.fanouts.get(derived::fanout(&key)).await? else {
            return Ok(self.producing.open(&self.tracking, self.request.clone(), Some(&key)).await?.fanout);
        };
        // The file was changed in the middle of an earlier run. By now it is as it was: it was checked.
        if found.state == FanoutState::Open {
            self.producing.resume(&found).await.map_err(|error| Failure::Produce(error.to_string()))?;
        }
        Ok(found)
    }
}

/// Waits until every row is registered; the run's meter follows.
pub(super) async fn all_registered(begun: &Begun, moves: &Moves) -> Result<(), Failure> {
    let partitions = begun.pages.partitions();
    let mut ends = moves.ends();
    loop {
        if let Some(reason) = &ends.borrow_and_update().broken {
            return Err(Failure::Produce(reason.clone()));
        }
        let found = begun.auditor.partitions(begun.fanout, partitions).await?;
        let rows = found.iter().map(|it| it.rows).sum();
        begun.meter.registered.store(rows, Ordering::Relaxed);
        if found.len() == partitions as usize && found.iter().all(|it| it.state == PartitionState::Done) {
            let missing = || Failure::Internal(format!("{rows} of {} rows are registered", begun.meter.total));
            return if rows == begun.meter.total { Ok(()) } else { Err(missing()) };
        }
        // Somebody cancelled it by the HTTP API.
        if begun.tracking.fanouts.get(begun.fanout).await?.is_some_and(|fanout| fanout.state.cut_short()) {
            return Ok(());
        }
        if let Some(failed) = found.iter().find(|it| it.state == PartitionState::Failed) {
            return Err(Failure::Rows(failed.error.clone().unwrap_or_default()));
        }
        // Either way: the next look shows.
        let _ = timeout(LOOK, ends.changed()).await;
    }
}
