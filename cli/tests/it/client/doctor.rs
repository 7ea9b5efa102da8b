//! `fanfold doctor`: what it finds, and what it says to do.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Output;

use serde_json::{Value, json};

use super::aws_cli::{aws_cli, stacks, with_aws_cli};
use super::stack::{Stack, code, command};
use crate::folder::{Folder, stderr, until, with_batch_api};

/// The checks of a verdict, as one text.
fn of(output: &Output, verdict: &str) -> String {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)));
    let checks = document["checks"].as_array().unwrap().iter().filter(|check| check["verdict"] == verdict);
    checks.map(|check| format!("{} -> {}\n", check["says"], check["fix"])).collect()
}

#[test]
fn a_stack_in_order_is_in_order() {
    let stack = Stack::start();
    let text = stack.ok(&["doctor"]);
    for part in ["the API answers: version ", "nothing is stale or in error", "policies for 1 kind"] {
        assert!(text.contains(part) && !text.contains("wrong"), "`{part}` is not in: {text}");
    }
    stack.ok(&["pause", "--kind", "row"]);
    let output = stack.run(&["doctor", "--json"]);
    assert_eq!(code(&output), 0);
    assert!(of(&output, "warning").contains("kind row is paused since "), "{}", of(&output, "warning"));
    stack.ok(&["resume", "--kind", "row"]);
    stack.ok(&["pause", "--kind", "row", "--target", "NY 5"]);
    let text = stack.ok(&["doctor"]);
    assert!(text.ends_with("\n           fanfold resume --kind row --target 'NY 5'"), "{text}");
}

/// A batch API that refuses every call.
fn refuses() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 65_536]);
            let _ = stream
                .write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 12\r\nconnection: close\r\n\r\nno such user");
        }
    });
    url
}

#[test]
fn a_kind_that_stands_still_is_shown_with_the_answer_and_the_next_probe() {
    let stack = Stack::with(&with_batch_api(&format!("{{url: '{}'}}", refuses())));
    let task = |n: usize| json!({"kind": "row", "content": {"ref": n, "shop": format!("s{n}")}});
    let (status, answer) = stack.server.post("/tasks", &json!({"tasks": (0..6).map(task).collect::<Vec<_>>()}));
    assert_eq!(status, 202, "{answer}");
    until("a kind that stands still", || {
        let health = stack.server.get("/health").1;
        if health["standing_still"][0].is_null() { Err(health.to_string()) } else { Ok(()) }
    });
    let output = stack.run(&["doctor", "--json"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let wrong = of(&output, "wrong");
    assert!(wrong.contains("kind row stands still since 20"), "{wrong}");
    assert!(wrong.contains("401") && wrong.contains("the next probe is due at 20"), "{wrong}");
    assert!(!wrong.contains("standing_still"), "{wrong}");
    let id = stack.open(&["--items", "1", "--seal"]);
    let task = json!({"id": format!("{id}:{id}:0"), "kind": "row", "content": {"ref": 7, "shop": "s7"}});
    assert_eq!(stack.server.post("/tasks", &json!({"tasks": [task]})).0, 202);
    let text = stack.ok(&["status", &id]);
    assert!(text.contains("    kind row stands still since 20") && text.contains("401"), "{text}");
}

#[test]
fn a_stack_that_does_not_answer_is_wrong() {
    let output = command("http://127.0.0.1:1", &["doctor", "--json"]).output().unwrap();
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(of(&output, "wrong").contains("no stack answers at http://127.0.0.1:1"), "{}", of(&output, "wrong"));
}

/// What AWS says of a stack with a queue that is not read, an alarm that rings, and a small account.
fn ill(folder: &Folder, url: &str) {
    let resource =
        |kind: &str, name: &str| json!({"ResourceType": kind, "LogicalResourceId": name, "PhysicalResourceId": name});
    let source = |state: &str| json!({"State": state, "ScalingConfig": {"MaximumConcurrency": 20}});
    let alarm = |name: &str, state: &str| json!({"AlarmName": name, "StateValue": state, "AlarmDescription": format!("{state} of a queue"), "AlarmActions": []});
    let rings = json!({"ResourceType": "AWS::CloudWatch::Alarm", "LogicalResourceId": "QueueAgeAlarm",
                       "PhysicalResourceId": "shop-Age"});
    let resources = [
        resource("AWS::Lambda::EventSourceMapping", "GroupFunctionSqs"),
        resource("AWS::Lambda::EventSourceMapping", "HandleFunctionSqs"),
        rings,
        resource("AWS::SQS::Queue", "shop-Queue"),
    ];
    let answers = [
        ("cloudformation describe-stacks", stacks(url)),
        ("cloudformation list-stack-resources --stack-name shop", json!({"StackResourceSummaries": resources})),
        ("lambda get-event-source-mapping --uuid GroupFunctionSqs", source("Disabled")),
        ("lambda get-event-source-mapping", source("Enabled")),
        ("lambda get-account-settings", json!({"AccountLimit": {"UnreservedConcurrentExecutions": 10}})),
        (
            "cloudwatch describe-alarms --alarm-names shop-Age",
            json!({"MetricAlarms": [alarm("shop-Age", "ALARM"), alarm("shop-Fine", "OK")]}),
        ),
    ];
    aws_cli(folder, &answers);
}

#[test]
fn what_aws_says_of_a_deployed_stack_is_told() {
    let (folder, stack) = (Folder::new(), Stack::start());
    ill(&folder, &format!("http://{}", stack.server.address));
    let output = with_aws_cli(&folder, &["doctor", "--stack", "shop", "--json"]).output().unwrap();
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let (wrong, warnings, ok) = (of(&output, "wrong"), of(&output, "warning"), of(&output, "ok"));
    assert!(wrong.contains("the queue of GroupFunctionSqs is not read: its event source is Disabled"), "{wrong}");
    assert!(wrong.contains("QueueAgeAlarm rings: ALARM of a queue") && !wrong.contains("OK of a queue"), "{wrong}");
    assert!(wrong.contains("docs/operations.md has a runbook for QueueAgeAlarm"), "{wrong}");
    assert!(warnings.contains("runs 10 functions at once, and the stack's event sources may ask for 40"), "{warnings}");
    assert!(warnings.contains("nobody hears the alarms"), "{warnings}");
    assert!(ok.contains("UPDATE_COMPLETE") && ok.contains("the API answers"), "{ok}");
    stack.ok(&["pause", "--all"]);
    let output = with_aws_cli(&folder, &["doctor", "--stack", "shop", "--json"]).output().unwrap();
    let warnings = of(&output, "warning");
    assert!(warnings.contains(r#"everything is paused since"#), "{warnings}");
    assert!(warnings.contains(r#""fanfold resume --all --stack shop""#), "the whole command: {warnings}");
}

#[test]
fn what_may_not_be_read_is_no_reason_to_stop() {
    let (folder, stack) = (Folder::new(), Stack::start());
    aws_cli(&folder, &[("cloudformation describe-stacks", stacks(&format!("http://{}", stack.server.address)))]);
    let output = with_aws_cli(&folder, &["doctor", "--stack", "shop", "--json"]).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(of(&output, "warning").contains("this cannot be checked: `aws cloudformation list-stack-resources"));
}
