//! Runs that are ended, and go on.

use std::process::{Child, Output, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::client::stack::command;
use crate::folder::{Folder, RECORD, policy, signal, stderr, summary, until};
use crate::up::Server;

const ROWS: usize = 400;

/// Takes long enough for a run to be ended in the middle.
fn slow() -> String {
    format!("sleep 0.3; {RECORD}")
}

/// Waits until the batch API saw so many calls, or the run has ended.
fn wait_for_calls(folder: &Folder, child: &mut Child, calls: usize) {
    let count = || std::fs::read_dir(folder.path().join("calls")).unwrap().count();
    until("enough calls", || match count() {
        made if made < calls && child.try_wait().unwrap().is_none() => Err(format!("{made} of {calls} calls")),
        _ => Ok(()),
    });
}

/// The folder of a slow run that got this signal after so many calls.
fn ended_after(calls: usize, name: &str) -> Folder {
    let folder = Folder::with_rows(ROWS, &slow());
    let mut child = folder.start();
    wait_for_calls(&folder, &mut child, calls);
    signal(&child, name);
    child.wait().unwrap();
    folder
}

#[test]
fn a_run_that_is_killed_again_and_again_handles_every_row_once() {
    let folder = Folder::with_rows(ROWS, &slow());
    // Before the first call, and then ever later.
    let mut killed = 0;
    for calls in [0, 1, 7, 20, 31, 50] {
        let mut child = folder.start();
        std::thread::sleep(Duration::from_millis(20));
        wait_for_calls(&folder, &mut child, calls);
        if child.try_wait().unwrap().is_none() {
            signal(&child, "-KILL");
            killed += 1;
        }
        child.wait().unwrap();
    }
    assert!(killed > 2, "the runs were too quick to be killed");
    let [option, value] = folder.data_option();
    let summary = folder.summary(&[&option, &value]);
    folder.assert_each_row_once(ROWS);
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&json!(ROWS), &json!(0)));
    assert_eq!((&summary["notices"], &summary["resumed"]), (&json!(1), &json!(true)));
}

#[test]
fn a_run_that_is_interrupted_goes_on() {
    let folder = Folder::with_rows(ROWS, &slow());
    let mut child = folder.start();
    wait_for_calls(&folder, &mut child, 5);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("repeat the command with the same --data to resume"), "{}", stderr(&output));
    let [option, value] = folder.data_option();
    assert_eq!(folder.summary(&[&option, &value])["succeeded"], ROWS);
    folder.assert_each_row_once(ROWS);
}

#[test]
fn a_run_goes_on_with_its_file_whatever_its_calls_wrote_beside_it() {
    let folder = Folder::with_rows(ROWS, &format!("echo x >> done.csv; {}", slow()));
    let mut child = folder.start();
    wait_for_calls(&folder, &mut child, 3);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let [option, value] = folder.data_option();
    assert_eq!(folder.summary(&[&option, &value])["succeeded"], ROWS);
    folder.assert_each_row_once(ROWS);
}

#[test]
fn a_finished_run_is_not_run_again_unless_asked_to() {
    let folder = Folder::with_rows(10, RECORD);
    let [option, value] = folder.data_option();
    let first = folder.summary(&[&option, &value]);
    let calls = folder.calls();
    let mut shown = folder.summary(&[&option, &value]);
    assert_eq!((&first["shown_again"], &shown["shown_again"]), (&json!(false), &json!(true)));
    shown["shown_again"] = json!(false);
    assert_eq!(shown, first);
    let printed = String::from_utf8(folder.run(&[&option, &value]).stdout).unwrap();
    assert!(printed.contains("finished before, at 20") && printed.contains("--again"), "{printed}");
    assert_eq!(folder.calls(), calls);
    let again = folder.summary(&[&option, &value, "--again"]);
    assert_ne!(again["fanout"], first["fanout"]);
    assert_eq!((&again["succeeded"], &again["duplicates"]), (&json!(10), &json!(0)));
}

#[test]
fn an_unfinished_run_does_not_go_on_with_other_tasks() {
    let folder = ended_after(1, "-KILL");
    let [option, value] = folder.data_option();
    for change in [
        ("rows.csv", "ref,shop\nR-1,a\n".to_owned()),
        ("policy.yaml", policy("content.shop", RECORD).replace("kind: row", "kind: line")),
    ] {
        folder.write(change.0, change.1);
        let output = folder.run(&[&option, &value]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("unfinished run"), "{}", stderr(&output));
    }
}

