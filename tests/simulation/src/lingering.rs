//! Leaders that wait for more tasks: what a message that is delayed shows of them.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::base64;
use fanfold::bits::Bits;
use fanfold::members::Members;
use fanfold::messages::GroupMessage;
use serde_json::Value;

use crate::filled::flushes;
use crate::lock;
use crate::request::{Record, text};
use crate::wire::Line;

impl Line {
    /// A leader does not wait for longer than its policy says before it looks at its lane again, nor while it knows of a task that
    /// flushes: those that its message names waited when it was sent, or before.
    pub(crate) async fn lingers(&self, queue: &str, body: &str, delay: Duration) -> Result<(), ConnectorError> {
        let message = (queue == "GroupQueue").then(|| serde_json::from_str::<GroupMessage>(body).ok());
        let Some(message) = message.flatten() else { return Ok(()) };
        let delay = delay + message.worker_waits();
        if delay.is_zero() {
            return Ok(());
        }
        let kind =
            lock(&self.sim.model).kinds.get(&message.lane.kind).map(|kind| (kind.looks_within, kind.filling.flushes));
        let Some((looks_within, flushing)) = kind else { return Ok(()) };
        if delay > looks_within {
            self.sim.violate(format!("a leader lingers for {delay:?} at a time, {looks_within:?} is allowed: {body}"));
        }
        if flushing { self.knows_of_none(&message, body).await } else { Ok(()) }
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
