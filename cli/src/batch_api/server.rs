//! A batch API that the runner starts, and ends when it is done.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::{ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::process_group::{ProcessGroup, Signal};
use super::program;
use super::said::{Said, Stream};
use crate::failure::Failure;
use crate::fault::Fault;
use crate::job::StartedApi;
use crate::stop::Stop;

/// Between two looks whether it listens.
const LOOK: Duration = Duration::from_millis(50);
/// How long it may take to end once its standard input has ended; many servers do not look at that.
const AFTER_INPUT: Duration = Duration::from_millis(500);
/// How long it may take to end once it was asked to.
const AFTER_TERM: Duration = Duration::from_secs(2);
/// Once it has ended, its last output is waited for twice as long as this.
const LAST_WORDS: Duration = Duration::from_millis(150);

/// A running server. Its standard input is a pipe that stays open as long as this process lives, however it may die.
#[derive(Debug)]
pub(crate) struct Process {
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    said: Said,
    output: Vec<JoinHandle<()>>,
    port: u16,
    patience: Duration,
    place: PathBuf,
    command: String,
}

impl Process {
    /// Starts a server in `folder`.
    pub(crate) fn start(server: &StartedApi, folder: &Path) -> Result<Self, Failure> {
        let place = folder.join("run.yaml");
        let command = server.command.join(" ");
        program::check(&server.command, folder)
            .map_err(|problem| Fault::new(place.display(), format_args!("`start`: {problem}")))?;
        let (program, arguments) = server.command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
        let mut group = ProcessGroup::spawn(
            Command::new(program).args(arguments).current_dir(folder).env("PORT", server.port.to_string()),
        )
        .map_err(|error| Fault::new(place.display(), format_args!("`start`: `{command}`: {error}")))?;
        let said = Said::default();
        let mut output = Vec::new();
        if let Some(stdout) = group.child.stdout.take() {
            output.push(tokio::spawn(said.clone().listen(Stream::Output, stdout)));
        }
        if let Some(stderr) = group.child.stderr.take() {
            output.push(tokio::spawn(said.clone().listen(Stream::Errors, stderr)));
        }
        let stdin = group.child.stdin.take();
        Ok(Self { group, stdin, said, output, port: server.port, patience: server.patience, place, command })
    }

    /// Waits until the server listens. `waiting` is called with a line about that, again and again.
    pub(crate) async fn listening(&mut self, waiting: impl Fn(&str)) -> Result<(), Failure> {
        let began = Instant::now();
        let (port, patience, said) = (self.port, self.patience, self.said.clone());
        let listens = async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                let last = said.last().map(|line| format!("; its last line: {line}")).unwrap_or_default();
                let elapsed = began.elapsed().as_secs();
                waiting(&format!(
                    "waiting for the batch API to open port {port} ({elapsed} s of {} s){last}",
                    patience.as_secs()
                ));
                tokio::time::sleep(LOOK).await;
            }
        };
        let problem = tokio::select! {
            () = listens => return Ok(()),
            status = self.group.child.wait() => {
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                self.last_words().await;
                format!("the batch API ended ({status}) before it listened on port {port} of 127.0.0.1")
            }
            () = tokio::time::sleep(patience) => format!(
                "the batch API did not open port {port} of 127.0.0.1 (the variable PORT) within {}; \
                 `start_timeout` sets a longer time",
                humantime::format_duration(patience)
            ),
        };
        let said = self.said.to_string();
        let said = if said.is_empty() { "it printed nothing".to_owned() } else { format!("its last output:\n{said}") };
        let problem = format_args!("`start`: `{}`: {problem}; {said}", self.command);
        Err(Fault::new(self.place.display(), problem).into())
    }

    /// Waits until the server ends by itself, which it should not. `kept`: the run can be resumed.
    pub(crate) async fn ended(&mut self, kept: bool) -> Failure {
        let status = self.group.child.wait().await;
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        self.last_words().await;
        Failure::BatchApiEnded { status, said: self.said.to_string(), kept }
    }

    /// Ends the server and what it started: by the end of its standard input, then by asking, then by force; by force at
    /// once if nothing is to be waited for any more.
    pub(crate) async fn end(mut self, stop: &Stop) {
        drop(self.stdin.take());
        let gently = async {
            if timeout(AFTER_INPUT, self.group.gone()).await.is_err() {
                self.group.ask(Signal::Terminate);
                let _ = timeout(AFTER_TERM, self.group.gone()).await;
            }
        };
        tokio::select! {
            () = gently => {}
            () = stop.asked_twice() => {}
        }
        self.group.ask(Signal::Kill);
        let _ = self.group.child.wait().await;
        self.group.is_over();
    }

    /// Its last output may still be in the pipes. Another process may hold them open.
    async fn last_words(&mut self) {
        let mut read = pin!(futures::future::join_all(self.output.drain(..)));
        // If this process stood still, the first time is up before anything was read that has come meanwhile.
        for _ in 0..2 {
            if timeout(LAST_WORDS, read.as_mut()).await.is_ok() {
                return;
            }
        }
    }
}
