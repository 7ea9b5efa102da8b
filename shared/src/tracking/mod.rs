//! Tracking: fan-outs are opened, added to, sealed, acked, and end once.

mod ack;
mod acks;
mod add;
mod complete;
mod count;
mod cut_short;
mod expire;
mod gathering;
mod groups;
mod items;
mod missing;
mod nested;
mod open;
mod percentages;
mod progress;
mod selection;

use crate::aws::{Queue, QueueError, StoreError};
use crate::clock::World;
use crate::config::{ConfigError, Surroundings, variables};
use crate::messages::NotifyMessage;
use crate::store::fanouts::{FanoutState, Fanouts};
use crate::store::groups::Groups;

pub(crate) use acks::collect_duplicates;
pub use acks::{AckRefusal, Acks, Refusal, Refused, collect, collect_batch, collect_parent};
pub use add::page_groups;
pub use count::{Counted, Counts, collect_counts};
pub use gathering::{Gathering, gathered_requests};
pub use groups::GroupPage;
pub use items::{GroupsRead, ItemState};
pub use open::{FanoutTask, NewFanout, OpenRequest, Opened};
pub use progress::Progress;
pub use selection::{ItemCursor, ItemPage, Listed};

/// The protocols of tracking.
#[derive(Clone, Debug)]
pub struct Tracking {
    /// The fan-outs.
    pub fanouts: Fanouts,
    /// Their item groups.
    pub groups: Groups,
    notify: Queue<NotifyMessage>,
    world: World,
}

impl Tracking {
    /// Tracking in the tables that the environment names.
    ///
    /// # Errors
    /// A variable is missing.
    pub fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        Ok(Self {
            fanouts: Fanouts::from_environment(surroundings)?,
            groups: Groups::from_environment(surroundings)?,
            notify: surroundings.queue(variables::NOTIFY_QUEUE_URL)?,
            world: surroundings.world.clone(),
        })
    }
}

/// A fan-out could not be opened, added to, sealed or acked.
#[derive(Debug, thiserror::Error)]
pub enum TrackingError {
    /// There is no such fan-out.
    #[error("there is no fan-out {0}")]
    UnknownFanout(uuid::Uuid),
    /// The fan-out takes no more items.
    #[error("fan-out {id} is {}; items can be added only while it is open", state.as_str())]
    NotOpen {
        /// The fan-out.
        id: uuid::Uuid,
        /// Its state.
        state: FanoutState,
    },
    /// The fan-out is estimated, and has no items.
    #[error("fan-out {0} is estimated and has no items: count with `POST /counts`")]
    Estimated(uuid::Uuid),
    /// The fan-out is exact, and is not counted.
    #[error("fan-out {0} is exact: ack its items with `POST /acks`")]
    Exact(uuid::Uuid),
    /// Nothing can be added to the estimated fan-out any more.
    #[error(
        "fan-out {id} is {}; an estimated fan-out can be added to while it is open, and after that only while something is outstanding",
        state.as_str()
    )]
    CountedOut {
        /// The fan-out.
        id: uuid::Uuid,
        /// Its state.
        state: FanoutState,
    },
    /// Another end of the fan-out was decided before.
    #[error("fan-out {id} is {} already; only a fan-out that is open or sealed can be cancelled", state.as_str())]
    Ended {
        /// The fan-out.
        id: uuid::Uuid,
        /// Its state.
        state: FanoutState,
    },
    /// Only its producer may seal the fan-out.
    #[error("fan-out {0} is sealed by its producer when all rows are registered; you can only cancel it")]
    Produced(uuid::Uuid),
    /// Its producer cannot be used.
    #[error(transparent)]
    Producer(#[from] crate::policy::PolicyError),
    /// More or fewer items than one call may bring.
    #[error("`{field}` is {value}, {allowed} is allowed")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
    /// What is to follow from a fan-out's end cannot.
    #[error("`{field}` {problem}")]
    Follow {
        /// The field.
        field: &'static str,
        /// Its value and what is allowed.
        problem: String,
    },
    /// An idempotency key was used before, for something else.
    #[error("the idempotency key was used before: {0}")]
    KeyReused(String),
    /// A table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A message could not be sent.
    #[error(transparent)]
    Queue(#[from] QueueError),
}
