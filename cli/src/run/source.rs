//! The file of a run as the source of its fan-out's producer, and the step that reads it.

use std::sync::Arc;
use std::time::Duration;

use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::messages::ProduceMessage;
use fanfold::producing::{Given, Position, RunRows};
use fanfold_produce::{Produce, ProduceError, SourceAnswer, SourceError, SourceRequest};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::meter::Meter;
use crate::failure::Failure;
use crate::pages::Pages;
use crate::rows::{Input, Version};

/// Registered tasks without an outcome from which on the next ones wait: what waits is named by messages, which are kept in memory.
const AHEAD_MAX: u64 = 400_000;

/// How long they wait at most: where nothing is handled, nothing is lost by registering slowly.
const AHEAD_WAIT: Duration = Duration::from_secs(5);

/// Between two looks at that.
const LOOK: Duration = Duration::from_millis(20);

/// The file of a run.
#[derive(Debug)]
pub(crate) struct FileRows {
    pub(super) input: Input,
    /// The version of which the pages are.
    pub(super) version: Version,
    pub(super) pages: Arc<Pages>,
    pub(super) meter: Arc<Meter>,
    /// What it is called in the producer.
    pub(super) rows: RunRows,
}

impl FileRows {
    /// A page of it; its cursor is the page's number.
    pub(crate) async fn ask(&self, rows: &RunRows, ask: &SourceRequest) -> Result<SourceAnswer, SourceError> {
        if *rows != self.rows || ask.of != self.pages.partitions() {
            return Err(SourceError::for_good("the rows are those of another run"));
        }
        let number = match ask.cursor.is_null() {
            true => match self.pages.first(ask.partition) {
                Some(number) => Some(number),
                None => return Ok(SourceAnswer::default()),
            },
            false => ask.cursor.as_u64().and_then(|number| usize::try_from(number).ok()),
        };
        let Some((number, page)) = number.and_then(|number| Some((number, self.pages.get(number)?))) else {
            return Err(SourceError::for_good(format!("there is no page {}", ask.cursor)));
        };
        self.keep_behind().await;
        let (input, version, kind) = (self.input.clone(), self.version, Arc::<str>::from(rows.kind.as_str()));
        let read = move || -> Result<Vec<Given>, Failure> {
            let unchanged = || input.check_version(version);
            unchanged()?;
            let given = input.rows_from(page.begin)?.take(page.rows as usize).map(|row| {
                let row = row?;
                let at = Some(Position { object: None, line: Some(row.line), byte: row.begin.byte });
                Ok(Given { kind: Some(Arc::clone(&kind)), row: Ok(row.content), at })
            });
            let given: Result<Vec<Given>, Failure> = given.collect();
            // What is wrong with it is no more than that it was changed.
            unchanged()?;
            match given {
                Ok(rows) if rows.len() != page.rows as usize => Err(Failure::Internal("rows are missing".to_owned())),
                given => given,
            }
        };
        // Whatever it is, a user is here and sees it.
        let read = tokio::task::spawn_blocking(read).await.map_err(SourceError::for_good)?;
        let rows = read.map_err(SourceError::for_good)?;
        Ok(SourceAnswer { rows, cursor: self.pages.after(number).map(|next| json!(next)) })
    }

    /// Waits while far more tasks are registered than handled.
    async fn keep_behind(&self) {
        let until = Instant::now() + AHEAD_WAIT;
        while self.meter.ahead() >= AHEAD_MAX && Instant::now() < until {
            sleep(LOOK).await;
        }
    }
}

/// What became of the moves in which the step moves the run's partitions on. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Moves(watch::Sender<Move>);

/// The last move that ended.
#[derive(Debug, Default)]
pub(super) struct Move {
    /// Why the partition could not be moved on.
    pub(super) broken: Option<String>,
}

impl Moves {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::default())
    }

    /// Changes at the end of each move.
    pub(super) fn ends(&self) -> watch::Receiver<Move> {
        self.0.subscribe()
    }

    /// One ended. That one was broken is not forgotten when the next one ends.
    fn end(&self, result: Result<(), ProduceError>) {
        self.0.send_modify(|last| last.broken = last.broken.take().or(result.err().map(|error| error.to_string())));
    }
}

