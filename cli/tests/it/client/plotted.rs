//! `fanfold dashboard --stack`: the page's plots are made of the stack's metrics in CloudWatch.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::aws_cli::{aws_cli, stacks, with_aws_cli};
use crate::folder::Folder;

/// The command, until it is dropped.
struct Served {
    process: Child,
    address: String,
}

impl Served {
    fn start(folder: &Folder) -> Self {
        let mut command = with_aws_cli(folder, &["dashboard", "--stack", "shop", "--listen", "127.0.0.1:0"]);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        Self { process, address }
    }

    /// Status and body of a request, with the page's token if there is one.
    fn get(&self, path: &str, token: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let (address, token) = (&self.address, format!("fanfold-dashboard: {token}\r\n"));
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n{token}connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// What the page gets of the stack's metrics.
    fn metrics(&self) -> (u16, String) {
        let page = self.get("/dashboard/", "").1;
        let token = page.split("name=\"fanfold-token\" content=\"").nth(1).unwrap().split('"').next().unwrap();
        self.get("/metrics", token)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// The AWS CLI as it is for this stack, with another answer.
fn answers(folder: &Folder, more: &[(&str, Value)]) {
    let mut all = vec![("cloudformation describe-stacks", stacks("http://127.0.0.1:1"))];
    all.extend(more.iter().cloned());
    aws_cli(folder, &all);
}

#[test]
fn metrics_of_a_deployed_stack_come_from_cloudwatch() {
    let folder = Folder::new();
    answers(&folder, &[("cloudwatch get-metric-data", json!({"MetricDataResults": [], "Messages": []}))]);
    let served = Served::start(&folder);
    let (status, text) = served.metrics();
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("fanfold_items_acked 0\n") && text.contains("fanfold_batch_size_sum 0\n"), "{text}");
    assert_eq!(served.metrics().0, 200);
    let asked = std::fs::read_to_string(folder.path().join("aws.log")).unwrap();
    let asked: Vec<&str> = asked.lines().filter(|line| line.starts_with("cloudwatch")).collect();
    assert!(asked.len() == 1 && asked[0].contains(r#""Value":"shop""#), "once a minute: {asked:?}");
    assert_eq!(served.get("/metrics", "").0, 403, "only the page may ask");
}

#[test]
fn the_page_is_told_why_there_are_no_plots() {
    let folder = Folder::new();
    answers(&folder, &[]);
    let (status, said) = Served::start(&folder).metrics();
    assert_eq!(status, 403);
    assert!(said.contains("CloudWatch was not read: does not exist"), "{said}");
}
