//! Running the command `fanfold`.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// How long a command may take.
pub(crate) const TIME: Duration = Duration::from_secs(60);

/// The same for one that works through many records, page by page.
pub(crate) const LONG: Duration = Duration::from_secs(15 * 60);

/// Bytes of an answer: an assistant reads all of it.
const BYTES_MAX: usize = 256 * 1_024;

/// The command, and the options that say which stack it asks.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) program: PathBuf,
    pub(crate) connection: Vec<String>,
}

/// Why a command returned nothing. Assistants see it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failed {
    #[error("`{program}` cannot be run: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("the command did not end within {} s, and was stopped; what it has done until then stays done", .0.as_secs())]
    Slow(Duration),
    #[error("{0}")]
    Refused(String),
    #[error("the answer has {0} bytes, and {BYTES_MAX} are the maximum: ask for less, with a limit or a scope")]
    Long(usize),
}

impl Command {
    /// Runs it with these arguments for at most this time; returns what it printed. A status of 3 means that something failed or is wrong, which the answer
    /// says.
    pub(crate) async fn run(&self, arguments: &[String], time: Duration) -> Result<String, Failed> {
        let mut command = tokio::process::Command::new(&self.program);
        // Options come first: what follows `--` are no options.
        let (options, rest) =
            arguments.split_at(arguments.iter().position(|word| word == "--").unwrap_or(arguments.len()));
        command.args(options).args(&self.connection).args(rest).stdin(Stdio::null()).kill_on_drop(true);
        let program = self.program.display().to_string();
        let output = tokio::time::timeout(time, command.output()).await.map_err(|_| Failed::Slow(time))?;
        let output = output.map_err(|source| Failed::Start { program, source })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.stdout.len() > BYTES_MAX {
            return Err(Failed::Long(output.stdout.len()));
        }
        if output.status.success() || (output.status.code() == Some(3) && !output.stdout.is_empty()) {
            return Ok(text(&output.stdout));
        }
        Err(Failed::Refused(text(&output.stderr)))
    }
}
