//! Control: pauses, resumes and drains scopes, cancels tasks that wait, and lists lanes.

mod cancelling;
mod dead_letters;
mod dev;
mod lanes;
mod resetting;
mod scope;
mod switches;
mod wake;
mod wake_items;

use std::collections::BTreeSet;

use crate::aws::{Queue, QueueError, StoreError};
use crate::clock::{Timestamp, World};
use crate::config::{ConfigError, Surroundings, variables};
use crate::messages::{ElectMessage, GroupMessage, HandleMessage};
use crate::store::batches::Batches;
use crate::store::locks::Locks;
use crate::store::policies::{Policies, SwitchError};
use crate::store::tasks::Tasks;
use crate::tracking::TrackingError;

pub use self::cancelling::{Cancelling, Selected};
pub use self::dead_letters::{DeadLetterError, DeadLetters, DeadQueue, Redriven};
pub use self::dev::{DevLease, DevQueues, DevSession, HeldByAnother, NotHeld};
pub use self::lanes::{LaneCursor, LaneStanding, LanesPage, PendingCount};
pub use self::resetting::{ResetError, ResetPage, Resetting};
pub use self::scope::Scope;
pub use self::switches::{Hold, Switch, SwitchState, Switchboard, Switches, TooMany};

pub use self::wake_items::Woken;

/// Pauses, resumes and drains scopes, and lists lanes.
#[derive(Debug)]
pub struct Control {
    tasks: Tasks,
    locks: Locks,
    batches: Batches,
    policies: Policies,
    elect: Queue<ElectMessage>,
    group: Queue<GroupMessage>,
    handle: Queue<HandleMessage>,
    world: World,
}

/// Something could not be controlled.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A switch could not be used.
    #[error(transparent)]
    Switch(#[from] SwitchError),
    /// A table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A message could not be sent.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// An item could not be acked.
    #[error(transparent)]
    Tracking(#[from] TrackingError),
}

/// The switch of a scope after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switched {
    /// Its own switch, if it has one.
    pub switch: Option<Switch>,
    /// The scopes that pause all of it, itself included.
    pub paused_by: Vec<Scope>,
}

impl Control {
    /// In the tables and queues that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            tasks: Tasks::from_environment(surroundings)?,
            locks: Locks::from_environment(surroundings)?,
            batches: Batches::from_environment(surroundings)?,
            policies: Policies::from_environment(surroundings)?,
            elect: surroundings.queue(variables::ELECT_QUEUE_URL)?,
            group: surroundings.queue(variables::GROUP_QUEUE_URL)?,
            handle: surroundings.handle_queue()?,
            world: surroundings.world.clone(),
        })
    }

    /// Pauses a scope: some seconds later no call of a batch API begins in it any more. Calls that had begun run to their end.
    ///
    /// # Errors
    /// There is no such kind, no room for another switch, or the table cannot be read or written.
    pub async fn pause(&self, scope: &Scope) -> Result<Switched, ControlError> {
        let switches = self.policies.switch(scope, |switches, now| switches.pause(scope, now)).await?;
        self.switched(scope, &switches).await
    }

    /// Resumes a scope, and wakes what waits there. If the worker dies in between, `sweep` wakes the rest.
    ///
    /// # Errors
    /// There is no such kind, or tables or queues cannot be reached.
    pub async fn resume(&self, scope: &Scope) -> Result<Switched, ControlError> {
        let resume = |switches: &mut Switches, now: Timestamp| {
            switches.resume(scope, now);
            Ok(())
        };
        let switches = self.policies.switch(scope, resume).await?;
        if switches.get(scope).is_some() {
            self.wake(scope, false).await?;
        }
        self.switched(scope, &switches).await
    }

    /// Drains a scope: batches are formed at once, until all that waits now is in a batch. If it is paused, the pause ends.
    ///
    /// # Errors
    /// There is no such kind, no room for another switch, or tables or queues cannot be reached.
    pub async fn drain(&self, scope: &Scope) -> Result<Switched, ControlError> {
        let switches = self.policies.switch(scope, |switches, now| switches.drain(scope, now)).await?;
        self.wake(scope, true).await?;
        self.switched(scope, &switches).await
    }

    async fn switched(&self, scope: &Scope, switches: &Switches) -> Result<Switched, ControlError> {
        let paused_by: BTreeSet<Scope> = self.policies.switchboard().await?.pausing(scope).cloned().collect();
        Ok(Switched { switch: switches.get(scope), paused_by: paused_by.into_iter().collect() })
    }

    /// All switches, as they stand now.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn switchboard(&self) -> Result<Switchboard, StoreError> {
        self.policies.switchboard().await
    }
}
