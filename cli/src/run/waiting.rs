//! Shows what is waited for: a spinner in a terminal, a line now and then elsewhere.

use std::cell::Cell;
use std::time::Duration;

use indicatif::ProgressBar;
use tokio::time::Instant;

use super::progress::{How, LINE, TICK};
use crate::say::say;

/// What is waited for is shown until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    spinner: Option<ProgressBar>,
    lines: bool,
    last: Cell<Instant>,
}

impl Waiting {
    pub(super) fn begin(message: &str, how: How) -> Self {
        let spinner = (how == How::Bars).then(|| {
            let spinner = ProgressBar::new_spinner().with_message(message.to_owned());
            spinner.enable_steady_tick(TICK);
            spinner
        });
        Self { spinner, lines: how == How::Lines, last: Cell::new(Instant::now()) }
    }

    /// Shows the progress.
    pub(super) fn show(&self, message: &str) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(message.to_owned());
        } else if self.lines && self.last.get().elapsed() >= LINE {
            self.last.set(Instant::now());
            say(message);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

/// How long something has been going on, as a clock shows it.
pub(super) fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}
