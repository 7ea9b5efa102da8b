//! Requests to a deployed stack: signed with the credentials of the environment, or with those of the AWS CLI, which also knows where
//! a stack is.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::stack::{code, command};
use crate::folder::{Folder, stderr};

/// The head of the request that a command sends to an address that is not on this machine for all it knows.
fn sent(arguments: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://0.0.0.0:{}", listener.local_addr().unwrap().port());
    answered(&listener, command(&endpoint, arguments).envs(variables.iter().copied()))
}

/// The head of the request that a command sends to this listener, which is answered.
fn answered(listener: &TcpListener, command: &mut Command) -> Vec<String> {
    let mut process = command.stdout(Stdio::null()).spawn().unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(|line| line.unwrap().to_lowercase());
    let head = lines.take_while(|line| !line.is_empty()).collect();
    let body = json!({"fanouts": []}).to_string();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).unwrap();
    assert!(process.wait().unwrap().success());
    head
}

#[test]
fn requests_to_elsewhere_are_signed_unless_they_are_not_to_be() {
    let keys = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_REGION", "eu-west-1")];
    let head = sent(&["list"], &[&keys[..], &[("AWS_SESSION_TOKEN", "token")]].concat());
    let signature = head.iter().find(|line| line.starts_with("authorization: ")).unwrap();
    assert!(signature.contains("aws4-hmac-sha256 credential=akidexample/"), "{signature}");
    assert!(signature.contains("/eu-west-1/execute-api/aws4_request"), "{signature}");
    assert!(head.contains(&"x-amz-security-token: token".to_owned()), "{head:?}");
    let head = sent(&["list", "--no-sign"], &[]);
    assert!(
        head[0].starts_with("get /fanouts") && !head.iter().any(|line| line.starts_with("authorization")),
        "{head:?}"
    );
}

/// What stands for the AWS CLI: it notes how it was called, and prints the answer whose beginning of a command fits first.
pub(super) fn aws_cli(folder: &Folder, answers: &[(&str, Value)]) {
    let log = folder.path().join("aws.log");
    let answer = |(command, answer): &(&str, Value)| match answer {
        Value::String(text) => format!("'{command}'*) echo '{text}';;\n"),
        document => format!("'{command}'*) cat <<'END'\n{document}\nEND\n;;\n"),
    };
    let answers: String = answers.iter().map(answer).collect();
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\ncase \"$*\" in\n{answers}*) echo 'does not exist' >&2; exit 254;;\nesac\n",
        log.display()
    );
    std::fs::create_dir_all(folder.path().join("bin")).unwrap();
    folder.write("bin/aws", script);
    let program = folder.path().join("bin/aws");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// What the AWS CLI prints of a stack `shop` at this address, and of its credentials.
fn shop(folder: &Folder, url: &str, expiration: &str) {
    let credentials = json!({"Version": 1, "AccessKeyId": "AKIDPROFILE", "SecretAccessKey": "secret",
                             "SessionToken": "session", "Expiration": expiration});
    let answers = [
        ("cloudformation describe-stacks --stack-name shop ", stacks(url)),
        ("configure export-credentials", credentials),
        ("configure get region", json!("eu-north-1")),
    ];
    aws_cli(folder, &answers);
}

/// What `aws cloudformation describe-stacks` prints.
pub(super) fn stacks(url: &str) -> Value {
    let outputs =
        json!([{"OutputKey": "RegisterQueueUrl", "OutputValue": "x"}, {"OutputKey": "Url", "OutputValue": url}]);
    json!({"Stacks": [{"StackStatus": "UPDATE_COMPLETE", "Outputs": outputs}]})
}

/// A command that finds this AWS CLI.
pub(super) fn with_aws_cli(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = command("http://127.0.0.1:1", arguments);
    let folders = [folder.path().join("bin"), "/usr/bin".into(), "/bin".into()];
    command.env("PATH", std::env::join_paths(folders).unwrap());
    command
}

const LATER: &str = "2100-01-01T00:00:00+00:00";

#[test]
fn a_stack_is_found_by_its_name_and_called_with_a_profile() {
    let (folder, listener) = (Folder::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    shop(&folder, &format!("http://0.0.0.0:{}", listener.local_addr().unwrap().port()), LATER);
    let head = answered(&listener, &mut with_aws_cli(&folder, &["list", "--stack", "shop", "--profile", "ops"]));
    let signature = head.iter().find(|line| line.starts_with("authorization: ")).unwrap();
    assert!(
        signature.contains("credential=akidprofile/") && signature.contains("/eu-north-1/execute-api/"),
        "{signature}"
    );
    assert!(head.contains(&"x-amz-security-token: session".to_owned()), "{head:?}");
    let log = std::fs::read_to_string(folder.path().join("aws.log")).unwrap();
    assert!(log.contains("cloudformation describe-stacks --stack-name shop --output json --profile ops"), "{log}");
    // The region that was given counts, and a profile counts more than the environment's keys.
    let keys = [("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let arguments = ["list", "--stack", "shop", "--profile", "ops", "--region", "eu-west-3"];
    let head = answered(&listener, with_aws_cli(&folder, &arguments).envs(keys));
    let signature = head.iter().find(|line| line.starts_with("authorization: ")).unwrap();
    assert!(signature.contains("credential=akidprofile/") && signature.contains("/eu-west-3/"), "{signature}");
    let head = answered(&listener, with_aws_cli(&folder, &["list", "--stack", "shop"]).envs(keys));
    assert!(head.iter().any(|line| line.contains("credential=akidexample/")), "{head:?}");
}

#[test]
fn credentials_that_are_about_to_expire_are_asked_for_again() {
    let (folder, listener) = (Folder::new(), TcpListener::bind("127.0.0.1:0").unwrap());
    shop(&folder, &format!("http://0.0.0.0:{}", listener.local_addr().unwrap().port()), "2020-01-01T00:00:00+00:00");
    answered(&listener, &mut with_aws_cli(&folder, &["list", "--stack", "shop"]));
    let log = std::fs::read_to_string(folder.path().join("aws.log")).unwrap();
    assert_eq!(log.matches("export-credentials").count(), 2, "{log}");
}

#[test]
fn what_the_aws_cli_refuses_is_said() {
    let folder = Folder::new();
    shop(&folder, "http://127.0.0.1:1", LATER);
    let output = with_aws_cli(&folder, &["list", "--stack", "none"]).output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains(
        "--stack: `aws cloudformation describe-stacks --stack-name none --output json` failed: does not exist"
    ));
    let output = command("http://127.0.0.1:1", &["list", "--stack", "shop"]).output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("the AWS CLI is needed for this"), "{}", stderr(&output));
}