#[test]
fn a_data_folder_belongs_to_its_run() {
    let folder = Folder::with_rows(10, RECORD);
    let [option, value] = folder.data_option();
    let first = folder.summary(&[&option, &value]);
    // The same rows in another place are another run.
    let other = Folder::with_rows(10, RECORD);
    let refused = |folder: &Folder, arguments: &[&str], parts: &[&str]| {
        let output = folder.run(&[&[option.as_str(), &value], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        for part in parts {
            assert!(stderr(&output).contains(part), "`{part}` is not in: {}", stderr(&output));
        }
    };
    let belongs = ["finished run of", "rows.csv; a data folder belongs to its run", "--data"];
    refused(&other, &[], &belongs);
    refused(&other, &["--again"], &belongs);
    refused(&folder, &["--limit", "5"], &["other tasks", "--again", "another folder"]);
    assert!(other.calls().is_empty());
    assert_eq!(folder.summary(&[&option, &value])["fanout"], first["fanout"]);
    assert_eq!(folder.summary(&[&option, &value, "--again", "--limit", "5"])["total"], 5);
}

#[test]
fn a_folder_that_was_moved_is_the_same_run() {
    let folder = Folder::with_rows(10, RECORD);
    let [option, value] = folder.data_option();
    folder.summary(&[&option, &value]);
    let moved = Folder::new();
    for file in ["rows.csv", "policy.yaml"] {
        std::fs::rename(folder.path().join(file), moved.path().join(file)).unwrap();
    }
    assert_eq!(moved.summary(&[&option, &value])["shown_again"], true);
    // From then on it belongs there.
    folder.write("rows.csv", "ref,shop\nR-1,a\n");
    assert_eq!(moved.summary(&[&option, &value])["shown_again"], true);
}

/// Moves the files of a folder to another one; its data folder stays where it is.
fn moved(folder: &Folder) -> Folder {
    let moved = Folder::new();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::rename(file.path(), moved.path().join(file.file_name())).unwrap();
        }
    }
    moved
}

#[test]
fn an_unfinished_run_goes_on_in_a_folder_of_another_name() {
    let folder = ended_after(30, "-INT");
    let [option, value] = folder.data_option();
    let moved = moved(&folder);
    // Its file is found there by its name.
    moved.write("done.csv", "x\n");
    let summary = moved.summary(&[&option, &value]);
    assert_eq!((&summary["succeeded"], &summary["resumed"]), (&json!(ROWS), &json!(true)), "{summary}");
}

#[test]
fn a_run_that_went_on_in_another_folder_belongs_there() {
    let folder = ended_after(3, "-INT");
    let [option, value] = folder.data_option();
    let moved = moved(&folder);
    let mut command = moved.command(&["--json", &option, &value]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_calls(&moved, &mut child, 3);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    folder.write("rows.csv", "ref,shop\nR-1,a\n");
    let summary = moved.summary(&[&option, &value]);
    assert_eq!((&summary["succeeded"], &summary["resumed"]), (&json!(ROWS), &json!(true)), "{summary}");
}

#[test]
fn rates_and_units_after_a_resume_are_of_the_last_leg() {
    let folder = ended_after(30, "-INT");
    let [option, value] = folder.data_option();
    let summary = folder.summary(&[&option, &value]);
    let done = summary["done_in_last_leg"].as_u64().unwrap();
    // What was called before need not have been acked by then.
    assert!((1..=ROWS as u64).contains(&done), "{done} of {ROWS}");
    let printed = String::from_utf8(folder.run(&[&option, &value]).stdout).unwrap();
    let leg = format!("{ROWS} tasks, {done} of them since it was resumed, in ");
    assert!(done == ROWS as u64 || printed.contains(&leg), "{printed}");
}

#[test]
fn a_second_runner_of_one_folder_is_refused() {
    // The first is at work for much longer than the second takes to start.
    let folder = Folder::with_rows(ROWS, &format!("{RECORD}; sleep 4"));
    let mut child = folder.start();
    wait_for_calls(&folder, &mut child, 1);
    let [option, value] = folder.data_option();
    let output = folder.run(&[&option, &value]);
    signal(&child, "-KILL");
    child.wait().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("another fanfold"), "{}", stderr(&output));
}

/// What a run prints that ends by itself, as it must.
fn ends(mut child: Child) -> Output {
    for _ in 0..1_200 {
        if child.try_wait().unwrap().is_some() {
            return child.wait_with_output().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(&child, "-KILL");
    panic!("the run does not end: {}", stderr(&child.wait_with_output().unwrap()));
}

/// `fanfold up` goes on with its tasks, and delivers the notice of its end.
#[test]
fn a_run_that_was_cancelled_while_it_was_stopped_ends() {
    let slow = format!("{RECORD}; sleep 1");
    let folder = Folder::with_rows(ROWS, &slow);
    let mut child = folder.start();
    wait_for_calls(&folder, &mut child, 1);
    // By then every row is registered.
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let server = Server::start_with(&folder, &policy("content.shop", &slow), &[]);
    let id = server.get("/fanouts").1["fanouts"][0]["id"].as_str().unwrap().to_owned();
    let cancel = command(&format!("http://{}", server.address), &["cancel", &id]).output().unwrap();
    assert_eq!(cancel.status.code(), Some(0), "{}", stderr(&cancel));
    let path = format!("/fanouts/{id}");
    server.wait(&path, "ended", &json!(true));
    until("the notice of the end", || {
        let fanout = server.get(&path).1;
        if fanout["notified_at"].is_null() { Err(fanout.to_string()) } else { Ok(()) }
    });
    drop(server);
    let cancelled = summary(&ends(folder.start()));
    assert_eq!((&cancelled["ended"], &cancelled["fanout"]), (&json!("cancelled"), &json!(id)), "{cancelled}");
    let count = |field: &str| cancelled[field].as_u64().unwrap();
    assert!(count("succeeded") > 0 && count("missing") > 0, "{cancelled}");
    assert_eq!(count("succeeded") + count("missing"), ROWS as u64, "{cancelled}");
}
