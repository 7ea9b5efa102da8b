//! A program as batch API, or as source: the question on its standard input, the answer on its standard output.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use fanfold::limits::{ANSWER_BYTES_MAX, EXCERPT_BYTES_MAX};
use fanfold::text::{beginning, end};
use fanfold_batch_api::{Answer, CallError, Calling, Cause, Programs, Request};
use futures::future::join3;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use super::process_group::ProcessGroup;

/// Carries the idempotency key to the program.
const KEY: &str = "FANFOLD_IDEMPOTENCY_KEY";

/// Says which call of its batch a call is.
const ATTEMPT: &str = "FANFOLD_ATTEMPT";

/// Bytes of standard error that are kept: its end shows why a program failed.
const STDERR_BYTES: usize = 4 * 1_024;

/// How long the last of its output may be on its way once a program has ended. What it left in the background may hold
/// the pipes open for ever.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Runs programs in a folder.
#[derive(Debug)]
pub(crate) struct LocalPrograms {
    folder: PathBuf,
}

/// What a program is run with.
#[derive(Debug)]
pub(crate) struct Input {
    /// What it is, in errors.
    pub(crate) name: &'static str,
    /// Its standard input.
    pub(crate) bytes: Vec<u8>,
    /// Variables of its environment.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// How long it may take.
    pub(crate) timeout: Duration,
    /// Bytes that it may print.
    pub(crate) most: usize,
}

/// What a program printed.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Its standard output.
    pub(crate) bytes: Vec<u8>,
    /// The end of its standard error.
    errors: Vec<u8>,
}

impl LocalPrograms {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Runs a program for one call. After a status other than 0, or no answer in time, the call is retried.
    async fn call(&self, command: &[String], request: Request<'_>) -> Result<Answer, CallError> {
        let input = Input {
            name: "the batch API",
            bytes: request.body,
            variables: vec![(KEY, request.key), (ATTEMPT, request.call.attempt.to_string())],
            timeout: request.timeout,
            most: ANSWER_BYTES_MAX,
        };
        let output = self.output(command, input).await?;
        Answer::read(&output.bytes, request.call)
            .map_err(|error| with_errors(error.cause, &error.message, &output.errors))
    }

    /// Runs a program.
    ///
    /// # Errors
    /// It cannot be run, ends with another status than 0, takes too long or prints too much.
    pub(crate) async fn output(&self, command: &[String], input: Input) -> Result<Output, CallError> {
        let Input { name, bytes, variables, timeout, most } = input;
        let program = self.start(command, variables)?;
        let mut errors = Vec::new();
        // Dropped at the time-out, the program is killed, and what it started.
        let talked = tokio::time::timeout(timeout, talk(program, bytes, most, &mut errors)).await;
        match talked {
            Ok(bytes) => Ok(Output { bytes: bytes?, errors }),
            Err(_) => Err(with_errors(Cause::Silence, &format!("{name} did not answer in time"), &errors)),
        }
    }

    fn start(&self, command: &[String], variables: Vec<(&str, String)>) -> Result<ProcessGroup, CallError> {
        let empty = || CallError::new(Cause::NotMade, "the command is empty");
        let (program, arguments) = command.split_first().ok_or_else(empty)?;
        // A group of its own: Ctrl-C in a terminal is for the runner, which lets calls in progress end.
        ProcessGroup::spawn(Command::new(program).args(arguments).current_dir(&self.folder).envs(variables))
            .map_err(|error| CallError::new(Cause::Unreachable, format!("`{program}` cannot be run: {error}")))
    }
}

impl Output {
    /// A problem with what was printed, with the end of standard error.
    pub(crate) fn problem(&self, message: &str) -> String {
        with_errors(Cause::BadAnswer, message, &self.errors).message
    }
}

impl Programs for LocalPrograms {
    fn run<'a>(&'a self, command: &'a [String], request: Request<'a>) -> Calling<'a> {
        Box::pin(self.call(command, request))
    }
}

/// A failed call, with the end of what the program wrote to standard error.
fn with_errors(cause: Cause, message: &str, errors: &[u8]) -> CallError {
    match end(errors, EXCERPT_BYTES_MAX) {
        said if said.is_empty() => CallError::new(cause, message),
        said => CallError::new(cause, format!("{message}; standard error: {said}")),
    }
}

