//! Whether a rate was kept, as a batch API counts.

use std::time::Duration;

use tokio::time::Instant;

use crate::api::Seen;

/// A rate: how much per second, and how much at once.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    pub a_second: f64,
    pub burst: f64,
}

impl Counted {
    /// Fails if some span saw more than a burst (or one call) plus what the rate allows in that span. `spends`: what a call
    /// spends.
    pub fn assert_kept(self, seen: &[Seen], spends: impl Fn(&Seen) -> f64) {
        let mut calls: Vec<(Instant, f64)> = seen.iter().map(|seen| (seen.at, spends(seen))).collect();
        calls.sort_by_key(|(at, _)| *at);
        for (first, (from, _)) in calls.iter().enumerate() {
            let (mut sum, mut largest) = (0.0, 0.0_f64);
            for (to, spent) in &calls[first..] {
                (sum, largest) = (sum + spent, largest.max(*spent));
                let span = *to - *from;
                let allowed = self.burst.max(largest) + self.a_second * span.as_secs_f64();
                assert!(sum <= allowed + 1e-6, "{sum} within {span:?}, {self:?} are allowed: {:?}", times(&calls));
            }
        }
    }

    /// The part of the rate that was used from the first call to the last, without the last.
    pub fn used(self, seen: &[Seen], spends: impl Fn(&Seen) -> f64) -> f64 {
        let first = seen.iter().map(|seen| seen.at).min().unwrap();
        let last = seen.iter().max_by_key(|seen| seen.at).unwrap();
        let spent: f64 = seen.iter().map(&spends).sum::<f64>() - spends(last);
        spent / (self.a_second * (last.at - first).as_secs_f64())
    }
}

/// The members of a call.
pub fn members(seen: &Seen) -> f64 {
    seen.call.members.len() as f64
}

fn times(calls: &[(Instant, f64)]) -> Vec<(Duration, f64)> {
    calls.iter().map(|(at, spent)| (*at - calls[0].0, *spent)).collect()
}
