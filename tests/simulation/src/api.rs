//! The batch API as one worker reaches it: a call may die with its worker, and waits no longer than its policy says.

use std::sync::Arc;
use std::time::Duration;

use fanfold::messages::HandleMessage;
use fanfold::policy::{BatchApi, Way};
use fanfold_batch_api::{Answer, Call, CallError, Caller, Cause, Request};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;

use crate::clock;
use crate::dev;
use crate::dice::Dice;
use crate::lock;
use crate::mapped::MappedCall;
use crate::outage::Outage;
use crate::server::Server;
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
    /// The kind whose calls are never answered.
    pub(crate) hangs: Option<String>,
    /// Times at which it refuses everybody.
    pub(crate) outages: Vec<Outage>,
}

impl Mood {
    pub(crate) fn draw(dice: &Dice, until: Duration) -> Self {
        let rate = |often, high| if dice.chance(often) { dice.between(100, high) as u32 } else { 0 };
        Self {
            again: rate(5_000, 4_000),
            never: rate(1_500, 1_000),
            rubbish: rate(3_000, 2_000),
            late: rate(3_000, 2_000),
            member_again: rate(5_000, 4_000),
            omitted: rate(3_000, 2_000),
            strange: rate(3_000, 4_000),
            hangs: None,
            outages: (0..dice.below(3)).map(|_| Outage::draw(dice, until)).collect(),
        }
    }
}

/// The batch API as one worker reaches it.
pub(crate) struct SimulatedApi {
    pub(crate) server: Server,
    pub(crate) worker: Arc<Worker>,
}

impl Caller for SimulatedApi {
    fn call<'a>(&'a self, batch_api: &'a BatchApi, request: Request<'a>) -> BoxFuture<'a, Result<Answer, CallError>> {
        self.answer(batch_api, request).boxed()
    }

    fn poll<'a>(
        &'a self,
        _: &'a BatchApi,
        _: &'a str,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<Answer, CallError>> {
        async move { self.asked(request.call).await }.boxed()
    }
}

impl SimulatedApi {
    async fn answer(&self, batch_api: &BatchApi, request: Request<'_>) -> Result<Answer, CallError> {
        let (sim, call) = (&self.server.sim, request.call);
        let members: Vec<String> = call.members.iter().map(|member| member.id.to_string()).collect();
        let url = match &batch_api.way {
            Way::Url(url) => url.as_str(),
            Way::Lambda(_) | Way::Sqs(_) | Way::Command(_) => "-",
        };
        if let Some(queue) = dev::queue(batch_api) {
            let what = format!("SEND to {queue} {} attempt {}: {}", request.key, call.attempt, members.join(" "));
            let sent = async { self.server.to_session(queue, &request) };
            return self.worker.call(sim, "a dev session", &what, sent).await;
        }
        let what = format!("CALL {url} {} attempt {}: {}", request.key, call.attempt, members.join(" "));
        let made = self.make(batch_api, &request);
        let result = self.worker.call(sim, "the batch API", &what, made).await;
        let retry_after = result.as_ref().err().and_then(|error| error.retry_after);
        let mut model = lock(&sim.model);
        model.pace.answered(call.batch_id, call.attempt, retry_after, clock::right(sim.start));
        model.answered(call, &result);
        drop(model);
        result
    }

    async fn make(&self, batch_api: &BatchApi, request: &Request<'_>) -> Result<Answer, CallError> {
        let (sim, call, key, timeout) = (&self.server.sim, request.call, &request.key, request.timeout);
        if let Some(token) = &request.token {
            lock(&sim.model).later.tokens.insert((call.batch_id, call.attempt), token.clone());
        }
        for problem in lock(&sim.model).call(request, &self.server.limits()) {
            sim.violate(problem);
        }
        if let Some(gate) = &sim.gate {
            return self.server.work_until_picked(gate, &self.worker, call, timeout).await;
        }
        let mapped = MappedCall::of(batch_api.preset.as_ref(), request).unwrap_or_else(|problem| {
            sim.violate(problem);
            None
        });
        self.comes_again(call, timeout);
        let work = tokio::spawn(self.server.clone().work(call.clone(), mapped, timeout));
        let result = match tokio::time::timeout(timeout, work).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                sim.violate(format!("the simulated batch API broke: {panic}"));
                Err(CallError::new(Cause::Silence, "the call broke off"))
            }
            Err(_) => Err(CallError::new(Cause::Silence, "no answer in time")),
        };
        sim.trace.line(&self.worker.who().0, &format!("ANSWER to {key}: {result:?}"));
        result
    }

    /// The message of a call may come again while it runs: whose clock is fast takes its lease for ended.
    fn comes_again(&self, call: &Call, timeout: Duration) {
        let sim = &self.server.sim;
        if sim.post.chance(sim.rate(sim.plan.message_again)) {
            sim.count("messages again while their call ran");
            let body = json!(HandleMessage { batch: call.batch_id, attempt: call.attempt, more: false }).to_string();
            let delay = sim.post.skewed(Duration::from_millis(1), timeout);
            sim.queues.send("HandleQueue", sim.queues.next_id(), body, delay, true);
        }
    }
}
