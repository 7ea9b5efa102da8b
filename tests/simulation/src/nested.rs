//! What follows from the ends of fan-outs: items of others are acked, tasks are registered. Neither before the end, and each as it came
//! out.

use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::TaskRequest;
use fanfold::store::fanouts::{Fanout, Then};
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use crate::lock;
use crate::model::{FanoutModel, Model};
use crate::request::{Record, Request, text};
use crate::sim::Sim;

impl Model {
    /// A task is to be registered when a fan-out ends.
    pub(crate) fn lead_on(&mut self, fanout: Uuid, then: &Then) {
        let id = then.task(fanout);
        self.ask(
            id,
            &TaskRequest { id: Some(id), kind: then.kind.clone(), content: Value::Object(then.content.clone()) },
        );
        if let Some(known) = self.fanouts.get_mut(&fanout) {
            known.then = Some(id);
        }
    }

    /// The fan-out whose end acks an item.
    pub(crate) fn child(&self, item: &ItemId) -> Option<&FanoutModel> {
        self.fanouts.get(self.fanouts.get(&item.fanout)?.children.get(item)?)
    }

    /// Whether the end of a child failed its item; none if it has not ended, or there is none.
    pub(crate) fn child_failed(&self, item: &ItemId) -> Option<bool> {
        Some(self.child(item)?.ended.as_ref()? != "completed")
    }

    /// Takes out of a task's content what it says of the end that it follows; what is wrong with that.
    pub(crate) fn take_end(&self, content: &mut Value) -> Option<String> {
        let end = content.as_object_mut()?.remove("fanout")?;
        let id: Uuid = end["fanout"].as_str()?.parse().ok()?;
        let state = self.fanouts.get(&id).and_then(|fanout| fanout.ended.as_deref());
        let right = state.is_some() && state == end["state"].as_str();
        (!right).then(|| format!("a task is called that follows the end of a fan-out which is {state:?}: {end}"))
    }
}

/// Remembers that a fan-out ended, by the write that is applied: from then on its task must be registered. What is wrong with a write
/// of that task.
pub(crate) fn ends(sim: &Sim, request: &Request, record: &Record, before: Option<&Value>) -> Option<String> {
    let mut model = lock(&sim.model);
    if record.0 == "TasksTable" {
        let id: TaskId = record.1.parse().ok()?;
        let follows = model.fanouts.iter().find(|(_, fanout)| fanout.then == Some(id))?;
        return follows
            .1
            .ended
            .is_none()
            .then(|| format!("task {id} is stored before the end of fan-out {}", follows.0));
    }
    if record.0 != "FanoutsTable" {
        return None;
    }
    let (values, new) = (&request.body["ExpressionAttributeValues"], &request.body["Item"]);
    if values[":ended_at"].is_null() && new["ended_at"].is_null() {
        return None;
    }
    let said = [text(values, ":state"), text(new, "state"), before.map_or("", |before| text(before, "state"))];
    let state = said.into_iter().find(|state| !state.is_empty())?.to_owned();
    let known = model.fanouts.get_mut(&record.1.parse().ok()?)?;
    known.ended = Some(state);
    let then = known.then?;
    if let Some(task) = model.tasks.get_mut(&then) {
        (task.accepted, task.asked_at) = (true, Instant::now());
    }
    None
}

/// When everything is quiet nothing is left to follow from an end. Without sweeps it is not seen that the task is stored.
pub(crate) fn followed(sim: &Sim, fanout: &Fanout) {
    if fanout.has_follow_up() && fanout.ended() {
        *lock(&sim.stats).brought.entry("ends that something follows from").or_default() += 1;
    }
    let unseen = sim.plan.calm && fanout.then.is_some();
    if fanout.to_follow() && !unseen {
        sim.violate(format!("what follows from the end of a fan-out was not done: {fanout:?}"));
    }
}
