//! Time and randomness, injected: a step never asks the machine itself.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// A moment, in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment `span` later.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The moment `span` earlier, the epoch at the earliest.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Time passed since `earlier`; zero if that lies ahead (clocks of two machines may disagree).
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// As RFC 3339 writes it, in UTC and to the millisecond.
    #[must_use]
    pub fn rfc3339(self) -> String {
        humantime::format_rfc3339_millis(self.shown()).to_string()
    }

    /// As RFC 3339 writes it, in UTC and to the second.
    #[must_use]
    pub fn rfc3339_seconds(self) -> String {
        humantime::format_rfc3339_seconds(self.shown()).to_string()
    }

    /// The year 9999 is the last that the format has.
    fn shown(self) -> std::time::SystemTime {
        std::time::UNIX_EPOCH + Duration::from_millis(self.0).min(Duration::from_secs(253_402_300_799))
    }

    /// Epoch seconds, as DynamoDB's TTL requires them.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.0 / 1_000
    }
}

/// Gives the time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// Gives random numbers.
pub trait Random: Send + Sync {
    /// The next number, all bits random.
    fn next(&self) -> u64;

    /// A number that cannot be predicted from earlier ones, for secrets.
    fn secret(&self) -> u64 {
        self.next()
    }
}

/// The machine's own clock.
#[derive(Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods, reason = "the one place that asks the machine")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp(since.map_or(0, |span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// The machine's own randomness.
#[derive(Debug)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[allow(clippy::disallowed_methods, reason = "the one place that asks the machine")]
    fn next(&self) -> u64 {
        fastrand::u64(..)
    }

    fn secret(&self) -> u64 {
        // The keys of a hasher are the system's, too, and fail as seldom.
        getrandom::u64().unwrap_or_else(|_| RandomState::new().hash_one(self.next()))
    }
}

/// Clock and randomness of a worker.
#[derive(Clone)]
pub struct World {
    /// Gives the time.
    pub clock: Arc<dyn Clock>,
    /// Gives random numbers.
    pub random: Arc<dyn Random>,
}

impl World {
    /// The machine's own.
    #[must_use]
    pub fn system() -> Self {
        Self { clock: Arc::new(SystemClock), random: Arc::new(SystemRandom) }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A new id, ordered by time (UUID version 7, RFC 9562).
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.random.next().to_be_bytes());
        bytes[8..].copy_from_slice(&self.random.next().to_be_bytes());
        let mut tail = [0; 10];
        tail.copy_from_slice(&bytes[..10]);
        uuid::Builder::from_unix_timestamp_millis(self.now().0, &tail).into_uuid()
    }
}

impl World {
    /// A new secret of 122 bits, in the form of an id (UUID version 4).
    #[must_use]
    pub fn secret(&self) -> Uuid {
        let bits = u128::from(self.random.secret()) << 64 | u128::from(self.random.secret());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}
