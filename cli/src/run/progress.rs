//! Shows how far a run has come, on standard error.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fanfold::metrics::{BATCHES_DISPATCHED, ITEMS_ACKED, MEMBERS_FAILED, MEMBERS_SUCCEEDED, RETRIES, TASKS_BATCHED};
use indicatif::{HumanCount, HumanDuration, MultiProgress, ProgressBar, ProgressStyle};
use tokio::time::Instant;

use super::tally::Tally;
use crate::counters::Counters;

/// Between two looks at the counters.
const TICK: Duration = Duration::from_millis(100);
/// Between two lines where there is no terminal.
const LINE: Duration = Duration::from_secs(5);

/// What earlier processes did of the run, and what counts what this one does.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) counters: Counters,
    pub(crate) registered: Arc<AtomicU64>,
    pub(crate) before: Tally,
    pub(crate) acked_before: u64,
    pub(crate) total: u64,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
struct Standing {
    registered: u64,
    batched: u64,
    handled: u64,
    acked: u64,
    batches: u64,
    retries: u64,
}

impl Meter {
    fn standing(&self) -> Standing {
        let counted = |name| self.counters.get(name);
        Standing {
            registered: self.registered.load(Ordering::Relaxed),
            batched: self.before.members + counted(TASKS_BATCHED),
            handled: self.before.settled + counted(MEMBERS_SUCCEEDED) + counted(MEMBERS_FAILED),
            acked: self.acked_before + counted(ITEMS_ACKED),
            batches: self.before.batches + counted(BATCHES_DISPATCHED),
            retries: self.before.calls.saturating_sub(self.before.batches) + counted(RETRIES),
        }
    }
}

/// Shows progress until it is dropped.
pub(crate) async fn show(meter: &Meter) {
    if std::io::stderr().is_terminal() { bars(meter).await } else { lines(meter).await }
}

async fn bars(meter: &Meter) {
    let all = MultiProgress::new();
    // Both templates are constants, and tried by a test.
    let style = |template| ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = |name: &'static str| {
        let bar = all.add(ProgressBar::new(meter.total).with_style(style(BAR)));
        bar.set_prefix(name);
        bar
    };
    let [registered, batched, handled, acked] = ["registered", "batched", "handled", "acked"].map(bar);
    let status = all.add(ProgressBar::no_length().with_style(style("{msg}")));
    let began = Instant::now();
    let first = meter.standing().acked;
    loop {
        let now = meter.standing();
        registered.set_position(now.registered);
        batched.set_position(now.batched);
        handled.set_position(now.handled);
        acked.set_position(now.acked);
        status.set_message(details(meter, now, first, began.elapsed()));
        tokio::time::sleep(TICK).await;
    }
}

const BAR: &str = "{prefix:>10} {wide_bar} {human_pos:>9} of {human_len}";

async fn lines(meter: &Meter) {
    let began = Instant::now();
    let first = meter.standing().acked;
    loop {
        tokio::time::sleep(LINE).await;
        let now = meter.standing();
        let [registered, batched, handled, acked] =
            [now.registered, now.batched, now.handled, now.acked].map(HumanCount);
        let details = details(meter, now, first, began.elapsed());
        let total = HumanCount(meter.total);
        eprintln!("registered {registered}, batched {batched}, handled {handled}, acked {acked} of {total}; {details}");
    }
}

/// Batches, retries, rate, time left.
fn details(meter: &Meter, now: Standing, first: u64, elapsed: Duration) -> String {
    let mut parts = vec![format!("{} batches", HumanCount(now.batches))];
    if now.batches > 0 {
        parts.push(format!("{:.1} tasks a batch", now.batched as f64 / now.batches as f64));
    }
    parts.push(format!("{} retries", HumanCount(now.retries)));
    let rate = now.acked.saturating_sub(first) as f64 / elapsed.as_secs_f64().max(0.001);
    if rate >= 1.0 {
        parts.push(format!("{} acked a second", HumanCount(rate as u64)));
        let left = meter.total.saturating_sub(now.acked) as f64 / rate;
        parts.push(format!("{} left", HumanDuration(Duration::from_secs_f64(left))));
    }
    parts.join(", ")
}

/// Bars stay on the screen as they are; this puts the cursor behind them, and shows something while nothing else does.
pub(crate) fn spinner(message: &str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    spinner.set_message(message.to_owned());
    spinner.enable_steady_tick(TICK);
    spinner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_right() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }
}
