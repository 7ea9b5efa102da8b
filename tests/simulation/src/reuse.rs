//! Users who ask for what must be refused: other tasks under a key that was used, and tasks that name no item.

use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::TaskRequest;
use serde_json::json;
use uuid::Uuid;

use crate::clients::Clients;
use crate::lock;

/// Some time after a request was accepted, its key is used for others: fewer, more, or the same with another content.
pub(crate) async fn after(clients: Arc<Clients>, mut tasks: Vec<TaskRequest>, request: String) {
    wait(&clients).await;
    match clients.dice.below(3) {
        0 if tasks.len() > 1 => drop(tasks.pop()),
        1 => tasks.extend(tasks.last().cloned().map(|task| TaskRequest { id: None, ..task })),
        _ => tasks.iter_mut().for_each(change),
    }
    let what = format!("another request under the key of {request}");
    if clients.may_register(tasks, request).await == Some(true) {
        clients.cluster.sim.violate(format!("{what} was accepted"));
    }
}

/// A user gave up on a request, and cannot know whether anything of it was stored. Its key is used for others: all of the
/// first request counts, or all of the second.
pub(crate) async fn instead(clients: Arc<Clients>, ids: Vec<TaskId>, mut tasks: Vec<TaskRequest>, request: String) {
    wait(&clients).await;
    tasks.iter_mut().for_each(change);
    {
        let mut model = lock(&clients.cluster.sim.model);
        for (id, task) in ids.iter().zip(&tasks) {
            if let Some(known) = model.tasks.get_mut(id) {
                known.instead = Some(task.content.clone());
            }
        }
    }
    let accepted = clients.may_register(tasks.clone(), request).await;
    let mut model = lock(&clients.cluster.sim.model);
    for (id, task) in ids.iter().zip(tasks) {
        if let Some(known) = model.tasks.get_mut(id).filter(|_| accepted == Some(true)) {
            known.content = task.content;
            known.accepted = true;
        }
    }
}

/// A task that names an item which does not exist.
pub(crate) async fn no_item(clients: &Arc<Clients>, fanout: Uuid, kind: String) {
    let group = Uuid::from_u64_pair(clients.dice.any(), clients.dice.any());
    let group = if clients.dice.chance(5_000) { group } else { fanout };
    let id = TaskId::Item(ItemId { fanout, group, index: 7_000 + clients.dice.below(100) as u16 });
    let task = TaskRequest { id: Some(id), kind, content: json!({"t": "t0", "k": "k0", "n": 0}) };
    let request = format!("no-item-{}", clients.dice.any());
    if clients.may_register(vec![task], request).await == Some(true) {
        clients.cluster.sim.violate(format!("task {id}, which is no item, was accepted"));
    }
}

async fn wait(clients: &Clients) {
    tokio::time::sleep(clients.dice.skewed(Duration::from_millis(1), Duration::from_secs(300))).await;
}

/// Target and key stay as they are, so that it makes no difference to other tasks which of the two counts.
fn change(task: &mut TaskRequest) {
    task.content["n"] = json!(task.content["n"].as_u64().unwrap_or(0) + 1_000);
}
