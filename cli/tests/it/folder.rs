//! Folders to run, and running them.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

/// How long what a test waits for may take: much longer than a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Between two looks whether it is there.
const LOOK: Duration = Duration::from_millis(20);

/// Writes each call to a file named by its idempotency key, and does every member.
pub(crate) const RECORD: &str = "cat > calls/$FANFOLD_IDEMPOTENCY_KEY";

/// A folder to run.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(folder.path().join("calls")).unwrap();
        folder
    }

    /// Rows `0..rows` as CSV, in five targets of different sizes, and a command as batch API.
    pub(crate) fn with_rows(rows: usize, command: &str) -> Self {
        let folder = Self::new();
        let row = |n: usize| format!("R-{n},{},\"a, b\"\n", target(n));
        folder.write("rows.csv", "ref,shop,note\n".to_owned() + &(0..rows).map(row).collect::<String>());
        folder.write("policy.yaml", policy("content.shop", command));
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// The option that keeps the state in the folder.
    pub(crate) fn data_option(&self) -> [String; 2] {
        ["--data".to_owned(), self.data().to_str().unwrap().to_owned()]
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fanfold"));
        command.arg("run").arg(self.path()).args(arguments).env_remove("RUST_LOG");
        command
    }

    /// Runs the folder to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs the folder with `--json` to its summary.
    pub(crate) fn summary(&self, arguments: &[&str]) -> Value {
        summary(&self.run(&[&["--json"], arguments].concat()))
    }

    /// Starts a run with the state in [`Self::data`].
    pub(crate) fn start(&self) -> Child {
        let data = self.data();
        let mut command = self.command(&["--json", "--data", data.to_str().unwrap()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits until this file is there, which a process or its batch API writes.
    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str, child: &mut Child) {
        let file = self.path().join(name);
        until(&format!("the file `{name}`"), || {
            if file.exists() {
                return Ok(());
            }
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "there is no file `{name}`, and the process has ended: {ended:?}");
            Err("the process works".to_owned())
        });
    }

    /// The calls the batch API saw, by idempotency key.
    pub(crate) fn calls(&self) -> BTreeMap<String, Value> {
        let entries = std::fs::read_dir(self.path().join("calls")).unwrap().map(Result::unwrap);
        let call = |entry: std::fs::DirEntry| {
            let text = std::fs::read(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), serde_json::from_slice(&text).unwrap())
        };
        entries.map(call).collect()
    }

    /// Checks that each of the first `rows` rows is in one call, which has one target and no more members than allowed.
    pub(crate) fn assert_each_row_once(&self, rows: usize) {
        let mut seen = vec![0; rows];
        for (key, call) in self.calls() {
            let members = call["members"].as_array().unwrap();
            assert!((1..=MAX_BATCH).contains(&members.len()), "{key} has {} members", members.len());
            for member in members {
                let content = &member["content"];
                assert_eq!(content["shop"], call["target"], "{key}");
                assert_eq!(content["note"], "a, b");
                let row: usize = content["ref"].as_str().unwrap().strip_prefix("R-").unwrap().parse().unwrap();
                assert_eq!(content["shop"], target(row));
                seen[row] += 1;
            }
        }
        let wrong: Vec<(usize, i32)> = seen.into_iter().enumerate().filter(|(_, count)| *count != 1).collect();
        assert!(wrong.is_empty(), "rows and how often they were handled: {wrong:?}");
    }
}

const MAX_BATCH: usize = 8;

/// Half of the rows have one target, every tenth has one of its own.
fn target(row: usize) -> String {
    match row % 10 {
        0..=4 => "big".to_owned(),
        9 => format!("tiny-{row}"),
        n => format!("shop-{n}"),
    }
}

pub(crate) fn policy(target: &str, command: &str) -> String {
    format!(
        "kind: row\ntarget: {target}\nkey: content.ref\nmax_batch: {MAX_BATCH}\nlinger: 1s\nmax_in_flight: 2\n\
         max_attempts: 4\nbackoff: {{base: 1s, max: 2s}}\nbatch_api: {{command: [sh, -c, '{command}'], timeout: 5s}}\n"
    )
}

/// The same with another batch API.
pub(crate) fn with_batch_api(batch_api: &str) -> String {
    let text = policy("content.shop", "true");
    let others: Vec<&str> = text.lines().filter(|line| !line.starts_with("batch_api:")).collect();
    format!("{}\nbatch_api: {batch_api}\n", others.join("\n"))
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The summary of a run, whose exit status must say whether tasks failed.
pub(crate) fn summary(output: &Output) -> Value {
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}: {}", output.status, stderr(output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = if summary["failed"] == 0 && summary["ended"] == "completed" { 0 } else { 3 };
    assert_eq!(output.status.code(), Some(expected), "{summary}");
    summary
}

/// Asks until there is an answer. `ask`: the answer, or what there is instead, which is shown if it takes too long.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Result<T, String>) -> T {
    let latest = Instant::now() + PATIENCE;
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(instead) => assert!(Instant::now() < latest, "{what} does not come: {instead}"),
        }
        std::thread::sleep(LOOK);
    }
}

/// Reads what a process says, up to the line that has this part.
#[track_caller]
pub(crate) fn read_to(says: &mut impl BufRead, part: &str) -> String {
    let mut said = String::new();
    while !said.contains(part) {
        assert!(says.read_line(&mut said).unwrap() > 0, "`{part}` is not in: {said}");
    }
    said
}

/// Sends a signal to a process.
pub(crate) fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}
