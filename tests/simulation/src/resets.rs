//! An operator who resets tasks on their own that failed: the work of each waits again, once, as another task.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use fanfold::ids::{TaskId, derived};
use fanfold::messages::TaskRequest;
use tokio::time::sleep;
use uuid::Uuid;

use crate::check::ByTask;
use crate::clients::Clients;
use crate::dice::Dice;
use crate::lock;
use crate::model::Model;
use crate::sim::Sim;

/// Resets one failed task after the other until faults stop, some of them twice at once.
pub(crate) async fn reset_tasks(clients: Arc<Clients>) {
    let sim = Arc::clone(&clients.cluster.sim);
    let dice = Dice::new(sim.seed, "resets");
    while !sim.healed() {
        sleep(dice.skewed(Duration::from_secs(1), Duration::from_secs(60))).await;
        let failed = lock(&sim.model).failed_alone();
        if failed.is_empty() {
            continue;
        }
        let id = dice.pick(&failed);
        for _ in 0..1 + usize::from(dice.chance(3_000)) {
            clients.spawn(reset(Arc::clone(&clients), id));
        }
    }
}

/// Resets a task. Its failure may not be written down yet: then it is not reset.
async fn reset(clients: Arc<Clients>, id: Uuid) {
    let sim = &clients.cluster.sim;
    let (from, again) = (TaskId::Single(id), derived::reset_task(id));
    lock(&sim.model).expect_reset(from, again);
    let path = format!("/tasks/{id}/reset");
    let Some((status, body)) = clients.ask(Method::POST, &path, None, &[200, 409, 422]).await else { return };
    let missing = lock(&sim.model).ever_missing;
    match status {
        200 if body["id"] == again.to_string() => {
            sim.count("tasks reset");
            let mut model = lock(&sim.model);
            model.accept(&again);
            model.answer(&again);
        }
        409 => sim.count("tasks that cannot be reset yet"),
        // Its kind has no policy now.
        422 if missing => {}
        _ => sim.violate(format!("POST {path} was answered with {status}: {body}")),
    }
}

impl Model {
    /// Tasks on their own whose call failed, and that did not work as far as is known by now.
    fn failed_alone(&self) -> Vec<Uuid> {
        let failed = |id: &TaskId| {
            let said = self.said.get(id).copied().unwrap_or_default();
            !said.succeeded && (said.failed || self.used_up(id))
        };
        let single = |id: &TaskId| match id {
            TaskId::Single(single) => Some(*single),
            TaskId::Item(_) => None,
        };
        self.handled_as.keys().filter(|id| failed(id)).filter_map(single).collect()
    }

    /// A task is about to be reset: its work may wait again as another task, with the content that it was called with.
    fn expect_reset(&mut self, from: TaskId, again: TaskId) {
        let Some(task) = self.tasks.get(&from) else { return };
        let content = self.handled_as.get(&from).unwrap_or(&task.content).clone();
        let request = TaskRequest { id: Some(again), kind: task.kind.clone(), content };
        self.ask(again, &request);
        self.control.resets.insert(from, again);
    }
}

/// The work of every task that was reset was handled once more: by the task that it is then, or by another one that had
/// its key by then. The task that failed has that key no more.
pub(crate) fn handled(sim: &Sim, model: &Model, batches: &ByTask, cancelled: &BTreeSet<TaskId>) {
    let accepted = |id: &TaskId| model.tasks.get(id).is_some_and(|task| task.accepted);
    for (from, again) in model.control.resets.iter().filter(|(_, again)| accepted(again)) {
        let done = |id: &TaskId| id != from && (batches.contains_key(id) || cancelled.contains(id));
        if !model.rivals(again).iter().any(done) {
            sim.violate(format!("task {from} was reset as {again}, whose work nobody has done"));
        }
    }
}
