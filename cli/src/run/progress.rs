//! Shows how far a run has come, on standard error: bars in a terminal, a line now and then elsewhere.

use std::time::Duration;

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::meter::{Meter, Reading};
use super::waiting::clock;
use crate::count::count;
use crate::say::{on_terminal, say, stay_above};

/// Between two looks at the counters.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Between two lines where there is no terminal.
pub(super) const LINE: Duration = Duration::from_secs(5);

/// How long the time left is not guessed: the first batches wait for more.
const GUESS_AFTER: Duration = Duration::from_secs(3);

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
        Self { meter, bars, texts, began: Instant::now(), first: meter.reading().done() }
    }

    fn draw(&self) {
        let now = self.meter.reading();
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
    let first = meter.reading().done();
    if meter.resumed {
        say(format_args!("resumed at {} of {}", HumanCount(first), count(meter.total, "task", "tasks")));
    }
    loop {
        tokio::time::sleep(LINE).await;
        let now = meter.reading();
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
fn work(now: Reading) -> String {
    let size = match now.batches {
        0 => String::new(),
        batches => format!(" ({:.1} tasks each)", now.batched as f64 / batches as f64),
    };
    let batches = count(now.batches, "batch", "batches");
    format!("{} failed, {batches}{size}, {}", HumanCount(now.failed), count(now.retries, "retry", "retries"))
}

/// Time gone, rate, time left. What earlier processes did is not of this one's pace.
fn pace_of(meter: &Meter, now: Reading, first: u64, elapsed: Duration) -> String {
    let mut parts = vec![clock(elapsed)];
    let rate = now.done().saturating_sub(first) as f64 / elapsed.as_secs_f64().max(0.001);
    if rate >= 1.0 && elapsed >= GUESS_AFTER {
        parts.push(format!("{} per second", HumanCount(rate as u64)));
        let left = meter.total.saturating_sub(now.done()) as f64 / rate;
        parts.push(format!("about {} left", clock(Duration::from_secs_f64(left))));
    }
    if meter.resumed {
        parts.push(format!("resumed at {}", HumanCount(first)));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::meter::tests::meter;
    use super::*;

    #[test]
    fn templates_are_right() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
        assert!(ProgressStyle::with_template(TEXT).is_ok());
    }

    #[test]
    fn every_line_fits_a_narrow_terminal() {
        let mut meter = meter(&[(fanfold::metrics::ITEMS_ACKED, 9_000)]);
        (meter.resumed, meter.acked_before) = (true, 1_000);
        let now = Reading {
            registered: 42_049,
            duplicates: 0,
            batched: 42_049,
            handled: 10_000,
            failed: 1_039,
            acked: 1_000,
            batches: 1_279,
            retries: 1_062,
        };
        let pace = pace_of(&meter, now, 1_000, Duration::from_secs(75));
        assert_eq!(pace, "1:15, 120 per second, about 1:23 left, resumed at 1,000");
        assert!(pace.len() <= 60 && work(now).len() <= 60, "{}", work(now));
    }
}
