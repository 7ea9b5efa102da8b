//! A stack that `fanfold up` runs, and the command as its client.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::folder::{Folder, stderr};
use crate::up::Server;

/// An id that nothing has.
pub(crate) const NOBODY: &str = "01890000-0000-7000-8000-000000000001";

pub(crate) fn command(endpoint: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfold"));
    command.args(arguments).env("FANFOLD_ENDPOINT", endpoint).env_remove("RUST_LOG");
    for variable in
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"]
    {
        command.env_remove(variable);
    }
    // There is no AWS CLI here unless a test brings one.
    command.env("PATH", "");
    command
}

/// A stack, and the command that asks it.
pub(crate) struct Stack {
    pub(crate) server: Server,
    pub(crate) folder: Folder,
}

impl Stack {
    pub(crate) fn start() -> Self {
        let folder = Folder::new();
        Self { server: Server::start(&folder), folder }
    }

    /// The same with another policy.
    pub(super) fn with(policy: &str) -> Self {
        let folder = Folder::new();
        Self { server: Server::start_with(&folder, policy, &[]), folder }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        command(&format!("http://{}", self.server.address), arguments)
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What it prints, as it succeeds.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// The JSON document that it prints.
    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Runs it with these lines on standard input.
    pub(crate) fn fed(&self, arguments: &[&str], lines: &str) -> Output {
        let mut command = self.command(arguments);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        process.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        process.wait_with_output().unwrap()
    }

    pub(crate) fn open(&self, arguments: &[&str]) -> String {
        self.ok(&[&["open"], arguments].concat())
    }

    /// The ids of a list.
    #[track_caller]
    pub(super) fn list(&self, arguments: &[&str]) -> Vec<String> {
        let listed = self.json(&[&["list"], arguments].concat());
        listed["fanouts"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    }
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}
