//! Which faults a run has, and how often. The rates are in ten-thousandths of requests, or of messages.

use std::time::Duration;

use crate::dice::{ALL, Dice};

/// How late a request is applied at most whose sender saw a broken connection.
pub(crate) const LATE_MAX: Duration = Duration::from_secs(5);

/// The faults of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct FaultPlan {
    /// The worker dies at a request.
    pub(crate) crash: u32,
    /// The service refuses: throttled, or an internal error, before or after it applied the request.
    pub(crate) refuse: u32,
    /// The connection breaks, before or after the request is applied.
    pub(crate) lose: u32,
    /// The connection breaks, and the request is applied some time later.
    pub(crate) late: u32,
    /// A request takes seconds, up to longer than the SDK waits.
    pub(crate) slow: u32,
    /// A transaction meets another one; a statement of a batch is refused; a read leaves keys out.
    pub(crate) partial: u32,
    /// Reads that need not be consistent miss what is younger than this.
    pub(crate) read_lag: Duration,
    /// Indexes miss what is younger than this, and show what is gone.
    pub(crate) index_lag: Duration,
    /// Hints that get lost.
    pub(crate) message_lost: u32,
    /// Messages delivered again, at once or later.
    pub(crate) message_again: u32,
    /// Messages that take long.
    pub(crate) message_late: u32,
    /// How long such messages take at most.
    pub(crate) message_delay: Duration,
    /// How wrong clocks are at most.
    pub(crate) skew: Duration,
    /// When faults stop.
    pub(crate) until: Duration,
    /// How often everything dies at once.
    pub(crate) restarts: u64,
    /// Nothing fails and nothing is lost, messages only repeat, reorder and lag: then no sweep may be needed.
    pub(crate) calm: bool,
    /// Calm, messages come once and soon, clocks are right: then what waits waits for a place only.
    pub(crate) quiet: bool,
    /// Time between two sweeps while faults last.
    pub(crate) sweep_every: Duration,
    /// Queues are counted as if at least so many messages waited.
    pub(crate) counted: usize,
}

impl FaultPlan {
    /// Draws a plan: most runs have few kinds of faults, some have all.
    pub(crate) fn draw(dice: &Dice) -> Self {
        let all = dice.chance(3_000);
        let has = |often: u32| all || dice.chance(often);
        let rate = |often: u32, low: u64, high: u64| {
            if has(often) { dice.between(low, high) as u32 } else { 0 }
        };
        let span = |often: u32, low: Duration, high: Duration| {
            if has(often) { dice.skewed(low, high) } else { Duration::ZERO }
        };
        let seconds = Duration::from_secs;
        let plan = Self {
            calm: dice.chance(1_200),
            quiet: false,
            crash: rate(6_000, 30, 500),
            refuse: rate(4_000, 50, 1_200),
            lose: rate(5_000, 50, 1_000),
            late: rate(2_000, 20, 200),
            slow: rate(3_000, 10, 150),
            partial: rate(4_000, 100, 1_500),
            read_lag: span(5_000, Duration::from_millis(200), seconds(10)),
            index_lag: span(6_000, Duration::from_millis(500), seconds(200)),
            message_lost: rate(5_000, 50, 1_000),
            message_again: rate(5_000, 100, 3_000),
            message_late: rate(5_000, 100, 2_000),
            message_delay: dice.skewed(seconds(10), seconds(5_400)),
            skew: span(5_000, seconds(1), seconds(1_200)),
            // Some last so long that what was begun among faults ends among faults.
            until: if dice.chance(2_500) {
                dice.millis(900_000, 2_400_000)
            } else {
                dice.skewed(seconds(60), seconds(1_500))
            },
            restarts: if dice.chance(3_000) { dice.between(1, 4) } else { 0 },
            sweep_every: dice.skewed(seconds(40), seconds(600)),
            counted: rate(2_000, 1, 8) as usize,
        };
        if !plan.calm {
            return plan;
        }
        let none = Duration::ZERO;
        let calm =
            Self { crash: 0, refuse: 0, lose: 0, late: 0, slow: 0, partial: 0, message_lost: 0, restarts: 0, ..plan };
        if !dice.chance(4_000) {
            return calm;
        }
        let quiet = Self { quiet: true, message_again: 0, message_late: 0, skew: none, ..calm };
        Self { read_lag: none, index_lag: none, until: quiet.until.max(seconds(900)), ..quiet }
    }
}

/// What becomes of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing happens to it.
    None,
    /// The worker dies before the request is applied.
    CrashBefore,
    /// The worker dies after it was applied.
    CrashAfter,
    /// Refused with an error of this name.
    Refused(u16, &'static str),
    /// Applied, and answered with an internal error.
    AppliedButError,
    /// Not applied; the caller sees a broken connection.
    LostBefore,
    /// Applied; the caller sees a broken connection.
    LostAfter,
    /// The caller sees a broken connection; applied after this many milliseconds.
    Late(u64),
    /// Takes this many milliseconds, applied at the end of them.
    SlowBefore(u64),
    /// Applied at once, answered after this many milliseconds.
    SlowAfter(u64),
    /// Done in part, or refused for a conflict.
    Partial,
    /// Answered from the time before the workers of a small case began.
    Stale,
}

impl Fault {
    /// Draws what becomes of a request whose worker survives it.
    pub(crate) fn draw(plan: &FaultPlan, dice: &Dice, sqs: bool) -> Self {
        let roll = dice.below(ALL as usize) as u32;
        let mut passed = 0;
        let mut hit = |rate: u32| {
            passed += rate;
            roll < passed
        };
        if hit(plan.refuse) {
            let dynamodb: [(u16, &'static str); 4] = [
                (400, "ThrottlingException"),
                (400, "ProvisionedThroughputExceededException"),
                (500, "InternalServerError"),
                (503, "ServiceUnavailable"),
            ];
            let queue: [(u16, &'static str); 2] = [(400, "RequestThrottled"), (500, "InternalFailure")];
            if dice.chance(2_000) {
                return Self::AppliedButError;
            }
            let (status, name) = if sqs { dice.pick(&queue) } else { dice.pick(&dynamodb) };
            return Self::Refused(status, name);
        }
        if hit(plan.lose) {
            return if dice.chance(4_000) { Self::LostBefore } else { Self::LostAfter };
        }
        if hit(plan.late) {
            return Self::Late(dice.between(1, LATE_MAX.as_millis() as u64));
        }
        if hit(plan.slow) {
            let span = dice.between(1_000, 40_000);
            return if dice.chance(5_000) { Self::SlowBefore(span) } else { Self::SlowAfter(span) };
        }
        if hit(plan.partial) { Self::Partial } else { Self::None }
    }
}
