//! The data folder: of another version, on a disk that is full.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::folder::{Folder, RECORD, stderr};

const ROWS: usize = 60;

fn run(folder: &Folder) -> Value {
    folder.summary(&["--data", folder.data().to_str().unwrap()])
}

#[test]
fn a_file_is_refused() {
    let folder = Folder::with_rows(3, RECORD);
    let file = folder.path().join("rows.csv").display().to_string();
    let said = format!("--data: `{file}` is a file, a folder is expected");
    for command in [&["run", folder.path().to_str().unwrap()][..], &["up", "--listen", "127.0.0.1:0"]] {
        for data in [file.clone(), format!("{file}/data")] {
            let fanfold = Command::new(env!("CARGO_BIN_EXE_fanfold")).args(command).args(["--data", &data]).output();
            let output = fanfold.unwrap();
            assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
            assert!(stderr(&output).contains(&said), "{}", stderr(&output));
        }
    }
    assert!(folder.calls().is_empty());
}

#[test]
fn a_folder_of_another_version_is_refused_and_left_as_it_is() {
    let folder = Folder::with_rows(10, RECORD);
    run(&folder);
    let database = folder.data().join("fanfold.db");
    let before = std::fs::read(&database).unwrap();
    let format = folder.data().join("format");
    let ours = std::fs::read_to_string(&format).unwrap();
    std::fs::write(&format, "99\n").unwrap();
    let output = folder.run(&["--data", folder.data().to_str().unwrap(), "--again"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = stderr(&output);
    for part in ["99", ours.trim(), folder.data().to_str().unwrap()] {
        assert!(printed.contains(part), "`{part}` is not in: {printed}");
    }
    assert_eq!(std::fs::read(&database).unwrap(), before);
    std::fs::write(&format, ours).unwrap();
    assert_eq!(run(&folder)["succeeded"], 10);
}

/// A limit on the size of files does what a full disk does, wherever this runs.
#[test]
fn a_failed_write_is_reported_and_the_next_run_goes_on() {
    let folder = Folder::with_rows(ROWS, RECORD);
    let script = "trap '' XFSZ; ulimit -f 400; exec \"$0\" run \"$1\" --data \"$2\"";
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_fanfold")])
        .args([folder.path(), &folder.data()])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("disk I/O error"), "{}", stderr(&output));
    let summary = run(&folder);
    assert_eq!((&summary["succeeded"], &summary["notices"]), (&json!(ROWS), &json!(1)));
    folder.assert_each_row_once(ROWS);
}

/// The disk gets full in the middle of a run, which is killed; with room again the next one goes on.
#[test]
fn a_disk_that_gets_full_in_the_middle_loses_nothing() {
    if !Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"])
        .status()
        .is_ok_and(|it| it.success())
    {
        eprintln!("not run: nobody may mount a file system here");
        return;
    }
    // Many rows: what is left to be written then does not fit what the database has allocated already.
    let rows = 10 * ROWS;
    // The first call fills the disk, and no later one does.
    let fill = "mkdir filled 2>/dev/null && dd if=/dev/zero of=data/filler bs=4k";
    let folder = Folder::with_rows(rows, &format!("{RECORD}; {fill}; exit 0"));
    std::fs::create_dir(folder.data()).unwrap();
    let script = "set -e; mount -t tmpfs -o size=20m none \"$2\"; \"$0\" run \"$1\" --data \"$2\" & echo $! > \"$1/pid\"; \
                  wait $! || true; rm \"$2/filler\"; exec \"$0\" run \"$1\" --data \"$2\" --json";
    let mut child = Command::new("unshare")
        .args(["-rm", "bash", "-c", script, env!("CARGO_BIN_EXE_fanfold")])
        .args([folder.path(), &folder.data()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut lines = Vec::new();
    let full = |line: &String| line.contains("database or disk is full") || line.contains("No space left on device");
    let full = printed.by_ref().inspect(|line| lines.push(line.clone())).any(|line| full(&line));
    assert!(full, "the run does not say why it gets no further: {lines:#?}");
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    // It may have ended by itself meanwhile.
    Command::new("kill").args(["-KILL", pid.trim()]).status().unwrap();
    let rest = std::thread::spawn(move || printed.collect::<Vec<_>>().join("\n"));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", rest.join().unwrap());
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["succeeded"], &summary["notices"]), (&json!(rows), &json!(1)));
    folder.assert_each_row_once(rows);
}
