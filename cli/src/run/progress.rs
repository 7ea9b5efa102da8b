//! Shows how far a run has come, on standard error: bars in a terminal, a line now and then elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fanfold::metrics::{
    BATCHES_DISPATCHED, ITEMS_ACKED, MEMBERS_FAILED, MEMBERS_SUCCEEDED, RETRIES, TASKS_BATCHED, TASKS_DUPLICATE,
    TASKS_REGISTERED,
};
use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::tally::Tally;
use super::waiting::clock;
use crate::count::count;
use crate::counters::Counters;
use crate::say::{on_terminal, say, stay_above};

/// Between two looks at the counters.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// Between two lines where there is no terminal.
pub(super) const LINE: Duration = Duration::from_secs(5);
/// How long the time left is not guessed: the first batches wait for more.
const GUESS_AFTER: Duration = Duration::from_secs(3);

/// What earlier processes did of the run, and what counts what this one does.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) counters: Counters,
    /// Rows whose registration is written down.
    pub(super) registered: Arc<AtomicU64>,
    pub(super) registered_before: u64,
    pub(super) before: Tally,
    pub(super) acked_before: u64,
    pub(super) duplicates_before: u64,
    pub(super) total: u64,
    pub(super) resumed: bool,
    pub(super) how: How,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    registered: u64,
    /// Tasks that were dropped: they are in no batch.
    duplicates: u64,
    batched: u64,
    handled: u64,
    failed: u64,
    acked: u64,
    batches: u64,
    retries: u64,
}

impl Meter {
    /// Tasks that were dropped because another has their key, by this process.
    pub(super) fn duplicates(&self) -> u64 {
        self.counters.get(TASKS_DUPLICATE)
    }

    /// Whether every task has its outcome.
    pub(super) fn is_handled(&self) -> bool {
        let now = self.standing();
        now.handled + now.duplicates == self.total
    }

    /// Tasks that are registered and have no outcome yet.
    pub(super) fn ahead(&self) -> u64 {
        let now = self.standing();
        now.registered.saturating_sub(now.handled + now.duplicates)
    }

    fn standing(&self) -> Standing {
        // Read against the flow: what comes later is never seen ahead of what comes before it.
        let counted = |name| self.counters.get(name);
        let acked = (self.acked_before + counted(ITEMS_ACKED)).min(self.total);
        let failed = self.before.failed.len() as u64 + counted(MEMBERS_FAILED);
        let settled_before = self.before.settled - self.before.failed.len() as u64;
        let handled = (settled_before + failed + counted(MEMBERS_SUCCEEDED)).min(self.total);
        let batched = (self.before.members + counted(TASKS_BATCHED)).clamp(handled, self.total);
        let duplicates = (self.duplicates_before + self.duplicates()).min(self.total - batched);
        // What is stored counts at once; what an earlier process stored of the portion it died in, with that portion.
        let stored = counted(TASKS_REGISTERED) + counted(TASKS_DUPLICATE);
        let known = self.registered_before.max(self.before.members);
        let registered = self.registered.load(Ordering::Relaxed).max(known + stored);
        Standing {
            registered: registered.clamp(batched, self.total),
            duplicates,
            batched,
            handled,
            failed,
            acked,
            batches: self.before.batches + counted(BATCHES_DISPATCHED),
            retries: self.before.calls.saturating_sub(self.before.batches) + counted(RETRIES),
        }
    }
}

/// Shows progress until it is dropped.
pub(super) async fn show(meter: &Meter) {
    match meter.how {
        How::Bars => bars(meter).await,
        How::Lines => lines(meter).await,
        How::Nothing => std::future::pending().await,
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Bars,
    Lines,
    Nothing,
}

impl How {
    /// As fits: below the many lines of a log, bars would only flicker.
    pub(super) fn fit(json: bool, verbose: bool) -> Self {
        match (json, on_terminal() && !verbose) {
            (true, _) => Self::Nothing,
            (false, true) => Self::Bars,
            (false, false) => Self::Lines,
        }
    }
}

const BAR: &str = "{prefix:>10} {wide_bar} {human_pos:>9} of {human_len}";
const TEXT: &str = "{wide_msg}";

/// Bars, and two lines below them. When they are dropped they stay as they were drawn last.
struct Bars<'a> {
    meter: &'a Meter,
    bars: [ProgressBar; 4],
    texts: [ProgressBar; 2],
    began: Instant,
    first: u64,
}

impl<'a> Bars<'a> {
    fn new(meter: &'a Meter) -> Self {
        let all = MultiProgress::new();
        // Both templates are constants, and tried by a test.
        let style = |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = |name: &'static str| all.add(ProgressBar::new(meter.total).with_style(style(BAR)).with_prefix(name));
        let bars = ["registered", "batched", "handled", "acked"].map(bar);
        let texts = [(); 2].map(|()| all.add(ProgressBar::no_length().with_style(style(TEXT))));
        stay_above(Some(all));
        Self { meter, bars, texts, began: Instant::now(), first: meter.standing().acked }
    }

    fn draw(&self) {
        let now = self.meter.standing();
        let batched = self.meter.total - now.duplicates;
        let wholes = [self.meter.total, batched, batched, self.meter.total];
        let positions = [now.registered, now.batched, now.handled, now.acked];
        for ((bar, position), whole) in self.bars.iter().zip(positions).zip(wholes) {
            bar.set_length(whole);
            bar.set_position(position);
        }
        let [done, pace] = &self.texts;
        done.set_message(work(now));
        pace.set_message(pace_of(self.meter, now, self.first, self.began.elapsed()));
    }
}

