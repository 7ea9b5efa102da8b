//! How the command ends: exit statuses, `--fail-fast`, cancelling, Ctrl-C, pipes that close, no colours in files.

mod counted;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::stack::command;
use crate::folder::{Folder, RECORD, policy, read_to, signal, stderr, summary, until, with_batch_api};

const ROWS: usize = 200;

#[test]
fn the_exit_status_shows_whether_tasks_failed() {
    assert_eq!(Folder::with_rows(9, RECORD).run(&[]).status.code(), Some(0));
    let folder = Folder::with_rows(9, "echo no >&2; exit 3");
    let [option, value] = folder.data_option();
    assert_eq!(folder.run(&[&option, &value]).status.code(), Some(3));
    // And so it does when it is only shown again.
    assert_eq!(folder.run(&[&option, &value]).status.code(), Some(3));
    // A duplicate is no failure.
    let folder = Folder::new();
    folder.write("rows.csv", "ref,shop\nR-1,a\nR-1,a\n");
    folder.write("policy.yaml", policy("content.shop", RECORD));
    assert_eq!(folder.run(&[]).status.code(), Some(0));
}

#[test]
fn too_many_failures_stop_a_run_which_the_next_one_continues() {
    // Calls of small targets, of up to eight tasks each, fail for good; those after them are not begun.
    let folder = Folder::with_rows(ROWS, &format!("{RECORD}; exit 1"));
    let one_try = policy("content.shop", &format!("{RECORD}; sleep 0.2; exit 1"))
        .replace("max_attempts: 4", "max_attempts: 1")
        .replace("max_in_flight: 2", "max_in_flight: 1");
    folder.write("policy.yaml", &one_try);
    let [option, value] = folder.data_option();
    let output = folder.run(&["--json", &option, &value, "--fail-fast", "3"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    for part in ["stopped by --fail-fast 3", "tasks failed", " open; ", "with the same --data"] {
        assert!(stderr(&output).contains(part), "{part}: {}", stderr(&output));
    }
    let stopped = summary(&output);
    let count = |summary: &serde_json::Value, field: &str| summary[field].as_u64().unwrap();
    assert_eq!(stopped["ended"], "fail_fast");
    assert!(count(&stopped, "failed") >= 3 && count(&stopped, "open") > 0, "{stopped}");
    assert_eq!(count(&stopped, "failed") + count(&stopped, "open"), ROWS as u64);
    // With the batch API mended, the rest is handled; what failed has failed.
    folder.write("policy.yaml", policy("content.shop", RECORD));
    let rest = folder.summary(&[&option, &value]);
    assert_eq!((&rest["failed"], &rest["ended"]), (&stopped["failed"], &serde_json::json!("completed")));
    assert_eq!(count(&rest, "succeeded"), count(&stopped, "open"));
    folder.assert_each_row_once(ROWS);
    assert_eq!(folder.run(&["--fail-fast", "0"]).status.code(), Some(2));
    let no_tasks = folder.run(&["--limit", "0"]);
    assert_eq!(no_tasks.status.code(), Some(2));
    assert!(stderr(&no_tasks).contains("a whole number from 1 on is expected"), "{}", stderr(&no_tasks));
}

#[test]
fn a_run_that_is_stopped_again_counts_the_duplicates_of_all_its_legs() {
    // One call at a time: each leg ends after its first one, whatever the machine's speed.
    let folder = Folder::new();
    let rows: String = (0..60).map(|n| format!("R-{},shop\n", n % 30)).collect();
    folder.write("rows.csv", format!("ref,shop\n{rows}"));
    let policy = policy("content.shop", "exit 1").replace("max_attempts: 4", "max_attempts: 1");
    let policy = policy.replace("max_batch: 8", "max_batch: 2").replace("max_in_flight: 2", "max_in_flight: 1");
    folder.write("policy.yaml", policy.replace("linger: 1s", "linger: 0s"));
    let [option, value] = folder.data_option();
    let mut done_before = 0;
    for leg in 0..2 {
        let summary = folder.summary(&[&option, &value, "--fail-fast", "1"]);
        let count = |field: &str| summary[field].as_u64().unwrap();
        assert_eq!((&summary["ended"], count("duplicates")), (&serde_json::json!("fail_fast"), 30), "leg {leg}");
        assert_eq!(count("failed") + count("open"), 30, "leg {leg}: {summary}");
        let done = count("failed") + count("duplicates");
        // Some duplicates of the first leg may have been acked in the second.
        assert!((done - done_before..=done).contains(&count("done_in_last_leg")), "leg {leg}: {summary}");
        done_before = done;
    }
}

/// A run that also serves the HTTP API, where that is, and what the run says.
fn listening(folder: &Folder, arguments: &[&str]) -> (Child, String, JoinHandle<String>) {
    let arguments = [&["--json", "--listen", "127.0.0.1:0"], arguments].concat();
    let mut child = folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut says, mut line) = (BufReader::new(child.stderr.take().unwrap()), String::new());
    says.read_line(&mut line).unwrap();
    let endpoint = line.trim_end().strip_prefix("The dashboard is at ").and_then(|url| url.strip_suffix("/dashboard/"));
    let endpoint = endpoint.unwrap_or_else(|| panic!("{line}")).to_owned();
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        says.read_to_string(&mut said).unwrap();
        said
    });
    (child, endpoint, said)
}

