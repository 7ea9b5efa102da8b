//! Tasks that come when a reissue for small batches registers its own, and could ride with these.

use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::messages::TaskRequest;
use serde_json::{Value, json};
use uuid::Uuid;

use super::again::at_rest;
use super::{NOBODY, ProducedPlan};
use crate::clients::Clients;
use crate::dice::Dice;
use crate::lock;
use crate::model::Model;

/// How many requests come, and how far apart at most.
const REQUESTS: usize = 20;
const PAUSE: Duration = Duration::from_secs(4);

/// Tasks of a request.
const TASKS: usize = 4;

/// Their user: registers tasks of the kinds and targets of the rows that fail, once the first are reissued.
pub(super) async fn user(clients: Arc<Clients>, plan: ProducedPlan, reissue: Uuid) {
    let (sim, name) = (&clients.cluster.sim, format!("{} beside", plan.name));
    let dice = Dice::new(sim.seed, &name);
    let fails = |row: &&Value| ["doomed", "mended"].iter().any(|mark| row["content"][*mark] == true);
    let rows: Vec<&Value> = plan.rows.iter().filter(|row| row["kind"] != NOBODY).filter(fails).collect();
    while !lock(&sim.model).has_items(reissue) && !rows.is_empty() && !at_rest(&clients) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    if rows.is_empty() || !lock(&sim.model).has_items(reissue) {
        return;
    }
    for n in 0..REQUESTS {
        tokio::time::sleep(dice.millis(0, PAUSE.as_millis() as u64)).await;
        let tasks: Vec<TaskRequest> = (0..TASKS).map(|_| like(&dice, dice.pick(&rows))).collect();
        let ids: Vec<TaskId> = tasks.iter().filter_map(|task| task.id).collect();
        {
            let mut model = lock(&sim.model);
            ids.iter().zip(&tasks).for_each(|(id, task)| model.ask(*id, task));
        }
        if clients.register_http(usize::MAX, tasks, format!("{name}-{n}")).await.is_some() {
            clients.accept(&ids);
        }
    }
}

impl Model {
    /// How many members a batch with a task may have, if it was reissued for small batches.
    pub(crate) fn small_batch(&self, id: &TaskId) -> Option<usize> {
        self.produced.get(&id.item()?.fanout)?.max_batch
    }
}

/// A task of the kind and target of a row, with a key of its own. It has no head start, and does not flush.
fn like(dice: &Dice, row: &Value) -> TaskRequest {
    let id = Uuid::from_u64_pair(dice.any(), dice.any());
    let (kind, target) = (row["kind"].as_str().unwrap_or("").to_owned(), &row["content"]["t"]);
    let content = json!({"t": target, "k": format!("b{id}"), "mirror": format!("b{id}"), "n": dice.between(500, 599)});
    TaskRequest { id: Some(TaskId::Single(id)), kind, content }
}
