//! The batch API: succeeds, fails, asks for another try, answers rubbish, or not at all.

use std::sync::Arc;
use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::policy::Handler;
use fanfold_handle::answer;
use fanfold_handle::api::{Answer, BatchApi, Call, CallError, Cause, RetryAfter};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::dice::Dice;
use crate::faults::Fault;
use crate::lock;
use crate::sim::Sim;
use crate::worker::Worker;

/// How a run's batch API behaves, in ten-thousandths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mood {
    /// The whole call: come again.
    pub(crate) again: u32,
    /// The whole call: never.
    pub(crate) never: u32,
    /// Rubbish for an answer.
    pub(crate) rubbish: u32,
    /// No answer in time.
    pub(crate) late: u32,
    /// A member: come again.
    pub(crate) member_again: u32,
    /// A member is left out.
    pub(crate) omitted: u32,
    /// Strangers, and members named twice.
    pub(crate) strange: u32,
}

impl Mood {
    pub(crate) fn draw(dice: &Dice) -> Self {
        let rate = |often, high| if dice.chance(often) { dice.between(100, high) as u32 } else { 0 };
        Self {
            again: rate(5_000, 4_000),
            never: rate(1_500, 1_000),
            rubbish: rate(3_000, 2_000),
            late: rate(3_000, 2_000),
            member_again: rate(5_000, 4_000),
            omitted: rate(3_000, 2_000),
            strange: rate(3_000, 4_000),
        }
    }
}

/// The batch API as one worker reaches it.
pub(crate) struct SimulatedApi {
    pub(crate) sim: Arc<Sim>,
    pub(crate) worker: Arc<Worker>,
    pub(crate) mood: Mood,
}

impl BatchApi for SimulatedApi {
    fn call<'a>(
        &'a self,
        handler: &'a Handler,
        key: &'a str,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        self.answer(handler, key, call).boxed()
    }
}

impl SimulatedApi {
    async fn answer(&self, handler: &Handler, key: &str, call: &Call) -> Result<Answer, CallError> {
        let sim = &self.sim;
        let (who, step) = self.worker.who();
        let crash = sim.dice.chance(sim.rate(sim.plan.crash * 4));
        let crash = match (crash, sim.dice.chance(5_000)) {
            (false, _) => Fault::None,
            (true, true) => Fault::CrashBefore,
            (true, false) => Fault::CrashAfter,
        };
        sim.reach(step, "the batch API", Fault::None);
        let members: Vec<String> = call.members.iter().map(|member| member.id.to_string()).collect();
        let url = handler.url.as_deref().unwrap_or("-");
        sim.trace.line(&who, &format!("CALL {url} {key} attempt {}: {}", call.attempt, members.join(" ")));
        if crash == Fault::CrashBefore {
            sim.count("crash before the batch API");
            sim.reach(step, "the batch API", crash);
            return self.worker.die().await;
        }
        for problem in lock(&sim.model).call(key, call) {
            sim.violate(problem);
        }
        let result = self.decide(call, handler.timeout.0).await;
        sim.trace.line(&who, &format!("ANSWER to {key}: {result:?}"));
        if crash == Fault::CrashAfter {
            sim.count("crash after the batch API");
            sim.reach(step, "the batch API", crash);
            return self.worker.die().await;
        }
        result
    }

    /// Does the work, as a server would, and answers.
    async fn decide(&self, call: &Call, timeout: Duration) -> Result<Answer, CallError> {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let rate = |rate| sim.rate(rate);
        tokio::time::sleep(dice.skewed(Duration::from_millis(5), timeout.min(Duration::from_secs(20)))).await;
        if dice.chance(rate(self.mood.again)) {
            sim.count("batch API: come again");
            let asked = if dice.chance(2_000) { dice.between(900, 7_200) } else { dice.between(0, 30) };
            let retry_after = dice.chance(3_000).then(|| RetryAfter::Delay(Duration::from_secs(asked)));
            let status = dice.pick(&[429, 503, 409]);
            return Err(CallError { retry_after, ..CallError::new(Cause::Status(status), status.to_string()) });
        }
        if dice.chance(rate(self.mood.never)) {
            sim.count("batch API: never");
            call.members.iter().for_each(|member| self.say(member.id, false));
            return Err(CallError::for_good("400"));
        }
        let late = dice.chance(rate(self.mood.late));
        let body = if dice.chance(rate(self.mood.rubbish)) {
            sim.count("batch API: rubbish");
            dice.pick(&["null", "{}", "<html>", "{\"members\": {}}", "{\"members\": [{\"id\": \"x\"}]}"]).to_owned()
        } else {
            self.outcomes(call)
        };
        if late {
            sim.count("batch API: no answer in time");
            tokio::time::sleep(timeout).await;
            return Err(CallError::new(Cause::Silence, "no answer in time"));
        }
        answer::parse(body.as_bytes())
    }

    /// An answer with outcomes, as bytes.
    fn outcomes(&self, call: &Call) -> String {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        let doomed = |content: &str| content.contains("\"doomed\":true");
        if dice.chance(2_000) && !call.members.iter().any(|member| doomed(member.content.get())) {
            call.members.iter().for_each(|member| self.say(member.id, true));
            return String::new();
        }
        let mut answers: Vec<Value> = Vec::new();
        for member in &call.members {
            if dice.chance(sim.rate(self.mood.omitted)) {
                sim.count("batch API: member omitted");
            } else if dice.chance(sim.rate(self.mood.member_again)) {
                sim.count("batch API: member again");
                answers.push(json!({"id": member.id, "outcome": "retry", "error": "busy"}));
            } else if doomed(member.content.get()) {
                self.say(member.id, false);
                answers.push(json!({"id": member.id, "outcome": "failed", "error": "doomed"}));
            } else {
                self.say(member.id, true);
                answers.push(json!({"id": member.id, "outcome": "succeeded"}));
            }
        }
        if dice.chance(sim.rate(self.mood.strange)) {
            sim.count("batch API: strangers");
            let stranger = TaskId::Single(Uuid::from_u128(u128::from(dice.any())));
            answers.push(json!({"id": stranger, "outcome": "failed"}));
            // Of two outcomes for one member the first counts.
            if let Some(first) = answers.first().cloned() {
                answers.push(json!({"id": first["id"], "outcome": "retry"}));
            }
        }
        json!({ "members": answers }).to_string()
    }

    fn say(&self, id: TaskId, succeeded: bool) {
        let mut model = lock(&self.sim.model);
        let said = model.said.entry(id).or_default();
        said.succeeded |= succeeded;
        said.failed |= !succeeded;
    }
}