/// Writes and reads at the same time, until the program has ended: it may answer before it has read everything.
/// `errors` gets the end of its standard error.
async fn talk(
    mut program: ProcessGroup,
    input: Vec<u8>,
    most: usize,
    errors: &mut Vec<u8>,
) -> Result<Vec<u8>, CallError> {
    let child = &mut program.child;
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(CallError::new(Cause::Unreachable, "the program has no standard input and output"));
    };
    let write = async move {
        // A program that does not want its input is no error; what it answers counts.
        let _ = stdin.write_all(&input).await;
    };
    let mut output = Vec::new();
    let status = {
        let outputs = (read(stdout, most + 1, &mut output), read_end(stderr, STDERR_BYTES, errors));
        let mut streams = pin!(join3(write, outputs.0, outputs.1));
        tokio::select! {
            _ = &mut streams => child.wait().await,
            status = child.wait() => {
                let _ = tokio::time::timeout(LAST_WORDS, &mut streams).await;
                status
            }
        }
    };
    let lost = |error| CallError::new(Cause::Silence, format!("the program was lost: {error}"));
    let status = status.map_err(lost)?;
    program.is_over();
    if !status.success() {
        let said = match (end(errors, EXCERPT_BYTES_MAX), beginning(&output, EXCERPT_BYTES_MAX)) {
            (errors, _) if !errors.is_empty() => errors,
            (_, output) if !output.is_empty() => format!("it printed {output}"),
            _ => "it printed nothing".to_owned(),
        };
        // Ended by a signal, it may have worked.
        let cause = if status.code().is_some() { Cause::Exit } else { Cause::Silence };
        return Err(CallError::new(cause, format!("the program ended with {status}: {said}")));
    }
    if output.len() > most {
        return Err(CallError::new(Cause::BadAnswer, format!("the answer has more than {most} bytes")));
    }
    Ok(output)
}

/// Reads to the end; keeps the first bytes, as many as are allowed.
async fn read(stream: impl AsyncReadExt + Unpin, most: usize, kept: &mut Vec<u8>) {
    each(stream, |part| kept.extend_from_slice(&part[..part.len().min(most - kept.len())])).await;
}

/// Reads to the end; keeps the last bytes, at least as many as are asked for.
async fn read_end(stream: impl AsyncReadExt + Unpin, wanted: usize, kept: &mut Vec<u8>) {
    each(stream, |part| {
        kept.extend_from_slice(part);
        if kept.len() > 2 * wanted {
            kept.drain(..kept.len() - wanted);
        }
    })
    .await;
}

async fn each(mut stream: impl AsyncReadExt + Unpin, mut part: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 16 * 1_024];
    while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
        part(&buffer[..bytes]);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use fanfold_batch_api::Call;

    #[tokio::test]
    async fn of_too_much_one_end_is_kept() {
        let much: Vec<u8> = (0..100_000_u32).map(|n| b'a' + (n % 26) as u8).collect();
        for (most, expected) in [(10, &much[..10]), (200_000, &much[..])] {
            let mut kept = Vec::new();
            read(much.as_slice(), most, &mut kept).await;
            assert_eq!(kept, expected);
        }
        let mut kept = Vec::new();
        read_end(much.as_slice(), 1_000, &mut kept).await;
        assert!(kept.ends_with(&much[99_000..]) && kept.len() <= 2_000);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_error_of_a_program_that_takes_too_long_has_its_last_lines() {
        let call = Call {
            batch_id: uuid::Uuid::nil(),
            kind: "row".to_owned(),
            attempt: 1,
            target: "t".to_owned(),
            members: Vec::new(),
        };
        let api = LocalPrograms::new(std::env::temp_dir());
        let run = async |seconds: u64, script: &str| {
            let command = ["sh", "-c", script].map(str::to_owned);
            let request = Request {
                call: &call,
                body: Vec::new(),
                key: "k".to_owned(),
                timeout: Duration::from_secs(seconds),
                mapping: None,
                later: false,
                token: None,
                group: call.batch_id,
            };
            api.run(&command, request).await.map_err(|error| (error.cause, error.message))
        };
        let silence = |text: &str| Err((Cause::Silence, text.to_owned()));
        assert_eq!(run(1, "sleep 60").await, silence("the batch API did not answer in time"));
        assert_eq!(
            run(5, "echo connecting >&2; echo no licence >&2; sleep 60").await,
            silence("the batch API did not answer in time; standard error: connecting no licence")
        );
    }
}