/// The step `produce`. If the run's own partitions cannot be moved on the run ends, in place of waiting until the message comes
/// again.
pub(crate) struct EndsRun {
    produce: Arc<Produce>,
    fanout: Uuid,
    moves: Moves,
}

impl EndsRun {
    pub(crate) fn new(produce: Arc<Produce>, fanout: Uuid, moves: Moves) -> Self {
        Self { produce, fanout, moves }
    }
}

impl Step for EndsRun {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<ProduceMessage>(deliveries);
            for (delivery, message) in messages {
                let result = self.produce.move_on(message).await;
                if let Err(error) = &result {
                    tracing::error!(%error, ?message, "a partition could not be moved on");
                    failures.push(delivery.message_id);
                }
                if message.fanout == self.fanout {
                    self.moves.end(result);
                }
            }
            failures
        }
        .boxed()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::super::meter::tests::meter;
    use super::*;
    use crate::rows::Row;

    /// Large enough for pages of a hundred rows or less.
    fn row(n: usize) -> Value {
        json!({"n": n, "pad": "x".repeat(100_000)})
    }

    fn file(folder: &std::path::Path, rows: usize) -> FileRows {
        let path = folder.join("rows.ndjson");
        std::fs::write(&path, (0..rows).map(|n| format!("{}\n", row(n))).collect::<String>()).unwrap();
        let input = Input::new(path, None).unwrap();
        let mut pages = Pages::default();
        for row in input.rows().unwrap() {
            let row: Row = row.unwrap();
            pages.add(&row, row.content.to_string().len());
        }
        FileRows {
            version: input.version().unwrap(),
            input,
            pages: Arc::new(pages),
            meter: Arc::new(meter(&[])),
            rows: Pages::source("row", Uuid::nil()),
        }
    }

    async fn ask(file: &FileRows, partition: u32, cursor: Value) -> Result<SourceAnswer, SourceError> {
        file.ask(&file.rows, &SourceRequest { fanout: Uuid::nil(), partition, of: file.pages.partitions(), cursor })
            .await
    }

    #[tokio::test]
    async fn the_pages_of_all_partitions_are_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), 300);
        let mut found = Vec::new();
        for partition in 0..file.pages.partitions() {
            let (mut cursor, mut pages) = (Some(Value::Null), 0);
            while let Some(from) = cursor {
                let page = ask(&file, partition, from.clone()).await.unwrap();
                assert_eq!(ask(&file, partition, from).await.unwrap(), page);
                (cursor, pages) = (page.cursor, pages + 1);
                found.extend(page.rows.into_iter().map(|given| (given.at.unwrap().line.unwrap(), given.row.unwrap())));
            }
            assert_eq!(pages, 2);
        }
        found.sort_by_key(|(line, _)| *line);
        let all: Vec<(u64, Value)> = (0..300).map(|n| (n as u64 + 1, row(n))).collect();
        assert!(found == all);
    }

    #[tokio::test]
    async fn a_file_that_changes_or_is_that_of_another_run_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path(), 3);
        let ask_first = SourceRequest { fanout: Uuid::nil(), partition: 0, of: 1, cursor: Value::Null };
        let error = file.ask(&Pages::source("row", Uuid::max()), &ask_first).await.unwrap_err();
        assert!(error.for_good && error.message.contains("another run"), "{error}");
        let otherwise = SourceRequest { of: 2, ..ask_first.clone() };
        let error = file.ask(&file.rows, &otherwise).await.unwrap_err();
        assert!(error.for_good && error.message.contains("another run"), "{error}");
        for beyond in [json!(1), json!("0"), json!(-1)] {
            let error = ask(&file, 0, beyond.clone()).await.unwrap_err();
            assert!(error.for_good && error.message.ends_with(&format!("no page {beyond}")), "{error}");
        }
        std::fs::write(&file.input.file, "1\n").unwrap();
        let error = ask(&file, 0, Value::Null).await.unwrap_err();
        assert!(error.for_good && error.message.ends_with("rows.ndjson: was changed while it was read"), "{error}");
    }
}
