//! Lines for people, on standard error. A reader that is gone is no error, and ends nothing.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::MultiProgress;

/// The bars at the bottom of the terminal: lines are written above them.
static BARS: Mutex<Option<MultiProgress>> = Mutex::new(None);

/// Writes a line to standard error, as well as that is possible.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(Above, "{line}");
}

/// From now on lines are written above these bars, or above none.
pub(crate) fn stay_above(bars: Option<MultiProgress>) {
    *BARS.lock().unwrap_or_else(PoisonError::into_inner) = bars;
}

/// Standard error, above the bars if there are any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above;

impl Write for Above {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &*BARS.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(bars) => bars.println(String::from_utf8_lossy(bytes).trim_end()),
            None => io::stderr().write_all(bytes),
        }
    }

    fn write_fmt(&mut self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.write_all(text.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Asks a person at the terminal. Only a `y` or `yes` is one.
pub(crate) fn ask(question: impl Display) -> bool {
    let (mut err, mut answer) = (io::stderr(), String::new());
    let asked = write!(err, "{question} [y/N] ").and_then(|()| err.flush());
    let answered = asked.and_then(|()| io::stdin().read_line(&mut answer));
    answered.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

/// Whether a person may look at standard error in a terminal that can do more than print lines.
pub(crate) fn on_terminal() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether standard error gets colours: in a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
pub(crate) fn colours() -> bool {
    on_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
