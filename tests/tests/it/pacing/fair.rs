//! Fair queues: if the stack's parameter says so, each message about a batch has the group of its lane.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use fanfold::config::{Surroundings, variables};
use fanfold_batch_api::{Answer, CallError, Caller, Cause};
use fanfold_group::Group;
use fanfold_handle::Handle;
use fanfold_local::{Fate, Interceptor, ServiceRequest};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

/// What was sent: the queue's URL, the body, and the group.
#[derive(Debug, Default)]
struct Sent(Mutex<Vec<(String, Value, Option<String>)>>);

impl Interceptor for Sent {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        if call.operation == "SendMessageBatch" {
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            let queue = body["QueueUrl"].as_str().unwrap().to_owned();
            let entry = |entry: &Value| {
                let message = serde_json::from_str(entry["MessageBody"].as_str().unwrap()).unwrap();
                (queue.clone(), message, entry["MessageGroupId"].as_str().map(str::to_owned))
            };
            self.0.lock().unwrap().extend(body["Entries"].as_array().unwrap().iter().map(entry));
        }
        async { Fate::Pass }.boxed()
    }
}

/// Handles orders of three depots, each batch twice. Returns what was sent to `handle`, by batch, and to all other queues.
async fn sent(parameter: &'static str) -> (BTreeMap<String, BTreeSet<Option<String>>>, Vec<Option<String>>) {
    let sent = Arc::new(Sent::default());
    let crash = Crash::meeting(Arc::<Sent>::clone(&sent));
    let changes = json!({"max_batch": 5, "max_in_flight": 4});
    let busy_at_first = ScriptedApi::new(|call| match call.attempt {
        1 => Err(CallError::new(Cause::Status(409), "busy")),
        _ => Ok(Answer::AllSucceeded),
    });
    let mut stack = TestStack::new(policy(changes), busy_at_first, crash).await;
    let plain = stack.surroundings().clone();
    let variable = move |name: &str| match name {
        variables::FAIR_QUEUES => Some(parameter.to_owned()),
        name => plain.named(name),
    };
    let Surroundings { dynamodb, sqs, world, .. } = stack.surroundings().clone();
    let fair = Surroundings::new(dynamodb, sqs, world, variable);
    stack.group = Arc::new(Group::from_environment(&fair).unwrap());
    let caller = Arc::clone(&stack.api) as Arc<dyn Caller>;
    stack.handle = Arc::new(Handle::from_environment(&fair, caller).unwrap());
    let mut tasks = Vec::new();
    for depot in ["1", "2", "3"] {
        tasks.extend(stack.register_orders(depot, 0..10).await);
    }
    stack.drain().await;
    stack.assert_settled(&tasks, 5).await;
    let (mut batches, mut others) = (BTreeMap::new(), Vec::new());
    for (queue, message, group) in std::mem::take(&mut *sent.0.lock().unwrap()) {
        if queue == stack.url(QueueName::Handle) {
            let batch = message["batch"].as_str().unwrap().to_owned();
            batches.entry(batch).or_insert_with(BTreeSet::new).insert(group);
        } else {
            others.push(group);
        }
    }
    (batches, others)
}

#[tokio::test(start_paused = true)]
async fn messages_about_batches_have_the_group_of_their_lane() {
    let (batches, others) = sent("yes").await;
    assert_eq!(batches.len(), 6);
    assert!(batches.values().all(|groups| groups.len() == 1), "one group for each try of a batch: {batches:?}");
    let groups: BTreeSet<&Option<String>> = batches.values().flatten().collect();
    assert!(groups.len() == 3 && !groups.contains(&None), "a group for each lane: {groups:?}");
    assert!(!others.is_empty() && others.iter().all(Option::is_none), "other queues are not fair");
}

#[tokio::test(start_paused = true)]
async fn without_the_parameter_no_message_has_a_group() {
    let (batches, others) = sent("no").await;
    assert!(batches.values().flatten().chain(&others).all(Option::is_none));
}
