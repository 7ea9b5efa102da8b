//! Messages to the step `produce`.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A partition of a fan-out's producer is to continue where its record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProduceMessage {
    /// The fan-out.
    pub fanout: Uuid,
    /// The partition, from 0.
    pub partition: u32,
}
