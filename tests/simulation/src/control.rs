//! What is known of pauses and cancellations, and what must hold for them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::control::{Scope, Switchboard};
use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use fanfold::limits::{CALL_WITHIN, POLICY_CACHE_MAX};
use fanfold::store::policies::Policies;
use fanfold_batch_api::Call;
use fanfold_local::Engine;
use tokio::time::Instant;
use uuid::Uuid;

use crate::check::table;
use crate::model::Model;
use crate::paused::KNOWN_WITHIN;
use crate::request::Request;
use crate::sim::Sim;

/// For this long after the response to a pause a call may still begin. The last part is the time that a call takes to reach the
/// batch API here.
const GRACE: Duration = Duration::from_secs(POLICY_CACHE_MAX.as_secs() + CALL_WITHIN.as_secs() + 5);

/// What operators did.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlModel {
    /// What is paused for certain, and since which response.
    pub(crate) paused: BTreeMap<Scope, Instant>,
    /// What drains until somebody writes its switch again, and since which response.
    pub(crate) draining: BTreeMap<Scope, Instant>,
    /// Lanes in which somebody waits for a pause.
    pub(crate) awaited: BTreeSet<Lane>,
    /// What somebody ever asked to drain.
    pub(crate) drained: BTreeSet<Scope>,
    /// Tasks that somebody asked to cancel, and kinds of selections.
    pub(crate) asked: BTreeSet<TaskId>,
    pub(crate) selected: BTreeSet<String>,
    /// Tasks that a response named as cancelled.
    pub(crate) cancelled: BTreeSet<TaskId>,
    /// Tasks that somebody asked to reset, each with the task that its work is then.
    pub(crate) resets: BTreeMap<TaskId, TaskId>,
}

impl ControlModel {
    /// The scopes by which a lane drains, as whoever began then must know.
    pub(crate) fn draining_before(&self, lane: &Lane, begun: Instant) -> Vec<Scope> {
        let known = |scope: &Scope| self.draining.get(scope).is_some_and(|since| *since + KNOWN_WITHIN < begun);
        Scope::of(lane).into_iter().filter(known).collect()
    }

    /// Switches were written, perhaps to take away that of a scope which drained.
    pub(crate) fn switched(&mut self, request: &Request) {
        for (_, key) in request.writes.iter().filter(|(table, _)| table == "PoliciesTable") {
            self.draining.retain(|scope, _| scope.kind().unwrap_or("*") != key);
        }
    }
}

impl Model {
    /// Whether a task may be cancelled by now, if no batch has it.
    pub(crate) fn may_be_cancelled(&self, id: &TaskId) -> bool {
        let kind = self.tasks.get(id).map(|task| &task.kind);
        self.control.asked.contains(id) || kind.is_some_and(|kind| self.control.selected.contains(kind))
    }

    /// What is wrong with a call: its lane is paused, or members were cancelled.
    pub(crate) fn against_the_operator(&self, call: &Call) -> Vec<String> {
        let cancelled = call.members.iter().filter(|member| self.control.cancelled.contains(&member.id));
        let mut problems: Vec<String> =
            cancelled.map(|member| format!("task {} is called, which was cancelled", member.id)).collect();
        let lane: Option<Lane> = self.lanes.get(&call.batch_id).and_then(|lane| lane.parse().ok());
        let pauses =
            lane.iter().flat_map(Scope::of).filter_map(|scope| Some((*self.control.paused.get(&scope)?, scope)));
        let late = pauses.filter(|(since, _)| since.elapsed() > GRACE);
        problems.extend(late.map(|(since, scope)| {
            format!("batch {} is called {:?} after {scope} was paused", call.batch_id, since.elapsed())
        }));
        problems
    }
}

/// What a cancelled slot of a bundle is claimed for.
pub(crate) const NO_BATCH: Uuid = Uuid::nil();

/// Nothing is paused any more, and no switch is left whose work is not done.
pub(crate) async fn rested(
    engine: &Engine,
    sim: &Sim,
    model: &Model,
    cancelled: &BTreeSet<TaskId>,
) -> Result<(), String> {
    let policies = Policies::new(table(engine, sim, "POLICIES_TABLE"));
    let board: Switchboard = policies.switchboard().await.map_err(|error| error.to_string())?;
    // A calm run has no sweeps.
    if board.iter().next().is_some() && !sim.plan.calm {
        sim.violate(format!("switches are left: {board:?}"));
    }
    for id in model.control.cancelled.difference(cancelled) {
        sim.violate(format!("task {id} was cancelled, and is not"));
    }
    for id in cancelled.iter().filter(|id| !model.may_be_cancelled(id)) {
        sim.violate(format!("task {id} is cancelled, and nobody asked for that"));
    }
    Ok(())
}
