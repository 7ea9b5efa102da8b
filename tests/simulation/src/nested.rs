//! What follows from the ends of fan-outs: items of others are acked, tasks are registered. Neither before the end, and each as it came
//! out.

use std::collections::BTreeSet;

use fanfold::ids::{ItemId, TaskId};
use fanfold::limits::THEN_RESULTS_MAX;
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
        if !right {
            return Some(format!("a task is called that follows the end of a fan-out which is {state:?}: {end}"));
        }
        self.take_results(id, &end, content)
    }

    /// Takes out of a task's content what it is told of the items; what is wrong with that.
    fn take_results(&self, id: Uuid, end: &Value, content: &mut Value) -> Option<String> {
        let content = content.as_object_mut()?;
        let total = end["total"].as_u64().unwrap_or_default();
        if let Some(why) = content.remove("results_left_out") {
            return (total <= THEN_RESULTS_MAX as u64)
                .then(|| format!("the results of {total} items are left out: {why}"));
        }
        let results = content.remove("results")?;
        let parts = results.as_array()?;
        let with = |outcome: &str| parts.iter().filter(|part| part["outcome"] == outcome).count() as u64;
        let counts =
            [("succeeded", "succeeded"), ("failed", "failed"), ("duplicate", "duplicates"), ("missing", "missing")];
        let wrong =
            counts.into_iter().find(|(outcome, count)| with(outcome) != end[count].as_u64().unwrap_or_default());
        if wrong.is_some() || parts.len() as u64 != total {
            return Some(format!("a task is told of other results than its fan-out's end says: {results} and {end}"));
        }
        // Those of a small fan-out are in the order of its only group.
        let ids: Vec<String> = parts.iter().map(|part| part["id"].as_str().unwrap_or_default().to_owned()).collect();
        let known = &self.fanouts.get(&id)?.items;
        let small = known.len() as u64 == total && known.iter().all(|item| item.group == id);
        let right: Vec<String> = known.iter().map(ToString::to_string).collect();
        let same = if small { ids == right } else { ids.iter().collect::<BTreeSet<_>>().len() == ids.len() };
        (!same).then(|| format!("a task is told of the results of other items than {known:?}: {results}"))
    }
}

/// Remembers that a fan-out ended, by the write that is applied: from then on its task must be registered. What is wrong with a write
/// of that task, or of items.
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
    if !new["opened_tasks"].is_null() {
        brought(&mut model, record.1.parse().ok()?);
    }
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

impl Model {
    /// Whether a task is one that its fan-out was opened with, which was cut short: it may have been before its tasks were registered.
    pub(crate) fn ended_before_its_tasks(&self, id: &TaskId) -> bool {
        let TaskId::Item(item) = id else { return false };
        let brought = self.fanouts.get(&item.fanout).is_some_and(|fanout| fanout.brought.contains(item));
        brought && self.may_be_missing(item)
    }
}

/// The header of a fan-out is written that is opened with tasks: from then on these must be registered.
fn brought(model: &mut Model, id: Uuid) {
    let Some(fanout) = model.fanouts.get_mut(&id).filter(|fanout| fanout.items.is_empty()) else { return };
    fanout.items.extend(&fanout.brought);
    for item in fanout.brought.clone() {
        if let Some(task) = model.tasks.get_mut(&TaskId::Item(item)) {
            (task.accepted, task.asked_at) = (true, Instant::now());
        }
    }
}

/// When everything is quiet nothing is left to follow from an end. Without sweeps it is not seen that the task is stored.
pub(crate) fn followed(sim: &Sim, fanout: &Fanout) {
    if fanout.has_follow_up() && fanout.ended() {
        *lock(&sim.stats).brought.entry("ends that something follows from").or_default() += 1;
    }
    let unseen = sim.plan.calm && fanout.then.is_some();
    if fanout.to_register() {
        sim.violate(format!("the tasks of a fan-out were not registered: {fanout:?}"));
    }
    if fanout.to_follow() && !unseen {
        sim.violate(format!("what follows from the end of a fan-out was not done: {fanout:?}"));
    }
}
