//! The sample events of `events/` are what the functions take.

use std::path::Path;

use fanfold::messages::{
    AckRequest, ElectMessage, GroupMessage, HandleMessage, NotifyMessage, ProduceMessage, RegisterRequest, TaskRequest,
};
use fanfold::policy::Policy;
use fanfold::tracking::OpenRequest;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn event(name: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../events").join(name);
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Reads the body of every message of an event.
fn messages<M: DeserializeOwned>(name: &str) -> usize {
    let event = event(name);
    let bodies = event["Records"].as_array().unwrap().iter().map(|record| record["body"].as_str().unwrap());
    bodies.map(|body| serde_json::from_str::<M>(body).unwrap()).collect::<Vec<M>>().len()
}

fn request<M: DeserializeOwned>(name: &str) -> M {
    serde_json::from_str(event(name)["body"].as_str().unwrap()).unwrap()
}

#[test]
fn messages_are_of_their_queue() {
    assert_eq!(messages::<ElectMessage>("elect-queue.json"), 1);
    assert_eq!(messages::<GroupMessage>("group-queue.json"), 1);
    assert_eq!(messages::<HandleMessage>("handle-queue.json"), 1);
    assert_eq!(messages::<NotifyMessage>("notify-queue.json"), 1);
    assert_eq!(messages::<ProduceMessage>("produce-queue.json"), 1);
    assert_eq!(messages::<AckRequest>("ack-queue.json"), 2);
    let event = event("register-queue.json");
    let body = |at: usize| event["Records"][at]["body"].as_str().unwrap();
    assert!(serde_json::from_str::<RegisterRequest>(body(0)).is_ok());
    assert!(serde_json::from_str::<TaskRequest>(body(1)).is_ok());
}

#[test]
fn requests_are_of_their_route() {
    assert_eq!(request::<RegisterRequest>("register-tasks.json").tasks.len(), 1);
    assert_eq!(request::<OpenRequest>("api-open-fanout.json").items, 3);
    assert_eq!(request::<AckRequest>("ack-items.json").failed.len(), 1);
    assert_eq!(event("api-health.json")["rawPath"], "/health");
    let mut policy: Value = request("api-put-policy.json");
    policy["kind"] = event("api-put-policy.json")["pathParameters"]["kind"].clone();
    assert!(serde_json::from_value::<Policy>(policy).unwrap().check().is_ok());
    assert!(event("sweep-schedule.json").get("Records").is_none());
}
