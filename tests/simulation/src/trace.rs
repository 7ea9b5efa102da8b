//! What happened, line by line, in a form that is the same on every run of a seed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use tokio::time::Instant;

use crate::lock;

/// The lines of a run.
#[derive(Debug)]
pub(crate) struct Trace {
    start: Instant,
    lines: Mutex<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(start: Instant) -> Self {
        Self { start, lines: Mutex::default() }
    }

    /// Adds a line: who, and what.
    pub(crate) fn line(&self, who: &str, what: &str) {
        let at = self.start.elapsed().as_millis();
        let line = format!("{:>6}.{:03}s {who:<14} {}", at / 1_000, at % 1_000, shorten(what));
        lock(&self.lines).push(line);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.lines))
    }
}

/// A number that two equal traces share.
pub fn digest(lines: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    lines.hash(&mut hasher);
    hasher.finish()
}

/// Writes UUIDs by their last six digits, and no line longer than a screen's width or so.
pub(crate) fn shorten(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut short = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() && short.len() < 400 {
        if is_uuid(&bytes[at..]) {
            short.push('~');
            short.push_str(&text[at + 30..at + 36]);
            at += 36;
        } else {
            let Some(next) = text[at..].chars().next() else { break };
            short.push(next);
            at += next.len_utf8();
        }
    }
    short
}

fn is_uuid(bytes: &[u8]) -> bool {
    let hyphen = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(|(at, byte)| {
            if hyphen(at) { *byte == b'-' } else { byte.is_ascii_digit() || (b'a'..=b'f').contains(byte) }
        })
}
