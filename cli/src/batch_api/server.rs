//! A batch API that the runner starts, and ends when it is done.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, Command};

use crate::failure::{Failure, Fault};
use crate::job::Server;

/// How long a server may take until it listens: it may have to be compiled first.
const PATIENCE: Duration = Duration::from_secs(900);
/// Between two looks whether it listens.
const LOOK: Duration = Duration::from_millis(50);
/// How long it may take to end once its standard input has ended.
const FAREWELL: Duration = Duration::from_secs(3);
/// Lines of its output that are kept, to be shown if it fails.
const LINES: usize = 20;

/// What a server last said.
type Said = Arc<Mutex<VecDeque<String>>>;

/// A running server. Its standard input is a pipe that stays open as long as this process lives, however it may die.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    said: Said,
}

impl Process {
    /// Starts a server in `folder` and waits until it listens.
    pub(crate) async fn start(server: &Server, folder: &Path) -> Result<Self, Failure> {
        let place = folder.join("run.yaml");
        let mut process = Self::spawn(server, folder).map_err(|error| {
            Fault::new(place.display(), format_args!("`start`: `{}`: {error}", server.command.join(" ")))
        })?;
        let listens = async {
            while TcpStream::connect(("127.0.0.1", server.port)).await.is_err() {
                tokio::time::sleep(LOOK).await;
            }
        };
        let problem = tokio::select! {
            () = listens => return Ok(process),
            status = process.child.wait() => {
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                format!("`start`: the batch API ended with {status} before it listened on port {}", server.port)
            }
            () = tokio::time::sleep(PATIENCE) => {
                format!("`start`: the batch API does not listen on 127.0.0.1:{}, the PORT it was given", server.port)
            }
        };
        // What it said last may still be on its way.
        tokio::time::sleep(LOOK).await;
        Err(Fault::new(place.display(), format_args!("{problem}{}", process.said_after("; it said:\n"))).into())
    }

    fn spawn(server: &Server, folder: &Path) -> std::io::Result<Self> {
        let (program, arguments) = server.command.split_first().ok_or(std::io::ErrorKind::NotFound)?;
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .env("PORT", server.port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let said = Said::default();
        if let Some(stdout) = child.stdout.take() {
            tokio::spawn(listen(stdout, Arc::clone(&said)));
        }
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(listen(stderr, Arc::clone(&said)));
        }
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, said })
    }

    /// Waits until the server ends by itself, which it should not.
    pub(crate) async fn ended(&mut self) -> Failure {
        let status = self.child.wait().await;
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        Failure::BatchApiEnded { status, said: self.said_after("") }
    }

    /// Ends the server: first by the end of its standard input, then by force.
    pub(crate) async fn end(mut self) {
        drop(self.stdin.take());
        if tokio::time::timeout(FAREWELL, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }

    fn said_after(&self, introduction: &str) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_empty() { String::new() } else { format!("{introduction}{}", Vec::from(said.clone()).join("\n")) }
    }
}

async fn listen(stream: impl AsyncRead + Unpin, said: Said) {
    let mut lines = BufReader::new(stream).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        tracing::info!(target: "batch_api", "{line}");
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() == LINES {
            said.pop_front();
        }
        said.push_back(line);
    }
}
