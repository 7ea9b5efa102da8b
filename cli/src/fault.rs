//! What the user gave that cannot be used. A fault that many rows share is shown once.

use std::fmt;
use std::path::Path;

use indicatif::HumanCount;

use crate::failure::Failure;

/// Different faults that are shown; there may be one per row.
const SHOWN: usize = 10;

/// Rows named of those that share a fault.
const NAMED: usize = 5;

/// Something the user gave that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    place: String,
    at: Option<At>,
    problem: String,
}

/// A place in a file of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    line: u64,
    column: Option<usize>,
}

impl Fault {
    /// A fault at a place: a file or a folder, perhaps with line and column. `problem` says what is allowed.
    pub(crate) fn new(place: impl fmt::Display, problem: impl fmt::Display) -> Self {
        Self { place: place.to_string(), at: None, problem: problem.to_string() }
    }

    /// A fault of one of many rows.
    pub(crate) fn row(file: &Path, line: u64, problem: impl fmt::Display) -> Self {
        Self { at: Some(At { line, column: None }), ..Self::new(file.display(), problem) }
    }

    /// The line, if it is a fault of a row, and the problem.
    pub(crate) fn of_row(&self) -> (Option<u64>, &str) {
        (self.at.map(|at| at.line), &self.problem)
    }

    /// The same, at a column of its line.
    pub(crate) fn column(self, column: usize) -> Self {
        Self { at: self.at.map(|at| At { column: Some(column), ..at }), ..self }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        if let Some(At { line, column }) = self.at {
            write!(f, ":{line}")?;
            if let Some(column) = column {
                write!(f, ":{column}")?;
            }
        }
        write!(f, ": {}", self.problem)
    }
}

/// Faults, of which only the first are kept.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    shown: Vec<Shared>,
    more: u64,
}

/// A fault and the rows that share it.
#[derive(Debug)]
struct Shared {
    first: Fault,
    count: u64,
    lines: Vec<u64>,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        let line = fault.at.map(|at| at.line);
        let same = |shared: &&mut Shared| {
            line.is_some() && shared.first.problem == fault.problem && shared.first.place == fault.place
        };
        if let Some(shared) = self.shown.iter_mut().find(same) {
            shared.count += 1;
            shared.lines.extend(line.filter(|_| shared.lines.len() < NAMED));
        } else if self.shown.len() < SHOWN {
            self.shown.push(Shared { first: fault, count: 1, lines: line.into_iter().collect() });
        } else {
            self.more += 1;
        }
    }

    /// The faults, each as it is shown.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.to_string().lines().map(str::to_owned).collect()
    }

    pub(crate) fn check(self) -> Result<(), Failure> {
        if self.shown.is_empty() { Ok(()) } else { Err(Failure::Unusable(self)) }
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        if self.count > 1 {
            let lines: Vec<String> = self.lines.iter().map(ToString::to_string).collect();
            let more = if self.count > self.lines.len() as u64 { ", …" } else { "" };
            write!(f, " ({} rows: lines {}{more})", HumanCount(self.count), lines.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, shared) in self.shown.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            shared.fmt(f)?;
        }
        if self.more > 0 { write!(f, "\n… and {} more problems", HumanCount(self.more)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_rows_share_is_shown_once() {
        let file = Path::new("r.csv");
        let mut faults = Faults::default();
        for line in 2..1_002 {
            faults.add(Fault::row(file, line, "has no shop"));
        }
        faults.add(Fault::row(file, 7, "is not JSON").column(3));
        assert_eq!(
            faults.to_string(),
            "r.csv:2: has no shop (1,000 rows: lines 2, 3, 4, 5, 6, …)\nr.csv:7:3: is not JSON"
        );
    }

    #[test]
    fn only_the_first_of_different_faults_are_shown() {
        let mut faults = Faults::default();
        for line in 0..25 {
            faults.add(Fault::row(Path::new("r.csv"), line, line));
        }
        let text = faults.to_string();
        assert_eq!(text.lines().count(), SHOWN + 1);
        assert!(text.ends_with("… and 15 more problems"), "{text}");
    }
}
