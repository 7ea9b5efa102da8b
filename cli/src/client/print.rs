//! Standard output.

use std::io::{ErrorKind, Write};

use serde_json::Value;

use crate::failure::Failure;

/// Prints some lines. Returns whether the output is still read.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::io("standard output", error)),
    }
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
    let line = |cells: [&str; N]| {
        let mut line = String::new();
        for ((cell, head), width) in cells.into_iter().zip(heads).zip(widths) {
            let right = head.starts_with(' ');
            line.push_str(&if right { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") });
        }
        line.trim_end().to_owned()
    };
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(heads.map(str::trim_start))).chain(rows).collect::<Vec<_>>().join("\n")
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
        assert_eq!(table(["ID", " DONE", "KEY"], &rows), "ID       DONE  KEY\na           1  x\ngrößer  1,000");
        assert_eq!(table(["ID", " DONE"], &[]), "ID  DONE");
    }
}
