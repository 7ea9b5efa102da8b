//! Tracking: fan-outs are opened, added to, sealed, acked, and completed once.

mod ack;
mod complete;
mod groups;
mod items;
mod open;

use crate::aws::{Queue, QueueError, StoreError};
use crate::clock::World;
use crate::config::{ConfigError, Surroundings, variables};
use crate::messages::NotifyMessage;
use crate::store::fanouts::{FanoutState, Fanouts};
use crate::store::groups::Groups;

pub use ack::{AckRefusal, Acks, Refused, collect, collect_batch};
pub use complete::Progress;
pub use groups::GroupPage;
pub use items::{ItemState, Sizes};
pub use open::{OpenRequest, Opened};

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
            fanouts: Fanouts::new(surroundings.table(variables::FANOUTS_TABLE)?),
            groups: Groups::new(surroundings.table(variables::GROUPS_TABLE)?),
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
    #[error("fan-out {id} is {}; items can be added while it is open", state.as_str())]
    NotOpen {
        /// The fan-out.
        id: uuid::Uuid,
        /// Its state.
        state: FanoutState,
    },
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
    /// An idempotency key was used before, for something else.
    #[error("the idempotency key was used before with other values: {0}")]
    KeyReused(String),
    /// A table could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A message could not be sent.
    #[error(transparent)]
    Queue(#[from] QueueError),
}
