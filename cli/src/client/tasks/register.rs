//! `fanfold tasks register`.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use fanfold::clock::World;
use fanfold_client::Streamed;
use indicatif::HumanCount;
use serde::Serialize;
use serde_json::{Value, json};

use super::super::connection::Connection;
use super::super::print::print;
use super::rows::Requests;
use crate::failure::Failure;
use crate::fault::Fault;
use crate::rows::{Format, stream};
use crate::say::say;

/// Attempts per request: enough for a stack that is restarted meanwhile, which takes seconds.
const ATTEMPTS: u32 = 8;

/// Exit status: some rows cannot be accepted.
const BAD_ROWS: u8 = 3;

/// Registers tasks: those of a file, or of standard input, however many.
///
/// A line of NDJSON is a task: {"kind": "parcel", "content": {…}}, and perhaps its
/// "id". With --kind, a line, or a row of CSV, is the content of a task of that
/// kind. Rows are sent in requests of at most 1,000. A row that cannot be accepted
/// is shown by its line, and the others are registered. The exit status is
///
///   0   all rows are registered, or were registered before
///   1   the stack cannot be reached, or another error: repeat it under the same key
///   2   something on the command line cannot be used, or the stack refuses a whole request
///   3   some rows cannot be accepted; all others are registered
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct RegisterArgs {
    /// The file: *.ndjson, *.jsonl or *.csv; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The kind of all tasks: rows are their contents.
    #[arg(long, value_name = "KIND", value_parser = super::super::policy::kind)]
    kind: Option<String>,
    /// The format of the rows. Default: by the file's extension; NDJSON for standard input.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Under the same key, a row with the same content at the same place is registered once, however often the command is
    /// repeated: rows that were added to the file or corrected in it are registered then.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Print the outcome of every row, not only of those that cannot be accepted.
    #[arg(long)]
    each: bool,
    #[command(flatten)]
    connection: Connection,
}

/// The outcomes of all rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Summary {
    /// Stored.
    registered: u64,
    /// Stored before, under the same key or id.
    known: u64,
    /// Duplicates: other tasks have their keys.
    duplicates: u64,
    /// Not accepted.
    refused: u64,
}

impl Summary {
    fn count(&mut self, outcome: &Streamed) {
        let count = match outcome {
            Streamed::Registered { .. } => &mut self.registered,
            Streamed::Known { .. } => &mut self.known,
            Streamed::Duplicate { .. } => &mut self.duplicates,
            _ => &mut self.refused,
        };
        *count += 1;
    }

    fn text(&self) -> String {
        let row = |name: &str, count: u64| format!("{name:<12}{:>11}", HumanCount(count).to_string());
        let rows = [
            ("registered", self.registered),
            ("known", self.known),
            ("duplicates", self.duplicates),
            ("refused", self.refused),
        ];
        let shown = rows.into_iter().filter(|(name, count)| *name == "registered" || *count > 0);
        shown.map(|(name, count)| row(name, count)).collect::<Vec<_>>().join("\n")
    }
}

/// Prints the outcomes of rows.
struct Report {
    name: String,
    json: bool,
    each: bool,
    summary: Summary,
}

impl Report {
    fn row(&mut self, line: u64, outcome: &Streamed) -> Result<(), Failure> {
        self.summary.count(outcome);
        let refused = matches!(outcome, Streamed::Refused { .. });
        if !refused && !self.each {
            return Ok(());
        }
        if self.json {
            let mut document = json!({ "line": line });
            if let (Value::Object(all), Value::Object(own)) = (&mut document, json!(outcome)) {
                all.extend(own);
            }
            return print(&document.to_string()).map(drop);
        }
        match outcome {
            Streamed::Registered { id } => print(&format!("{line} {id} registered")).map(drop),
            Streamed::Known { id } => print(&format!("{line} {id} known")).map(drop),
            Streamed::Duplicate { id, of } => print(&format!("{line} {id} duplicate of {of}")).map(drop),
            Streamed::Refused { field: Some(field), problem, .. } => {
                say(format_args!("{}:{line}: `{field}`: {problem}", self.name));
                Ok(())
            }
            Streamed::Refused { problem, .. } => {
                say(format_args!("{}:{line}: {problem}", self.name));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end(&self) -> Result<(), Failure> {
        let text = if self.json { json!({"summary": self.summary}).to_string() } else { self.summary.text() };
        print(&text).map(drop)
    }
}

pub(super) async fn run(args: RegisterArgs) -> Result<ExitCode, Failure> {
    let RegisterArgs { file, kind, format, idempotency_key, each, connection } = args;
    let (name, format, input) = open(file, format)?;
    if format == Format::Csv && kind.is_none() {
        return Err(
            Fault::new("--kind", "is missing: rows of CSV are contents of tasks, and it names their kind").into()
        );
    }
    let json = connection.json();
    let stack = connection.patient(ATTEMPTS)?;
    let key = idempotency_key.clone().unwrap_or_else(new_key);
    let mut report = Report { name: name.display().to_string(), json, each, summary: Summary::default() };
    for request in Requests::new(stream(&name, format, input)?, kind, key.clone()) {
        let mut outcomes = request.bad;
        if !request.tasks.is_empty() {
            // Ids follow from the key, so a repeated request has the same tasks.
            match stack.api.register_each(&request.tasks, None).await {
                Ok(answers) => outcomes.extend(request.lines.into_iter().zip(answers)),
                Err(error) => {
                    report.end()?;
                    let first = request.lines.first().copied().unwrap_or_default();
                    say(format_args!(
                        "fanfold: of the rows from line {first} on, some or all are not registered; with --idempotency-key {key} \
                         the same command goes on there"
                    ));
                    return Err(stack.failed(error));
                }
            }
        }
        outcomes.sort_by_key(|(line, _)| *line);
        for (line, outcome) in &outcomes {
            report.row(*line, outcome)?;
        }
    }
    report.end()?;
    Ok(if report.summary.refused > 0 { ExitCode::from(BAD_ROWS) } else { ExitCode::SUCCESS })
}

/// An input: its name, its format and its content.
type Input = (PathBuf, Format, Box<dyn Read + Send>);

fn open(file: PathBuf, format: Option<Format>) -> Result<Input, Failure> {
    if file.as_os_str() == "-" {
        return Ok((PathBuf::from("standard input"), format.unwrap_or(Format::Ndjson), Box::new(stdin())));
    }
    let Some(format) = format.or_else(|| Format::of(&file)) else {
        let problem = "is neither *.csv nor *.ndjson nor *.jsonl; name its format with --format";
        return Err(Fault::new(file.display(), problem).into());
    };
    let input = File::open(&file).map_err(|error| Fault::new(file.display(), error))?;
    Ok((file, format, Box::new(input)))
}

fn new_key() -> String {
    World::system().uuid().to_string()
}
