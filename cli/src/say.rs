//! Lines for people, on standard error. Whoever stopped listening is no error, and ends nothing.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Writes a line to standard error, as well as that is possible.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether a person may look at standard error in a terminal that can do more than print lines.
pub(crate) fn on_terminal() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether colours are wanted on standard error: in a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
pub(crate) fn colours() -> bool {
    on_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
