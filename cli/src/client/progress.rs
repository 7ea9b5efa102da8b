//! How far work on many fan-outs or tasks is, on standard error.

use std::pin::pin;

use futures::{Stream, TryStreamExt};
use indicatif::ProgressBar;

use crate::failure::Failure;
use crate::say::{on_terminal, say};

/// In a terminal a line that changes and goes away at the end; elsewhere a line per step.
#[derive(Debug)]
pub(super) struct Progress {
    line: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { line: on_terminal().then(ProgressBar::new_spinner) }
    }

    /// A step is done, such as a page.
    pub(super) fn step(&self, text: impl FnOnce() -> String) {
        match &self.line {
            Some(line) => show(line, text()),
            None => say(text()),
        }
    }

    /// Something within a step is done.
    pub(super) fn changes(&self, text: impl FnOnce() -> String) {
        if let Some(line) = &self.line {
            show(line, text());
        }
    }

    /// Everything is done.
    pub(super) fn end(&self) {
        self.line.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// Adds pages up, and shows after each of them what there is so far; not after the last, whose sum is the result.
pub(super) async fn in_pages<T>(
    pages: impl Stream<Item = Result<T, Failure>>,
    mut sum: T,
    add: impl Fn(T, T) -> T,
    text: impl Fn(&T) -> String,
) -> Result<T, Failure> {
    let (mut pages, progress, mut first) = (pin!(pages), Progress::new(), true);
    while let Some(page) = pages.try_next().await? {
        if !std::mem::take(&mut first) {
            progress.step(|| text(&sum));
        }
        sum = add(sum, page);
    }
    progress.end();
    Ok(sum)
}

fn show(line: &ProgressBar, text: String) {
    line.set_message(text);
    line.tick();
}
