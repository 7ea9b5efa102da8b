//! The one source of chance: every decision of a run comes from streams that follow from its seed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

/// Chances are counted in ten-thousandths.
pub(crate) const ALL: u32 = 10_000;

/// What follows from a seed and words, in every process the same.
pub(crate) fn hash(seed: u64, words: &[&str]) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, format!("{seed} {}", words.join(" ")).as_bytes())
}

/// One stream of decisions.
#[derive(Debug)]
pub(crate) struct Dice(Mutex<fastrand::Rng>);

impl Dice {
    /// The stream of a purpose: another purpose's decisions do not shift it.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let (stream, _) = hash(seed, &[purpose]).as_u64_pair();
        Self(Mutex::new(fastrand::Rng::with_seed(stream)))
    }

    fn with<T>(&self, roll: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        roll(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Any number.
    pub(crate) fn any(&self) -> u64 {
        self.with(|rng| rng.u64(..))
    }

    /// Whether something of this chance (in ten-thousandths) happens.
    pub(crate) fn chance(&self, of: u32) -> bool {
        of > 0 && self.with(|rng| rng.u32(0..ALL)) < of
    }

    /// A number below `of`.
    pub(crate) fn below(&self, of: usize) -> usize {
        if of <= 1 { 0 } else { self.with(|rng| rng.usize(0..of)) }
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        if high <= low { low } else { self.with(|rng| rng.u64(low..=high)) }
    }

    /// One of several.
    pub(crate) fn pick<T: Clone>(&self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// A span of milliseconds.
    pub(crate) fn millis(&self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    /// A span of which short ones are as likely as long ones: each doubling has the same chance.
    pub(crate) fn skewed(&self, low: Duration, high: Duration) -> Duration {
        let (low, high) = (low.as_millis().max(1) as u64, high.as_millis().max(1) as u64);
        let doublings = (high / low).max(1).ilog2();
        let top = (low << self.between(0, u64::from(doublings))).saturating_mul(2).min(high);
        self.millis(low, top)
    }

    /// Puts in any order.
    pub(crate) fn shuffle<T>(&self, of: &mut [T]) {
        self.with(|rng| rng.shuffle(of));
    }
}
