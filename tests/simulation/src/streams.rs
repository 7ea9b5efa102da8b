//! Users who register tasks as streams. One who is cut off repeats the stream under its key: nothing is lost, and nothing doubled.

use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::{TaskId, derived};
use fanfold::messages::TaskRequest;
use fanfold::registering::{Registered, Streamed, TaskFault, request_id};
use serde_json::json;

use crate::clients::Clients;
use crate::deleted;
use crate::dice::Dice;
use crate::lock;

/// What becomes of each line of a stream; none: other lines were registered under its key before.
pub(crate) type Streaming = Option<Vec<Option<Result<Registered, TaskFault>>>>;

/// Whether a request is made as a stream. Not where a line may be refused because its kind lost its policy. Of dice of its own:
/// everything else is drawn as it is without streams.
pub(crate) fn may_be(clients: &Clients, request: &str) -> bool {
    !deleted::may_be(clients) && dice(clients, request).chance(3_000)
}

fn dice(clients: &Clients, request: &str) -> Dice {
    Dice::new(clients.cluster.sim.seed, &format!("stream {request}"))
}

/// Registers tasks line by line, among lines that are no tasks, and tasks that are refused.
pub(crate) async fn register(clients: &Arc<Clients>, tries: usize, tasks: Vec<TaskRequest>, request: String) {
    let (sim, dice) = (&clients.cluster.sim, dice(clients, &request));
    sim.count("streams");
    let (mut lines, mut ids): (Vec<Streamed>, Vec<Option<TaskId>>) = (Vec::new(), Vec::new());
    let name = request_id(&request);
    for task in tasks {
        while dice.chance(2_000) {
            lines.push(no_task(&dice, &task));
            ids.push(None);
        }
        ids.push(Some(task.id.unwrap_or_else(|| derived::task(&name, lines.len()))));
        lines.push(Ok(task));
    }
    {
        let mut model = lock(&sim.model);
        let asked = ids.iter().zip(&lines).filter_map(|(id, line)| Some(((*id)?, line.as_ref().ok()?)));
        asked.for_each(|(id, task)| model.ask(id, task));
        *lock(&sim.stats).brought.entry("tasks").or_default() += ids.iter().flatten().count() as u64;
    }
    let again = clients.repeat();
    let Some(answer) = clients.stream_http(tries, lines.clone(), request.clone()).await else { return };
    judge(clients, &request, &ids, answer);
    if dice.chance(1_000) {
        clients.spawn(other_lines(Arc::clone(clients), lines.clone(), request.clone()));
    }
    if let Some(delay) = again {
        let clients = Arc::clone(clients);
        clients.clone().spawn(async move {
            tokio::time::sleep(delay).await;
            if let Some(answer) = clients.stream_http(usize::MAX, lines, request.clone()).await {
                judge(&clients, &request, &ids, answer);
            }
        });
    }
}

/// A line that is no task, or one that is refused.
fn no_task(dice: &Dice, like: &TaskRequest) -> Streamed {
    match dice.below(2) {
        0 => Err(b"{\"kind\": 7}".to_vec()),
        _ => Ok(TaskRequest { id: None, kind: "nobody".to_owned(), content: like.content.clone() }),
    }
}

/// Each task was registered under its id, and nothing else was.
fn judge(clients: &Clients, request: &str, ids: &[Option<TaskId>], answer: Streaming) {
    let answered = |outcome: &Option<Result<Registered, TaskFault>>| Some(outcome.as_ref()?.as_ref().ok()?.id);
    let answered: Option<Vec<Option<TaskId>>> = answer.as_ref().map(|lines| lines.iter().map(answered).collect());
    if answered.as_deref() != Some(ids) {
        return clients.cluster.sim.violate(format!("stream {request} answered {answer:?}, and has the tasks {ids:?}"));
    }
    let ids: Vec<TaskId> = ids.iter().flatten().copied().collect();
    clients.accept(&ids);
    ids.iter().for_each(|id| lock(&clients.cluster.sim.model).answer(id));
}

/// Some time later another stream comes under the key. It is refused.
async fn other_lines(clients: Arc<Clients>, mut lines: Vec<Streamed>, request: String) {
    tokio::time::sleep(clients.dice.skewed(Duration::from_millis(1), Duration::from_secs(300))).await;
    match lines.iter_mut().flatten().find(|task| task.kind != "nobody") {
        Some(task) => task.content["n"] = json!(1_000 + task.content["n"].as_u64().unwrap_or(0)),
        None => return,
    }
    if let Some(Some(outcomes)) = clients.stream_http(usize::MAX, lines, request.clone()).await {
        clients.cluster.sim.violate(format!("another stream under the key {request} was accepted: {outcomes:?}"));
    }
}
