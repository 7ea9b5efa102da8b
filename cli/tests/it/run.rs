//! Runs that go well, and what they say.

use serde_json::{Value, json};

use crate::folder::{Folder, RECORD, policy, stderr, summary};

#[test]
fn every_row_is_handled_once() {
    let folder = Folder::with_rows(300, RECORD);
    let summary = folder.summary(&[]);
    folder.assert_each_row_once(300);
    let calls = folder.calls().len();
    for (field, expected) in [
        ("total", json!(300)),
        ("succeeded", json!(300)),
        ("failed", json!(0)),
        ("duplicates", json!(0)),
        ("notices", json!(1)),
        ("retries", json!(0)),
        ("resumed", json!(false)),
        ("batches", json!(calls)),
        ("calls", json!(calls)),
        ("mean_batch", json!(300.0 / calls as f64)),
    ] {
        assert_eq!(summary[field], expected, "{field}");
    }
    assert_eq!(summary["notice"]["type"], "fanout.completed");
    assert_eq!(summary["notice"]["data"]["fanout"], summary["fanout"]);
    // Per task its key and itself, and then bundles and batches.
    assert!(summary["write_units"].as_f64().unwrap() > 2.0 * 300.0);
    for field in ["wall_ms", "read_units", "sqs_requests", "dynamodb_requests"] {
        assert!(summary[field].as_f64().unwrap() > 0.0, "{field}");
    }
    for way in ["registered_to_called", "called_to_answered", "answered_to_acked", "called_to_acked"] {
        let [p50, p90, p99] = ["p50", "p90", "p99"].map(|at| summary["latency_ms"][way][at].as_f64().unwrap());
        assert!(0.0 < p50 && p50 <= p90 && p90 <= p99, "{way}: {}", summary["latency_ms"]);
    }
    let dollars = &summary["dollars_per_million_tasks"];
    let services = ["dynamodb_writes", "dynamodb_reads", "sqs", "lambda"].map(|of| dollars[of].as_f64().unwrap());
    assert!(services.iter().all(|dollars| *dollars > 0.0), "{dollars}");
    assert!((services.iter().sum::<f64>() - dollars["total"].as_f64().unwrap()).abs() < 1e-9, "{dollars}");
    assert_eq!(summary["invocations"]["ProduceFunction"], 1);
    assert!(summary["invocations"]["HandleFunction"].as_u64().unwrap() > 0);
}

