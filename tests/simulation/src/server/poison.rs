//! Members that have every call refused in which they are.

use std::time::Duration;

use fanfold_batch_api::{Call, CallError, Cause};
use serde_json::Value;
use tokio::time::sleep;

use super::Server;
use crate::dice::Dice;

impl Server {
    /// What a call is answered because of one of its members. Before faults that may pass, the first call of many batches is
    /// not answered at all: it may have worked, so the batch must not be split.
    pub(super) async fn poison(&self, call: &Call, timeout: Duration) -> Option<CallError> {
        let (sim, error) = (&self.sim, self.poisoned(call)?);
        let dice = Dice::new(sim.seed, &format!("silent {}", call.batch_id));
        let first = call.attempt == 1 && call.members.len() > 1;
        if first && error.retriable && dice.chance(sim.rate(7_000)) {
            sim.count("batch API: poisoned, and silent at first");
            sleep(timeout * 2).await;
            return Some(CallError::new(Cause::Silence, "no answer in time"));
        }
        Some(self.leaving_one(call, error).await)
    }

    /// The refusal of a call because of one of its members.
    pub(super) fn poisoned(&self, call: &Call) -> Option<CallError> {
        let (member, status) = call.members.iter().find_map(|member| {
            let content: Value = serde_json::from_str(member.content.get()).ok()?;
            Some((member.id, content["poison"].as_u64()?))
        })?;
        self.sim.count(if call.members.len() > 1 { "batch API: poisoned" } else { "batch API: poison alone" });
        self.say_alone(call);
        let status = u16::try_from(status).unwrap_or(400);
        Some(CallError::new(Cause::Status(status), format!("{status}: poisoned by {member}")))
    }
}
