//! Leaders that wait for more tasks: what their messages and intents show of them.

mod sums;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::base64;
use fanfold::bits::Bits;
use fanfold::control::Scope;
use fanfold::lane::Lane;
use fanfold::members::Members;
use fanfold::messages::GroupMessage;
use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

pub(crate) use self::waits::{Enough, Waits};
use crate::drained::is_draining;
use crate::filled::flushes;
use crate::lock;
use crate::order::intended;
use crate::request::{Record, Request, text};
use crate::wire::Line;

/// What messages said to leaders.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// When the first message to a leader was sent, by its batch: it has not waited for longer than since then.
    since: BTreeMap<Uuid, Instant>,
    /// Those that were told to form their batches without looking whether they are to wait.
    at_once: BTreeSet<Uuid>,
    /// For how long a leader has waited once it gets a message, by its body.
    waited: BTreeMap<String, Duration>,
    /// The messages that each worker got last.
    got: BTreeMap<String, Vec<String>>,
    /// The intents of batches that are to have enough members.
    intents: BTreeMap<Uuid, (Enough, Members)>,
}

impl Told {
    /// For how long the leader of a batch has waited, if it was always told to look whether it is to.
    fn waited(&self, batch: &Uuid) -> Option<Duration> {
        self.since.get(batch).map(Instant::elapsed).filter(|_| !self.at_once.contains(batch))
    }
}

impl Line {
    /// A leader does not wait for longer than its policy says before it looks at its lane again, nor while it knows of a task that
    /// flushes: those that its message names waited when it was sent, or before. Nor does it wait in a lane that drains.
    pub(crate) async fn lingers(&self, queue: &str, body: &str, delay: Duration) -> Result<(), ConnectorError> {
        let message = (queue == "GroupQueue").then(|| serde_json::from_str::<GroupMessage>(body).ok());
        let Some(message) = message.flatten() else { return Ok(()) };
        let delay = delay + message.worker_waits();
        self.told(&message);
        if let Some(scope) = self.drains(&message.lane).await? {
            *lock(&self.sim.stats).brought.entry("messages to leaders of lanes that drain").or_default() += 1;
            if !delay.is_zero() {
                self.sim.violate(format!("a leader lingers for {delay:?} although {scope} drains: {body}"));
            }
        }
        if delay.is_zero() {
            return Ok(());
        }
        let kind =
            lock(&self.sim.model).kinds.get(&message.lane.kind).map(|kind| (kind.waits.look, kind.filling.flushes));
        let Some((look, flushing)) = kind else { return Ok(()) };
        if delay > look {
            self.sim.violate(format!("a leader lingers for {delay:?} at a time, {look:?} is allowed: {body}"));
        }
        if flushing { self.knows_of_none(&message, body).await } else { Ok(()) }
    }

    fn told(&self, message: &GroupMessage) {
        let mut told = lock(&self.sim.told);
        told.since.entry(message.batch).or_insert_with(Instant::now);
        if !message.lingers && !message.hurries {
            told.at_once.insert(message.batch);
        }
    }

    /// The scope by which a lane drains, as whoever sends a message about it must know.
    async fn drains(&self, lane: &Lane) -> Result<Option<Scope>, ConnectorError> {
        let (who, _) = self.worker.who();
        let Some(begun) = lock(&self.sim.heeding).knows_switches_of(&who) else { return Ok(None) };
        let scopes = lock(&self.sim.model).control.draining_before(lane, begun);
        for scope in scopes {
            // It may have ended before the response to the drain was read.
            let record = ("PoliciesTable".to_owned(), scope.kind().unwrap_or("*").to_owned());
            let images = self.images(std::slice::from_ref(&record)).await?;
            if images.get(&record).is_some_and(|item| is_draining(&record, item, &scope)) {
                return Ok(Some(scope));
            }
        }
        Ok(None)
    }