#[test]
fn people_get_a_summary_and_progress() {
    let folder = Folder::with_rows(20, RECORD);
    let output = folder.run(&[]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    for part in [
        "20 tasks in",
        "succeeded",
        "fewer than with one call per task",
        "tasks per batch",
        "completed: 20 succeeded, 0 failed",
        "registered to called",
        "Lambda invocations",
    ] {
        assert!(text.contains(part), "{part}: {text}\n{}", stderr(&output));
    }
}

/// Long enough for some lines.
#[test]
fn progress_is_reported_in_lines_that_can_be_trusted() {
    let folder = Folder::with_rows(400, "sleep 1");
    let output = folder.run(&[]);
    let printed = stderr(&output);
    let lines: Vec<&str> = printed.lines().filter(|line| line.starts_with("registered")).collect();
    assert!(!lines.is_empty(), "{printed}");
    for line in lines {
        let count = |name: &str| -> u64 {
            let rest = line.split(&format!("{name} ")).nth(1).unwrap();
            rest.split([',', ' ', ';']).next().unwrap().parse().unwrap()
        };
        assert!(count("registered") >= count("batched") && count("batched") >= count("handled"), "{line}");
        assert!(count("handled") >= count("acked") && line.contains("of 400; "), "{line}");
        let (_, rest) = line.split_once(" failed, ").unwrap();
        assert!(rest.contains(" batch") && rest.contains(" retr"), "{line}");
    }
}

#[test]
fn outcomes_are_reported_by_row_and_reason() {
    let folder = Folder::new();
    let rows = (0..12).map(|n| json!({"n": n, "shop": {"name": "a"}}).to_string()).collect::<Vec<_>>().join("\n");
    folder.write("rows.ndjson", rows);
    // Refuses two for good, and the first time everything.
    folder.write(
        "answer.sh",
        r#"
        if [ ! -e tried ]; then touch tried; echo "not now" >&2; exit 1; fi
        input=$(cat)
        ids=$(echo "$input" | grep -o '"id":"[^"]*","content":{"n":[0-9]*' | sed 's/"id":"\([^"]*\)".*"n":\([0-9]*\)/\1 \2/')
        echo "$ids" | awk '
          BEGIN { printf "{\"members\":[" }
          { if (NR > 1) printf ","
            if ($2 == 3 || $2 == 7) printf "{\"id\":\"%s\",\"outcome\":\"failed\",\"error\":\"no stock\"}", $1
            else printf "{\"id\":\"%s\",\"outcome\":\"succeeded\"}", $1 }
          END { printf "]}" }'
        "#,
    );
    let policy = policy("content.shop.name", "sh answer.sh")
        .replace("content.ref", "content.n")
        .replace("max_batch: 8", "max_batch: 50");
    folder.write("policy.yaml", policy);
    let summary = folder.summary(&[]);
    assert_eq!((&summary["succeeded"], &summary["failed"]), (&json!(10), &json!(2)), "{summary}");
    assert_eq!(summary["failures"], json!({"no stock": 2}));
    let named: Vec<(&Value, &Value)> =
        summary["failed_tasks"].as_array().unwrap().iter().map(|task| (&task["row"], &task["key"])).collect();
    assert_eq!(named, [(&json!(4), &json!("3")), (&json!(8), &json!("7"))]);
    assert_eq!(summary["retries"], 1);
}

/// Several pages of the file: its rows are brought in by two partitions.
#[test]
fn rows_of_a_large_file_are_named_by_their_numbers() {
    let folder = Folder::new();
    let row = |n: usize| format!("{}\n", json!({"n": n, "shop": n % 3, "pad": "x".repeat(100_000)}));
    folder.write("rows.ndjson", (1..=200).map(row).collect::<String>());
    let policy = policy("content.shop", "cat >/dev/null; echo no >&2; exit 1").replace("content.ref", "content.n");
    folder.write("policy.yaml", policy.replace("max_attempts: 4", "max_attempts: 1"));
    let summary = folder.summary(&[]);
    assert_eq!((&summary["total"], &summary["failed"]), (&json!(200), &json!(200)));
    let tasks = summary["failed_tasks"].as_array().unwrap();
    let named: Vec<(Value, Value)> = tasks.iter().map(|task| (task["row"].clone(), task["key"].clone())).collect();
    assert_eq!(named, (1..=200).map(|n| (json!(n), json!(n.to_string()))).collect::<Vec<_>>());
    // One begins pages for 30 seconds only, so a busy machine may need more.
    assert!(summary["invocations"]["ProduceFunction"].as_u64().unwrap() >= 2, "{summary}");
}

#[test]
fn a_notice_that_is_not_delivered_is_reported_with_url_and_cause() {
    let folder = Folder::with_rows(9, "echo no >&2; exit 1");
    let text = policy("content.shop", "exit 1").replace("max_attempts: 4", "max_attempts: 1");
    folder.write("policy.yaml", format!("{text}notify: {{url: 'http://127.0.0.1:9/hook'}}\n"));
    let summary = folder.summary(&[]);
    let undelivered = &summary["undelivered"][0];
    assert_eq!(undelivered["to"], "http://127.0.0.1:9/hook", "{summary}");
    assert_eq!(undelivered["notices"], summary["batches"]);
    assert!(undelivered["error"].as_str().unwrap().contains("refused"), "{undelivered}");
    let output = folder.run(&[]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("notices of failed tasks to http://127.0.0.1:9/hook: "), "{printed}");
}

#[test]
fn a_row_with_a_known_key_is_dropped_and_counted() {
    let folder = Folder::new();
    folder.write("rows.csv", "ref,shop\nR-1,a\nR-2,a\nR-1,b\nR-1,a\n");
    folder.write("policy.yaml", policy("content.shop", RECORD));
    let summary = folder.summary(&[]);
    assert_eq!((&summary["total"], &summary["succeeded"], &summary["duplicates"]), (&json!(4), &json!(2), &json!(2)));
    let members: usize = folder.calls().values().map(|call| call["members"].as_array().unwrap().len()).sum();
    assert_eq!(members, 2);
}

#[test]
fn rows_without_a_key_are_named_since_only_one_of_them_is_handled() {
    let folder = Folder::new();
    folder.write("rows.csv", "ref,shop\nR-1,a\n,a\n,a\nR-4,a\n,b\n");
    folder.write("policy.yaml", policy("content.shop", RECORD));
    let output = folder.run(&["--json"]);
    assert_eq!(summary(&output)["duplicates"], 2);
    let said = stderr(&output);
    assert!(said.contains("rows.csv: 3 rows have an empty `key` (lines 3, 4, 6); only one of them will be"), "{said}");
    folder.write("rows.csv", "ref,shop\nR-1,a\n,a\n");
    assert!(!stderr(&folder.run(&[])).contains("an empty `key`"));
}

#[test]
fn a_file_without_rows_is_done_at_once() {
    let folder = Folder::with_rows(0, RECORD);
    let summary = folder.summary(&[]);
    assert_eq!((&summary["total"], &summary["notices"], &summary["batches"]), (&json!(0), &json!(1), &json!(0)));
    let text = String::from_utf8(folder.run(&[]).stdout).unwrap();
    assert!(text.contains("no rows in the file") && !text.contains("per task"), "{text}");
}

#[test]
fn other_delimiters_are_recognised_and_reported() {
    for (delimiter, name) in [(";", "semicolons"), ("\t", "tabs")] {
        let folder = Folder::new();
        folder.write("rows.csv", "ref,shop,weight\n1,a,\"2,5\"\n2,b,3\n".replace(',', delimiter));
        folder.write("policy.yaml", policy("content.shop", RECORD));
        let output = folder.run(&["--json"]);
        assert!(stderr(&output).contains(&format!("so {name} separate the fields")), "{}", stderr(&output));
        let calls = folder.calls();
        let shops: Vec<&Value> = calls.values().map(|call| &call["members"][0]["content"]["shop"]).collect();
        assert!(shops.len() == 2 && shops.contains(&&json!("a")), "{calls:?}");
    }
}

#[test]
fn a_check_prints_a_document_if_asked_to() {
    let output = Folder::with_rows(3, RECORD).run(&["--check", "--json"]);
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((printed, stderr(&output).as_str()), (json!({"tasks": 3, "reached": true}), ""));
}

#[test]
fn the_first_rows_can_be_asked_for() {
    let folder = Folder::with_rows(50, RECORD);
    assert_eq!(folder.summary(&["--limit", "20"])["total"], 20);
    folder.assert_each_row_once(20);
}

/// It has the pipes of the command's standard output and errors, which therefore do not end.
#[test]
fn what_a_command_leaves_in_the_background_is_not_waited_for() {
    let folder = Folder::with_rows(20, "cat >/dev/null; sleep 60 & exit 0");
    let summary = folder.summary(&[]);
    assert_eq!((&summary["succeeded"], &summary["retries"]), (&json!(20), &json!(0)), "{summary}");
    assert_eq!(summary["calls"], summary["batches"], "{summary}");
}

#[test]
fn a_batch_api_that_never_succeeds_fails_every_row() {
    let folder = Folder::with_rows(9, "echo the printer is on fire >&2; exit 3");
    let summary = folder.summary(&[]);
    assert_eq!((&summary["failed"], &summary["notices"]), (&json!(9), &json!(1)));
    let failures = summary["failures"].as_object().unwrap();
    assert_eq!(failures.len(), 1);
    let reason = failures.keys().next().unwrap();
    assert_eq!(reason, "gave up after 4 attempts: the program ended with exit status: 3: the printer is on fire");
}

/// No task has failed until the last attempt, so progress alone does not show why nothing gets done.
#[test]
fn a_run_whose_calls_bring_no_outcomes_says_why_once() {
    let folder = Folder::with_rows(20, "");
    let text = policy("content.shop", "echo \"{\\\"ok\\\":true}\"").replace("max_attempts: 4", "max_attempts: 3");
    folder.write("policy.yaml", text.replace("{base: 1s, max: 2s}", "{base: 100ms, max: 100ms}"));
    let output = folder.run(&["--json"]);
    assert_eq!(summary(&output)["failed"], 20);
    let said = stderr(&output);
    let why = "fanfold: calls bring no outcomes (`max_attempts` is 3): the answer is not {\"members\": [...]}";
    assert_eq!(said.matches(why).count(), 1, "{said}");
}
