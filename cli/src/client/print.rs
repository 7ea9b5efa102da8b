//! Standard output.

use std::io::{ErrorKind, Write};

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use crate::failure::Failure;

/// Prints some lines. Returns whether the output is still read.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    // Takes the colours out where they are not wanted.
    let mut out = anstream::AutoStream::auto(std::io::stdout()).lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::io("standard output", error)),
    }
}

/// How good something is, which has a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Middling,
    Bad,
    Head,
}

impl Tone {
    /// The tone of a state or an outcome, if it is one.
    fn of(word: &str) -> Option<Self> {
        match word {
            "completed" | "succeeded" | "done" => Some(Self::Good),
            "paused" | "drains" | "draining" | "missing" | "retry" => Some(Self::Middling),
            "failed" | "cancelled" | "expired" | "dropped" => Some(Self::Bad),
            _ => None,
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Good => AnsiColor::Green.on_default(),
            Self::Middling => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Head => Style::new().bold(),
        }
    }
}

/// A text in the colour of a tone; [`print`] takes colours out where they are not wanted.
pub(super) fn paint(text: &str, tone: Tone) -> String {
    let style = tone.style();
    format!("{style}{text}{style:#}")
}

/// A state in its colour.
pub(super) fn state(word: &str) -> String {
    Tone::of(word).map_or_else(|| word.to_owned(), |tone| paint(word, tone))
}

/// Texts of several records, with an empty line between them.
pub(super) fn paragraphs(records: &[Value], text: impl Fn(&Value) -> String) -> String {
    records.iter().map(text).collect::<Vec<_>>().join("\n\n")
}

/// Lays out rows under their heads, in columns as wide as needed. A column whose head begins with a space is aligned right.
pub(super) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].trim_start().chars().count()]).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N], tone: fn(&str) -> Option<Tone>| {
        let padded = cells.into_iter().zip(heads).zip(widths).enumerate().map(|(column, ((cell, head), width))| {
            let right = head.starts_with(' ');
            let last = column + 1 == N && !right;
            let width = if last { 0 } else { width };
            let text = if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
            tone(cell).map_or_else(|| text.clone(), |tone| paint(&text, tone))
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str), Tone::of));
    let head = line(heads.map(str::trim_start), |_| Some(Tone::Head));
    std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_they_must_be() {
        let rows = [
            ["a".to_owned(), "1".to_owned(), "x".to_owned()],
            ["größer".to_owned(), "1,000".to_owned(), String::new()],
        ];
        let plain = |text: String| anstream::adapter::strip_str(&text).to_string();
        assert_eq!(plain(table(["ID", " DONE", "KEY"], &rows)), "ID       DONE  KEY\na           1  x\ngrößer  1,000");
        assert_eq!(plain(table(["ID", " DONE"], &[])), "ID  DONE");
    }

    #[test]
    fn states_have_colours_that_take_no_room() {
        let rows =
            [["a".to_owned(), "failed".to_owned(), "1".to_owned()], ["b".to_owned(), "x".to_owned(), "2".to_owned()]];
        let text = table(["ID", "STATE", " N"], &rows);
        assert!(text.contains("\u{1b}[31mfailed\u{1b}[0m") && !text.contains("mx"), "{text:?}");
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), "ID  STATE   N\na   failed  1\nb   x       2");
    }
}
