//! Fanfold, with tasks of no fan-out and without keys: what the plain algorithm has, too.

use std::sync::Arc;

use fanfold::clock::{Timestamp, World};
use fanfold::messages::TaskRequest;
use fanfold::policy::Policy;
use fanfold::store::policies::Policies;
use fanfold_http_client::Guard;
use fanfold_local::Invocations;
use fanfold_notify::HttpWebhooks;
use fanfold_produce::AllSources;
use fanfold_stack::{Outside, Steps};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::api::Calls;
use super::{Asked, count};
use crate::Outcome;
use crate::room::Room;

const TEMPLATE: &str = include_str!("../../../template.yaml");

const REGISTER: &str = "RegisterFunction";

/// Registers the tasks with every step at work.
pub(super) async fn register(asked: &Asked, calls: &Arc<Calls>, registering: &mut Invocations) -> Outcome<Room> {
    let mut room = Room::new(TEMPLATE, &asked.sources).await?;
    let guard = Guard::local(|_| None);
    let outside = Outside {
        batch_apis: Arc::<Calls>::clone(calls),
        webhooks: Arc::new(HttpWebhooks::from_environment(&room.surroundings("NotifyFunction"), guard.clone())?),
        sources: Arc::new(AllSources::from_environment(&room.surroundings("ProduceFunction"), guard)),
        commands: false,
        call_by_call: false,
    };
    let steps = Steps::new(|function| room.surroundings(function), outside)?;
    let policy: Policy = serde_json::from_value(json!({
        "kind": "item",
        "target": "content.target",
        "max_batch": asked.max_batch,
        "linger": format!("{}s", asked.linger),
        "max_in_flight": 10,
        "batch_api": { "url": "http://localhost:1/" },
    }))?;
    let table = room.surroundings(REGISTER).table(fanfold::config::variables::POLICIES_TABLE)?;
    Policies::new(table).put(&policy).await?;
    let functions: Vec<String> = room.template.event_sources().iter().map(|source| source.function.clone()).collect();
    for function in functions {
        let step = steps.behind(&function).ok_or_else(|| format!("there is no step {function}"))?;
        room.start(&function, step)?;
    }
    let world = World::system();
    let users = room.engine.metered_apart().sqs();
    for tasks in asked.requests() {
        let registered = world.now();
        let task =
            |task: super::Task| TaskRequest { id: None, kind: "item".to_owned(), content: content(task, registered) };
        let began = Instant::now();
        let tasks: Vec<TaskRequest> = tasks.into_iter().map(task).collect();
        if asked.queue {
            let body = serde_json::to_string(&json!({ "tasks": tasks }))?;
            users.send_message().queue_url(room.queue("RegisterQueue")?).message_body(body).send().await?;
        } else {
            steps.register.register(tasks, &steps.register.new_request_id()).await?;
            count(&room, REGISTER, began, registering);
        }
        asked.pause().await;
    }
    Ok(room)
}

/// What a task carries.
fn content(task: super::Task, registered: Timestamp) -> Value {
    json!({ "number": task.number, "target": format!("target-{}", task.target), "registered": registered.0 })
}