/// What the command says as a client of a run, without a failure.
#[track_caller]
fn client(endpoint: &str, arguments: &[&str]) -> String {
    let output = command(endpoint, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until the batch API was called.
fn wait_for_a_call(folder: &Folder, child: &mut Child) {
    until("a call", || {
        assert!(child.try_wait().unwrap().is_none());
        let called = std::fs::read_dir(folder.path().join("calls")).unwrap().next().is_some();
        if called { Ok(()) } else { Err("none was made".to_owned()) }
    });
}

/// The lines but the one that calls are waited for, which comes only if they take more than a moment.
fn lines(said: &str) -> Vec<&str> {
    said.lines().filter(|line| !line.starts_with("waiting for the calls")).collect()
}

#[test]
fn a_run_that_is_cancelled_says_what_is_missing() {
    let folder = Folder::with_rows(ROWS, &format!("{RECORD}; sleep 1"));
    let [option, value] = folder.data_option();
    let (mut child, endpoint, _said) = listening(&folder, &[&option, &value]);
    wait_for_a_call(&folder, &mut child);
    let listed: Value = serde_json::from_str(&client(&endpoint, &["list", "--json"])).unwrap();
    client(&endpoint, &["cancel", listed["fanouts"][0]["id"].as_str().unwrap()]);
    let output = child.wait_with_output().unwrap();
    let cancelled = summary(&output);
    assert_eq!((&cancelled["ended"], &cancelled["open"]), (&json!("cancelled"), &json!(0)), "{cancelled}");
    let count = |field: &str| cancelled[field].as_u64().unwrap();
    // Calls in progress came to their end.
    assert!(count("succeeded") > 0 && count("missing") > 0, "{cancelled}");
    let all = ["succeeded", "failed", "duplicates", "missing"].map(count).iter().sum::<u64>();
    assert_eq!((all, count("total")), (ROWS as u64, ROWS as u64), "{cancelled}");
    let again = folder.run(&[&option, &value]);
    assert_eq!(again.status.code(), Some(3), "{}", stderr(&again));
    let printed = String::from_utf8(again.stdout).unwrap();
    for part in [": cancelled before, at 20", "), cancelled\n", "  missing  ", "not done when the run was cut short"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

/// The other kind has work for a minute.
#[test]
fn a_run_without_notices_does_not_wait_for_other_kinds() {
    let folder = Folder::with_rows(8, RECORD);
    let wait = "while [ ! -e go ]; do sleep 0.1; done";
    folder.write("policy.yaml", with_batch_api(&format!("{{command: [sh, -c, '{wait}'], timeout: 60s}}")));
    let other = "kind: other\ntarget: kind\nmax_batch: 1\nlinger: 0\nmax_in_flight: 1\n\
                 batch_api: {command: [sleep, '2'], timeout: 60s}\n";
    folder.write("other.yaml", other);
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (child, endpoint, said) = listening(&folder, &[]);
    // By now the run has found its own file.
    folder.write("other.ndjson", (0..30).map(|n| format!("{n}\n")).collect::<String>());
    client(&endpoint, &["policy", "apply", "-f", &file("other.yaml")]);
    client(&endpoint, &["tasks", "register", &file("other.ndjson"), "--kind", "other"]);
    folder.write("go", "");
    let output = child.wait_with_output().unwrap();
    let said = said.join().unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert_eq!(summary(&output)["succeeded"], 8);
    assert!(!said.contains("notices") && !said.contains("--data"), "{said}");
}

/// Ends a run in the middle of calls; it must say what it did, and nothing else.
fn stop(name: &str, status: i32) {
    let folder = Folder::with_rows(ROWS, &format!("sleep 0.6; {RECORD}"));
    let mut child = folder.start();
    wait_for_a_call(&folder, &mut child);
    signal(&child, name);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(status));
    assert_eq!(lines(&stderr(&output)), ["fanfold: stopped; repeat the command with the same --data to resume"]);
    let [option, value] = folder.data_option();
    let summary = folder.summary(&[&option, &value]);
    // Calls in progress came to their end: none was made twice.
    assert_eq!((&summary["succeeded"], &summary["retries"]), (&serde_json::json!(ROWS), &serde_json::json!(0)));
    folder.assert_each_row_once(ROWS);
}

#[test]
fn ctrl_c_lets_calls_in_progress_end_and_says_nothing_of_errors() {
    stop("-INT", 130);
}

#[test]
fn being_terminated_is_the_same() {
    stop("-TERM", 143);
}

#[test]
fn after_ctrl_c_calls_have_more_time_than_after_sigterm() {
    for (name, most) in [("-INT", "at most 2m"), ("-TERM", "at most 15s")] {
        let folder = Folder::with_rows(1, RECORD);
        let call = "touch begun; while [ ! -e go ]; do sleep 0.1; done";
        folder.write("policy.yaml", with_batch_api(&format!("{{command: [sh, -c, '{call}'], timeout: 60s}}")));
        let mut child = folder.start();
        let mut says = BufReader::new(child.stderr.take().unwrap());
        folder.wait_for("begun", &mut child);
        signal(&child, name);
        let said = read_to(&mut says, "waiting for the calls");
        folder.write("go", "");
        child.wait().unwrap();
        assert!(said.contains(&format!("waiting for the calls in progress to end, {most}; ")), "{said}");
        let [option, value] = folder.data_option();
        let summary = folder.summary(&[&option, &value]);
        assert_eq!((&summary["succeeded"], &summary["calls"]), (&json!(1), &json!(1)), "{summary}");
    }
}

#[test]
fn a_second_ctrl_c_waits_for_nothing() {
    let folder = Folder::with_rows(8, "touch begun; sleep 100");
    folder.write("policy.yaml", with_batch_api("{command: [sh, -c, 'touch begun; sleep 100'], timeout: 90s}"));
    let mut child = folder.start();
    let mut says = BufReader::new(child.stderr.take().unwrap());
    folder.wait_for("begun", &mut child);
    signal(&child, "-INT");
    // Two that come together would be one.
    read_to(&mut says, "waiting for the calls");
    signal(&child, "-INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
}

#[test]
fn a_run_that_waits_for_a_receiver_of_notices_says_so() {
    let deaf = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::with_rows(2, "exit 1");
    let hook = format!("http://{}/hook", deaf.local_addr().unwrap());
    let policy = policy("content.shop", "exit 1").replace("max_attempts: 4", "max_attempts: 1");
    folder.write("policy.yaml", format!("{policy}notify: {{url: '{hook}'}}\n"));
    let mut child = folder.command(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let printed = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = printed.into_iter().find(|line| line.contains("every task is done")).unwrap();
    assert!(line.contains("waiting up to 30 s") && line.contains(&hook), "{line}");
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stdout).contains("failed              2"));
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let folder = Folder::with_rows(20, RECORD);
    for arguments in [&["--json"][..], &[]] {
        let mut child = folder.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(!stderr(&output).contains("ipe"), "{}", stderr(&output));
    }
    // Nor is it on standard error.
    let script = "\"$0\" run \"$1\" --json -v 2>&1 >/dev/null | head -n 1; exit ${PIPESTATUS[0]}";
    let output = Command::new("bash").args(["-c", script, env!("CARGO_BIN_EXE_fanfold")]).arg(folder.path()).output();
    assert_eq!(output.unwrap().status.code(), Some(0));
}

#[test]
fn there_are_no_colours_where_there_is_no_terminal() {
    let folder = Folder::with_rows(20, "echo no >&2; exit 1");
    let output = folder.run(&["-vv"]);
    let all = [output.stdout, output.stderr].concat();
    assert!(all.len() > 1_000 && !all.contains(&0x1b), "{}", String::from_utf8_lossy(&all));
}

#[test]
fn a_server_is_ended_by_sigterm_as_by_ctrl_c() {
    for name in ["-TERM", "-INT"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_fanfold"))
            .args(["up", "--listen", "localhost:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        printed.read_line(&mut line).unwrap();
        assert!(line.contains("http://127.0.0.1:"), "{line}");
        line.clear();
        printed.read_line(&mut line).unwrap();
        assert!(line.starts_with("The dashboard is at http://127.0.0.1:"), "{line}");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let mut rest = String::new();
        printed.read_to_string(&mut rest).unwrap();
        assert!(lines(&rest).is_empty(), "{rest}");
    }
}

#[test]
fn a_server_under_nohup_outlives_its_terminal() {
    let mut child = Command::new("nohup")
        .args([env!("CARGO_BIN_EXE_fanfold"), "up", "--listen", "localhost:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(printed.any(|line| line.starts_with("The dashboard is at")));
    signal(&child, "-HUP");
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none());
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
