//! A page as a source answers it: which of its rows belong to this partition, and which are not tasks.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::Producer;
use crate::content;
use crate::json::shape;
use crate::limits::{BAD_ROW_BYTES_MAX, BAD_ROWS_SHOWN_MAX, OBJECT_BYTES_SHOWN};
use crate::messages::TaskRequest;
use crate::policy::{CompiledPolicy, Expression, ExpressionError, Subject, is_kind, unknown_kind};
use crate::share::share;
use crate::text::shorten;

/// A row as a source gives it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    kind: String,
    content: Value,
}

/// Where a row stands in what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The object, where a source has several.
    pub object: Option<Arc<str>>,
    /// The number of its line, from 1, if it is known: whoever begins in the middle of an object counts no lines.
    pub line: Option<u64>,
    /// How many bytes of the object, decompressed, are before it.
    pub byte: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(object) = &self.object {
            write!(f, "{}, ", shorten(object, OBJECT_BYTES_SHOWN))?;
        }
        match self.line {
            Some(line) => write!(f, "line {line}"),
            None => write!(f, "the line at byte {}", self.byte),
        }
    }
}

/// A row as a source gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// The kind of the task, if the row is only its content.
    pub kind: Option<Arc<str>>,
    /// The row, or what is wrong with it if it cannot be read.
    pub row: Result<Value, String>,
    /// Where it stands, if its source is read by lines.
    pub at: Option<Position>,
}

impl From<Value> for Given {
    fn from(row: Value) -> Self {
        Self { kind: None, row: Ok(row), at: None }
    }
}

impl Given {
    /// The kind that it names, so that its policy can be looked up.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        let kind = match &self.kind {
            Some(kind) => kind,
            None => self.row.as_ref().ok()?.get("kind")?.as_str()?,
        };
        is_kind(kind).then_some(kind)
    }

    /// The row as a task, as far as that depends on it alone, and its position.
    fn task(self) -> (Result<Row, String>, Option<Position>) {
        let row = match (self.row, self.kind) {
            (Ok(content), Some(kind)) => Ok(Row { kind: (*kind).to_owned(), content }),
            (Ok(row), None) => shape(row).map_err(|error| error.to_string()),
            (Err(problem), _) => Err(problem),
        };
        (row, self.at)
    }
}

/// The result of sifting a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sifted {
    /// The tasks of this partition, without ids.
    pub tasks: Vec<TaskRequest>,
    /// Rows of the page.
    pub rows: u64,
    /// Those of other shares.
    pub dropped: u64,
    /// Rows that cannot be accepted as tasks.
    pub bad: u64,
    /// What is wrong with the first few of these.
    pub bad_rows: Vec<BadRow>,
}

/// A row that is not an acceptable task.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct BadRow {
    /// Its position among all rows that the source gave this partition, from 0.
    pub row: u64,
    /// What is wrong with it.
    pub problem: String,
}

impl BadRow {
    /// A row by its number, and its position in a file if it has one.
    fn new(row: u64, at: Option<&Position>, problem: &str) -> Self {
        let problem = at.map_or_else(|| problem.to_owned(), |at| format!("{at}: {problem}"));
        Self { row, problem: shorten(&problem, BAD_ROW_BYTES_MAX).into_owned() }
    }
}

/// A page of which no row may be left out.
#[derive(Clone, Debug, Default)]
pub struct Whole {
    /// Its rows as tasks, without ids. Their policies were not looked at.
    pub tasks: Vec<TaskRequest>,
    /// Where they stand.
    positions: Vec<Option<Position>>,
    /// Rows that the partition had before.
    before: u64,
}

impl Whole {
    /// Takes the rows of a partition that had so many before.
    ///
    /// # Errors
    /// Some cannot be tasks, whatever the policies are: the first of them.
    pub fn new(rows: Vec<Given>, before: u64) -> Result<Self, Vec<BadRow>> {
        let (mut tasks, mut positions) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let mut bad = Vec::new();
        for (at, given) in rows.into_iter().enumerate() {
            match given.task() {
                (Ok(Row { kind, content }), position) => {
                    tasks.push(TaskRequest { id: None, kind, content });
                    positions.push(position);
                }
                (Err(problem), position) => bad.push(BadRow::new(before + at as u64, position.as_ref(), &problem)),
            }
            if bad.len() == BAD_ROWS_SHOWN_MAX {
                break;
            }
        }
        if bad.is_empty() { Ok(Self { tasks, positions, before }) } else { Err(bad) }
    }

    /// What is wrong with the task at a position of the page.
    #[must_use]
    pub fn bad_row(&self, at: usize, problem: &str) -> BadRow {
        BadRow::new(self.before + at as u64, self.positions.get(at).and_then(Option::as_ref), problem)
    }
}

/// Sifts the rows of one partition.
#[derive(Debug)]
pub struct Sieve {
    /// The partition.
    partition: u32,
    of: u32,
    /// Whether the source gives each partition its own rows, whatever their keys are.
    own: bool,
    key: Option<Expression>,
    /// Rows that the partition had before.
    before: u64,
}

impl Sieve {
    /// Of a partition, after so many rows.
    ///
    /// # Errors
    /// The producer's key is no expression.
    pub fn new(producer: &Producer, partition: u32, before: u64) -> Result<Self, ExpressionError> {
        let key = producer.key.as_deref().map(Expression::compile).transpose()?;
        Ok(Self { partition, of: producer.partitions, own: producer.source.gives_own_rows(), key, before })
    }

    /// Sifts rows. `policy`: the policy of a kind. `taken` is told which of the rows, by their positions, become tasks.
    pub fn sift<'p>(
        &self,
        rows: impl IntoIterator<Item = impl Into<Given>>,
        policy: impl Fn(&str) -> Option<&'p CompiledPolicy>,
        mut taken: impl FnMut(usize),
    ) -> Sifted {
        let mut sifted = Sifted::default();
        for (position, given) in rows.into_iter().enumerate() {
            let (row, at) = given.into().task();
            match row.and_then(|row| self.task(row, &policy)) {
                Ok((task, true)) => {
                    sifted.tasks.push(task);
                    taken(position);
                }
                Ok((_, false)) => sifted.dropped += 1,
                Err(problem) => {
                    if sifted.bad_rows.len() < BAD_ROWS_SHOWN_MAX {
                        sifted.bad_rows.push(BadRow::new(self.before + sifted.rows, at.as_ref(), &problem));
                    }
                    sifted.bad += 1;
                }
            }
            sifted.rows += 1;
        }
        sifted
    }

    /// The task of a row, and whether it belongs to this partition. A row without a key does: its source is trusted.
    fn task<'p>(
        &self,
        Row { kind, content }: Row,
        policy: impl Fn(&str) -> Option<&'p CompiledPolicy>,
    ) -> Result<(TaskRequest, bool), String> {
        let policy = policy(&kind).ok_or_else(|| format!("`kind`: {}", unknown_kind(&kind)))?;
        content::encode(&content).map_err(|error| format!("`content`: {error}"))?;
        let assignment = policy.assign(&content, "").map_err(|(field, error)| format!("`{field}`: {error}"))?;
        let key = match &self.key {
            Some(key) => {
                let subject = Subject::new(&kind, &content).map_err(|error| format!("`content`: {error}"))?;
                Some(key.evaluate(&subject).map_err(|error| format!("`producer.key`: {error}"))?)
            }
            None => assignment.key,
        };
        let ours = self.own || key.is_none_or(|key| share(&key, self.of) == self.partition);
        Ok((TaskRequest { id: None, kind, content }, ours))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