    /// A leader forms no batch of fewer members than its policy's least before it has waited for as long as the policy says,
    /// unless it was told not to look, its lane drains, or it is full. An intent was written just now, or a batch was formed.
    pub(crate) fn has_enough(&self, request: &Request) {
        let Some((batch, lane, members)) = intended(request).filter(|(_, _, members)| !members.is_empty()) else {
            return self.won_enough(request);
        };
        let (Ok(id), Ok(lane)) = (batch.parse::<Uuid>(), lane.parse::<Lane>()) else { return };
        let (enough, drained) = {
            let model = lock(&self.sim.model);
            // With a reissued task a batch may be full before it has that many.
            let small = members.ids().iter().any(|id| model.is_reissued(id));
            let enough = model.kinds.get(&lane.kind).and_then(|kind| kind.waits.enough).filter(|_| !small);
            (enough, Scope::of(&lane).iter().any(|scope| model.control.drained.contains(scope)))
        };
        let Some(Enough { members: least, wait }) = enough.filter(|_| !drained) else { return };
        let waited = lock(&self.sim.told).waited(&id);
        let Some(waited) = waited else { return };
        *lock(&self.sim.stats).brought.entry("intents that wait for enough members").or_default() += 1;
        lock(&self.sim.told).intents.insert(id, (Enough { members: least, wait }, members.clone()));
        if members.len() < least && waited < wait {
            self.sim.violate(format!(
                "batch {batch} of lane {lane} is to have {} members after {waited:?}; below {least} it waits for {wait:?}",
                members.len()
            ));
        }
    }

    /// The same of the members that it won: others may have claimed what an index still showed, but that does not count.
    fn won_enough(&self, request: &Request) {
        let won = &request.body["ExpressionAttributeValues"];
        let forms = request.table() == "BatchesTable" && text(won, ":status") == "formed";
        let batch = request.writes.first().and_then(|(_, key)| key.parse::<Uuid>().ok()).filter(|_| forms);
        // Without them all that were intended were won.
        let won = won[":members"]["B"].as_str().and_then(|bytes| Members::unpack(&base64::decode(bytes).ok()?).ok());
        let (Some(batch), Some(won)) = (batch, won) else { return };
        let (waited, intent) = {
            let told = lock(&self.sim.told);
            (told.waited(&batch), told.intents.get(&batch).cloned())
        };
        let (Some(waited), Some((Enough { members: least, wait }, intent))) = (waited, intent) else { return };
        // What was cancelled after the look was there to be seen.
        let cancelled = {
            let model = lock(&self.sim.model);
            intent.ids().iter().any(|id| model.may_be_cancelled(id))
        };
        if won.len() < least && waited < wait && !cancelled {
            let (won, intended) = (won.len(), intent.len());
            self.sim.violate(format!(
                "batch {batch} won {won} members of {intended} after {waited:?}; below {least} it waits for {wait:?}"
            ));
        }
    }

    /// Who lingers knows of no task that flushes.
    async fn knows_of_none(&self, message: &GroupMessage, body: &str) -> Result<(), ConnectorError> {
        let task = |id: String| ("TasksTable".to_owned(), id);
        let alone = message.waiting.tasks.ids().iter().map(|id| task(id.to_string()));
        let bundles = message.waiting.bundles.keys().map(|id| task(format!("bundle:{id}")));
        let named: Vec<Record> = alone.chain(bundles).collect();
        let (mut waiting, mut bundled) = (Vec::new(), Vec::new());
        for (record, item) in self.images(&named).await? {
            if text(&item, "status") == "created" {
                waiting.push((record, item));
            } else if text(&item, "state") == "waiting" {
                bundled.extend(free(&item).into_iter().map(task));
            }
        }
        waiting.extend(self.images(&bundled).await?);
        *lock(&self.sim.stats).brought.entry("leaders that linger where tasks flush").or_default() += 1;
        let hasty = |item: &Value| text(item, "lane") == message.lane.to_string() && flushes(text(item, "content"));
        let hasty: BTreeSet<Record> =
            waiting.into_iter().filter(|(_, item)| hasty(item)).map(|(record, _)| record).collect();
        if !hasty.is_empty() {
            self.sim.violate(format!("a leader lingers although tasks flush, {hasty:?}: {body}"));
        }
        Ok(())
    }
}

/// The tasks of a bundle that wait.
fn free(bundle: &Value) -> Vec<String> {
    let bytes = |name: &str| base64::decode(bundle[name]["B"].as_str().unwrap_or("")).unwrap_or_default();
    let members = Members::unpack(&bytes("members")).unwrap_or_default();
    let free = Bits::from_bytes(bytes("free"));
    free.iter().filter_map(|slot| members.ids().get(slot).map(ToString::to_string)).collect()
}