impl Drop for Bars<'_> {
    fn drop(&mut self) {
        self.draw();
        self.bars.iter().chain(&self.texts).for_each(ProgressBar::abandon);
        stay_above(None);
    }
}

async fn bars(meter: &Meter) {
    let bars = Bars::new(meter);
    loop {
        bars.draw();
        tokio::time::sleep(TICK).await;
    }
}

async fn lines(meter: &Meter) {
    let began = Instant::now();
    let first = meter.standing().acked;
    if meter.resumed {
        say(format_args!("resumed at {} of {}", HumanCount(first), count(meter.total, "task", "tasks")));
    }
    loop {
        tokio::time::sleep(LINE).await;
        let now = meter.standing();
        let [registered, batched, handled, acked] =
            [now.registered, now.batched, now.handled, now.acked].map(HumanCount);
        let duplicates = match now.duplicates {
            0 => String::new(),
            dropped => format!(" ({})", count(dropped, "duplicate", "duplicates")),
        };
        let (total, pace) = (HumanCount(meter.total), pace_of(meter, now, first, began.elapsed()));
        say(format_args!(
            "registered {registered}{duplicates}, batched {batched}, handled {handled}, acked {acked} of {total}; {}; {pace}",
            work(now)
        ));
    }
}

/// Failures, batches, retries.
fn work(now: Standing) -> String {
    let size = match now.batches {
        0 => String::new(),
        batches => format!(" ({:.1} tasks each)", now.batched as f64 / batches as f64),
    };
    let batches = count(now.batches, "batch", "batches");
    format!("{} failed, {batches}{size}, {}", HumanCount(now.failed), count(now.retries, "retry", "retries"))
}

/// Time gone, rate, time left. What earlier processes did is not of this one's pace.
fn pace_of(meter: &Meter, now: Standing, first: u64, elapsed: Duration) -> String {
    let mut parts = vec![clock(elapsed)];
    let rate = now.acked.saturating_sub(first) as f64 / elapsed.as_secs_f64().max(0.001);
    if rate >= 1.0 && elapsed >= GUESS_AFTER {
        parts.push(format!("{} per second", HumanCount(rate as u64)));
        let left = meter.total.saturating_sub(now.acked) as f64 / rate;
        parts.push(format!("about {} left", clock(Duration::from_secs_f64(left))));
    }
    if meter.resumed {
        parts.push(format!("resumed at {}", HumanCount(first)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(counted: &[(&'static str, u64)]) -> Meter {
        let counters = Counters::default();
        counted.iter().for_each(|(name, count)| counters.add(name, *count));
        Meter {
            counters,
            registered: Arc::new(AtomicU64::new(0)),
            registered_before: 0,
            before: Tally::default(),
            acked_before: 0,
            duplicates_before: 0,
            total: 20_000,
            resumed: false,
            how: How::Nothing,
        }
    }

    #[test]
    fn templates_are_right() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
        assert!(ProgressStyle::with_template(TEXT).is_ok());
    }

    #[test]
    fn what_is_stored_counts_before_its_portion_is_through() {
        let meter = meter(&[(TASKS_REGISTERED, 700), (TASKS_DUPLICATE, 1)]);
        assert_eq!(meter.standing().registered, 701);
        meter.registered.store(10_000, Ordering::Relaxed);
        assert_eq!(meter.standing().registered, 10_000);
    }

    #[test]
    fn nothing_is_ahead_of_what_comes_before_it() {
        let mut meter = meter(&[(TASKS_BATCHED, 60), (MEMBERS_SUCCEEDED, 100), (MEMBERS_FAILED, 20)]);
        let now = meter.standing();
        assert_eq!((now.registered, now.batched, now.handled, now.failed), (120, 120, 120, 20));
        // An earlier process died in the middle of its first portion.
        meter.before = Tally { batches: 3, members: 3_000, settled: 10, ..Tally::default() };
        meter.resumed = true;
        let now = meter.standing();
        assert_eq!((now.registered, now.batched, now.handled), (3_060, 3_060, 130));
    }

    #[test]
    fn duplicates_are_in_no_batch() {
        let mut meter = meter(&[(TASKS_DUPLICATE, 700), (TASKS_BATCHED, 19_000)]);
        meter.duplicates_before = 200;
        assert_eq!((meter.standing().duplicates, meter.standing().batched), (900, 19_000));
        // Those of a process that died may be counted twice: dropped again, as it had not written down that they were.
        meter.duplicates_before = 700;
        assert_eq!(meter.standing().duplicates, 1_000);
    }

    #[test]
    fn every_line_fits_a_narrow_terminal() {
        let mut meter = meter(&[(ITEMS_ACKED, 9_000)]);
        (meter.resumed, meter.acked_before) = (true, 1_000);
        let now = Standing {
            registered: 42_049,
            duplicates: 0,
            batched: 42_049,
            handled: 42_049,
            failed: 1_039,
            acked: 10_000,
            batches: 1_279,
            retries: 1_062,
        };
        let pace = pace_of(&meter, now, 1_000, Duration::from_secs(75));
        assert_eq!(pace, "1:15, 120 per second, about 1:23 left, resumed at 1,000");
        assert!(pace.len() <= 60 && work(now).len() <= 60, "{}", work(now));
    }
}
