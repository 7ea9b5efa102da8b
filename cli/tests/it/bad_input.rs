//! What cannot be used is named, with what is allowed, and nothing is done.

use std::process::Output;

use crate::folder::{Folder, RECORD, policy, stderr};

/// Runs a folder that cannot be used; what it says must have all of `parts`.
fn refused(folder: &Folder, parts: &[&str]) {
    let data = folder.data();
    let output: Output = folder.run(&["--data", data.to_str().unwrap()]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(folder.calls().is_empty() && !data.exists(), "something was done: {text}");
}

fn with_policy(text: &str) -> Folder {
    let folder = Folder::with_rows(3, RECORD);
    folder.write("policy.yaml", text);
    folder
}

fn with_rows(name: &str, text: impl AsRef<[u8]>) -> Folder {
    let folder = Folder::new();
    folder.write("policy.yaml", policy("content.shop", RECORD));
    folder.write(name, text);
    folder
}

#[test]
fn policies() {
    let good = policy("content.shop", RECORD);
    refused(&with_policy(&good.replace("max_batch: 8", "maxbatch: 8")), &["policy.yaml:4:1", "maxbatch", "max_batch"]);
    refused(
        &with_policy(&good.replace("max_batch: 8", "max_batch: many")),
        &["policy.yaml:4:12: `max_batch`", "\"many\"", "a whole number"],
    );
    refused(
        &with_policy(&good.replace("max_batch: 8", "max_batch: 0")),
        &["policy.yaml:4:12: `max_batch`: is 0, 1 to 10000"],
    );
    refused(
        &with_policy(&good.replace("content.shop", "content.shop +")),
        &["policy.yaml", "`target`", "does not compile"],
    );
    refused(
        &with_policy(&good.replace("content.shop", "shop")),
        &["`target`", "refers to `shop`", "`kind` and `content`"],
    );
    refused(
        &with_policy(&good.replace("content.shop", "content.shop.lower()")),
        &["policy.yaml", "`target`", "calls `lower`", "lowerAscii"],
    );
    refused(&with_policy(&format!("{good}notify: {{}}\n")), &["policy.yaml:", "`notify`", "`url`, `queue`"]);
    refused(&with_policy("kind: row\n"), &["policy.yaml", "target"]);
    refused(&with_policy("kind: [\n"), &["policy.yaml:"]);
    refused(&with_policy(&good.replace("linger: 1s", "linger: 500us")), &["`linger`", "whole milliseconds"]);
}

#[test]
fn folders() {
    let folder = Folder::new();
    refused(&folder, &["has no policy.yaml"]);
    folder.write("policy.yaml", policy("content.shop", RECORD));
    refused(&folder, &["has no tasks", "*.csv"]);
    folder.write("a.csv", "ref,shop\n");
    folder.write("b.ndjson", "");
    // What macOS keeps beside files on other disks is no file of tasks.
    folder.write("._a.csv", "x");
    let pasted = format!("`--input {}`", folder.path().join("a.csv").display());
    refused(&folder, &["several files of tasks: a.csv, b.ndjson; ", &pasted, "`input: a.csv` in run.yaml"]);
    folder.write("run.yaml", "input: c.csv\n");
    refused(&folder, &["c.csv", "is not a file"]);
    folder.write("run.yaml", "begin: [x]\n");
    refused(&folder, &["run.yaml:1:1", "begin", "start"]);
    folder.write("run.yaml", "start: []\n");
    refused(&folder, &["run.yaml", "`start` is empty"]);
    folder.write("run.yaml", "start: [x]\nstart_timeout: 2h\n");
    refused(&folder, &["run.yaml", "`start_timeout`", "2h", "at most 1h"]);
    refused(&with_rows("run.yml", "start: [x]\n"), &["run.yml: is not read; rename it to run.yaml"]);
    refused(&with_rows("r.csv.gz", "x"), &["has no tasks", "Decompress it: gunzip -k ", "r.csv.gz"]);
    refused(&with_rows("r.tsv", "ref\tshop\n"), &["has no tasks", "Rename it: mv ", "r.tsv ", "r.csv"]);
    refused(&with_rows("r.gz", "x"), &["has no tasks; a *.csv, *.ndjson or *.jsonl file is expected\n"]);
}

#[test]
fn rows() {
    refused(
        &with_rows("r.csv", "ref,store\n1,a\n2,b\n"),
        &["r.csv:2", "`target`", "shop", "the columns are `ref`, `store`", "(2 rows: lines 2, 3)"],
    );
    refused(
        &with_rows("r.csv", "ref,shop\n1,a\n2\n3,c,d\n"),
        &["r.csv:3: has 1 field, ", "2 columns", "r.csv:4: has 3 fields"],
    );
    refused(&with_rows("r.csv", "ref,shop\r\n1,a\r\n2\r\n"), &["r.csv:3: has 1 field, "]);
    refused(&with_rows("r.csv", b"ref,shop\n1,\xff\n"), &["r.csv:2", "field 2 is not UTF-8"]);
    refused(&with_rows("r.csv", "ref,shop \n1,a\n"), &["the columns are `ref`, `shop `"]);
    let heavy = with_rows("r.csv", "ref,shop,kg\n1,a,2\n");
    heavy.write("policy.yaml", policy("content.shop", RECORD) + "weight: content.kg\nmax_weight: 9\n");
    refused(&heavy, &["r.csv:2: `weight`", "columns of CSV are texts: write double(content.…)"]);
    refused(&with_rows("r.csv", "ref,ref\n1,a\n"), &["r.csv:1", "two columns are named `ref`"]);
    refused(&with_rows("r.csv", "ref,\n1,a\n"), &["r.csv:1", "column 2 has no name"]);
    refused(&with_rows("r.csv", ""), &["r.csv", "must name the columns"]);
    refused(&with_rows("r.ndjson", "{\"ref\": 1, \"shop\": \"a\"}\n{\"ref\": 2,\n"), &["r.ndjson:2:", "is not JSON"]);
    refused(&with_rows("r.jsonl", "{\"ref\": 1}\n"), &["r.jsonl:1", "`target`", "shop"]);
    refused(
        &with_rows("r.jsonl", "{\"ref\": 1, \"shop\": {}}\n"),
        &["r.jsonl:1", "`target`", "a string, number, boolean"],
    );
    let many = "ref,store\n".to_owned() + &"1,a\n".repeat(500);
    refused(&with_rows("r.csv", many), &["(500 rows: lines 2, 3, 4, 5, 6, …)"]);
}

/// Readers of CSV accept them, and make many rows one.
#[test]
fn quotes_that_are_wrong() {
    let not_closed = "field 2: a quote is opened and not closed";
    refused(&with_rows("r.csv", "ref,shop\n1,a\n2,\"a\n3,a\n"), &["r.csv:3: ", not_closed]);
    refused(&with_rows("r.csv", "ref,\"shop\n1,a\n"), &["r.csv:1: ", not_closed]);
    let text_follows = "field 2: text follows the closing quote";
    refused(
        &with_rows("r.csv", "ref;shop\r\n1;\"a\"b\r\n2;a\r\n3;\"a\"b\r\n"),
        &["r.csv:2: ", text_follows, "(2 rows: lines 2, 4)"],
    );
    let stray = "ref,shop,note\n".to_owned() + &"1,a,b\n".repeat(200);
    let stray = format!("{stray}2,\"a,b\n{}3,\"a,b\n4,a,b\n", "1,a,b\n".repeat(200));
    refused(&with_rows("r.csv", stray), &["r.csv:202: ", text_follows, ", which is 201 lines below"]);
    // A quote within a field is text, and so are two in quotes.
    let folder = with_rows("r.csv", "ref,shop\n1,5\" pipe\n2,\"5\"\" pipe\"\n");
    let summary = folder.summary(&[]);
    assert_eq!((&summary["succeeded"], &summary["batches"]), (&2.into(), &1.into()), "{summary}");
}

#[test]
fn json_that_is_not_one_value_per_line() {
    let array = "[\n  {\"ref\": 1, \"shop\": \"a\"}\n]\n";
    refused(&with_rows("r.json", array), &["has no tasks", "jq -c '.[]' ", "r.json > "]);
    let folder = with_rows("r.json", array);
    folder.write("run.yaml", "input: r.json\n");
    refused(&folder, &["r.json: is neither", "jq -c '.[]'"]);
    refused(&with_rows("r.ndjson", array), &["r.ndjson:1: begins a value of several lines", "jq -c '.[]'"]);
    refused(&with_rows("r.ndjson", "{\n\"ref\": 1\n}\n"), &["begins a value of several lines", "jq -c . "]);
    refused(
        &with_rows("r.ndjson", "[{\"ref\": 1}]\n"),
        &["r.ndjson:1: `target`", "the line is an array", "jq -c '.[]'"],
    );
}

#[test]
fn yaml_is_explained() {
    let good = policy("content.shop", RECORD);
    let target = r#"double(content.w) > 30.0 ? "heavy" : "light""#;
    let quoted = format!("quote the whole value: target: '{target}'");
    refused(&with_policy(&good.replace("content.shop", target)), &["policy.yaml:2:", "not valid YAML", &quoted]);
    refused(&with_policy(&good.replace("content.shop", "content.shop + \" #1\"")), &["` #`", "comment", "quote"]);
    refused(&with_policy(""), &["policy.yaml: is empty", "`kind`, `target` and `batch_api`"]);
    refused(&with_policy("# to be written\n"), &["policy.yaml: is empty"]);
    refused(&with_policy("[1]\n"), &["policy.yaml", "`kind`, `target` and `batch_api` is expected"]);
    refused(&with_policy(&format!("{good}kind: row\n")), &["the field `kind` is there twice"]);
}

/// As its documentation says it: with the quotes that YAML needs.
#[test]
fn the_example_of_a_choice_is_valid() {
    let folder = with_rows("r.csv", "ref,shop,w\n1,a,31\n2,a,3\n");
    let target = r#"'double(content.w) > 30.0 ? "heavy" : "light"'"#;
    folder.write("policy.yaml", policy("content.shop", RECORD).replace("content.shop", target));
    assert_eq!(folder.summary(&[])["batches"], 2);
}

#[test]
fn addresses_to_listen_on() {
    let folder = Folder::with_rows(1, RECORD);
    for (address, part) in [
        (":8086", "such as 127.0.0.1:8086 or localhost:8086"),
        ("8086", "such as 127.0.0.1:8086"),
        ("localhost", "HOST:PORT is expected"),
        ("no-such-host.invalid:80", "no-such-host.invalid:80"),
        ("127.0.0.1:99999", "HOST:PORT is expected"),
    ] {
        let output = folder.run(&["--listen", address]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    assert_eq!(folder.summary(&["--listen", "localhost:0"])["succeeded"], 1);
}

#[test]
fn batch_apis() {
    let good = policy("content.shop", RECORD);
    let batch_api = |batch_api: &str| with_policy(&good.replace(good.lines().last().unwrap(), batch_api));
    refused(
        &batch_api("batch_api: {url: 'http://127.0.0.1:9/x'}"),
        &["`batch_api.url`", "nothing answers at http://127.0.0.1:9/x"],
    );
    refused(&batch_api("batch_api: {url: 'http://example.com/x'}"), &["`batch_api.url`", "https://"]);
    refused(&batch_api("batch_api: {url: 'http://127.0.0.1:${PORT}/x'}"), &["${PORT}", "run.yaml"]);
    let queue = "https://sqs.eu-west-1.amazonaws.com/123456789012/labels";
    refused(
        &batch_api(&format!("batch_api: {{sqs: '{queue}', answers_within: 1h}}")),
        &["policy.yaml: `batch_api.sqs`: ", "--listen HOST:PORT"],
    );
    refused(
        &batch_api("batch_api: {url: 'http://127.0.0.1:9/x', answers_within: 1h}"),
        &["`batch_api.answers_within`: without --listen nobody can post outcomes", "nothing answers"],
    );
    refused(
        &batch_api("batch_api: {command: [no-such-program]}"),
        &["`batch_api.command`", "no program `no-such-program`"],
    );
    let folder = batch_api("batch_api: {url: 'http://127.0.0.1:${PORT}/x'}");
    folder.write("run.yaml", "start: [sh, -c, 'echo no paper >&2; exit 4']\n");
    refused(&folder, &["run.yaml", "exit status: 4", "before it listened", "no paper"]);
    folder.write("run.yaml", "start: [no-such-program]\n");
    refused(&folder, &["run.yaml", "`start`: there is no program `no-such-program`"]);
    let folder = batch_api("batch_api: {command: [./book.sh]}");
    folder.write("book.sh", "#!/bin/sh\n");
    refused(&folder, &["`batch_api.command`", "`./book.sh` is not executable", "chmod +x"]);
    folder.write("policy.yaml", good.replace(good.lines().last().unwrap(), "batch_api: {command: [book.sh]}"));
    refused(&folder, &["no program `book.sh` in PATH; `./book.sh` is one"]);
}

/// What calls need of the environment, which does not change while a run goes on.
#[test]
fn environments() {
    let request = "request: {headers: {X-Key: \"${secret.NOWHERE}\"}}";
    let policy = format!("kind: row\ntarget: kind\nbatch_api: {{url: \"http://127.0.0.1:9/\", {request}}}\n");
    refused(&with_policy(&policy), &["policy.yaml", "there is no secret `NOWHERE`", "FANFOLD_SECRET_NOWHERE"]);
}
