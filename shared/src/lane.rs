//! Lanes. Each has at most one leader. A lane is a target of a kind, or one partition of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::limits::TARGET_BYTES_MAX;
use crate::policy::{KIND_ALLOWED, is_kind};
use crate::text::start;

/// One partition of one target of one kind. Its text, `<kind>:<partition>:<target>`, is the key of its lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane {
    /// The kind of all its tasks; holds no colon.
    pub kind: String,
    /// The partition, below the policy's `partitions`: the [share](crate::share::share) of its tasks' keys.
    pub partition: u32,
    /// What its tasks share.
    pub target: String,
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.kind, self.partition, self.target)
    }
}

/// A text is not a lane.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a lane (<kind>:<partition>:<target>, the kind of {KIND_ALLOWED}, the target of at most {TARGET_BYTES_MAX} bytes)"
)]
pub struct LaneError(pub String);

impl FromStr for Lane {
    type Err = LaneError;

    fn from_str(text: &str) -> Result<Self, LaneError> {
        let parse = || {
            let mut parts = text.splitn(3, ':');
            let (kind, partition, target) = (parts.next()?, parts.next()?, parts.next()?);
            let lane = Self { kind: kind.to_owned(), partition: partition.parse().ok()?, target: target.to_owned() };
            // A lane is the key of its lock. DynamoDB refuses a key that is too long, and with it all keys of one read.
            let fits = is_kind(kind) && target.len() <= TARGET_BYTES_MAX;
            (fits && lane.to_string() == text).then_some(lane)
        };
        parse().ok_or_else(|| LaneError(start(text).to_owned()))
    }
}

impl Serialize for Lane {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Lane {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::limits::KIND_BYTES_MAX;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips_whatever_the_target(kind in "[A-Za-z0-9._-]{1,64}", partition: u32, target in ".{0,200}") {
            let lane = Lane { kind, partition, target };
            prop_assert_eq!(lane.to_string().parse::<Lane>().unwrap(), lane);
        }
    }

    #[test]
    fn what_can_be_no_key_is_no_lane() {
        let lane = |kind: &str, target: usize| format!("{kind}:0:{}", "7".repeat(target)).parse::<Lane>();
        assert!(lane(&"k".repeat(KIND_BYTES_MAX), TARGET_BYTES_MAX).is_ok());
        for refused in [
            lane(&"k".repeat(KIND_BYTES_MAX + 1), 1),
            lane("parcel", TARGET_BYTES_MAX + 1),
            lane("a b", 1),
            lane("", 1),
        ] {
            assert!(refused.unwrap_err().to_string().len() < 400);
        }
    }
}
