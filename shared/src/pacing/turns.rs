//! Turns: when a batch that waits for a rate asks for its call again.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::Micros;
use crate::clock::Timestamp;
use crate::limits::TURN_MISSED_AFTER;

/// A turn that a batch waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When it comes.
    pub at: Timestamp,
    /// The name of the rate that gave it: by another rate it is void.
    pub rate: String,
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at.0, self.rate)
    }
}

/// The text is not a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a time in milliseconds and the name of a rate")]
pub struct TurnError;

impl FromStr for Turn {
    type Err = TurnError;

    fn from_str(text: &str) -> Result<Self, TurnError> {
        let (at, rate) = text.split_once(' ').ok_or(TurnError)?;
        Ok(Self { at: Timestamp(at.parse().map_err(|_| TurnError)?), rate: rate.to_owned() })
    }
}

/// The turns that a batch has waited for, or waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Among the batches of its lane.
    pub lane: Option<Turn>,
    /// Among those of its kind.
    pub kind: Option<Turn>,
}

impl Turns {
    /// When the last of them comes.
    #[must_use]
    pub fn at(&self) -> Option<Timestamp> {
        self.lane.iter().chain(&self.kind).map(|turn| turn.at).max()
    }

    /// When a batch with a turn asks again, if it is refused until `next`: then, if it came in time. If it missed its turn long ago,
    /// others may have missed theirs for the same reason, such as a pause, and all but one would ask in vain: each takes a
    /// random part of what it missed as well. None: it gets a new turn at the end of the line, as that comes within the time that
    /// it missed. `line`: when that is.
    #[must_use]
    pub fn next(&self, next: Micros, line: Micros, now: Timestamp, random: u64) -> Option<Micros> {
        let missed = self.at().map_or(Duration::ZERO, |at| now.since(at));
        if missed < TURN_MISSED_AFTER {
            return Some(next);
        }
        let missed = u64::try_from(missed.as_micros()).unwrap_or(u64::MAX - 1);
        (line > next.saturating_add(missed)).then(|| next.saturating_add(random % (missed + 1)))
    }
}
