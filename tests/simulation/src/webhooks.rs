//! Receivers of notices over HTTPS: they take a notice, refuse it, hang, ask for time, or want no more of it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use fanfold::clock::Timestamp;
use fanfold::limits::NOTICE_TIMEOUT;
use fanfold::notice::Notice;
use fanfold_notify::{DeliveryError, Webhooks};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::hooks::ReceiverAnswer;
use crate::lock;
use crate::sim::Sim;
use crate::worker::{WEBHOOK, Worker};

/// The receivers of a run.
pub(crate) const RECEIVERS: [&str; 2] = ["https://hook0.example/notices", "https://hook1.example/notices"];

/// The receivers as one worker reaches them.
pub(crate) struct SimulatedWebhooks {
    pub(crate) sim: Arc<Sim>,
    pub(crate) worker: Arc<Worker>,
}

impl Webhooks for SimulatedWebhooks {
    fn post<'a>(&'a self, url: &'a str, notice: &'a Notice, _: Timestamp) -> BoxFuture<'a, Result<(), DeliveryError>> {
        self.answer(url, notice).boxed()
    }
}

impl SimulatedWebhooks {
    async fn answer(&self, url: &str, notice: &Notice) -> Result<(), DeliveryError> {
        let what = format!("POST {url} notice {}", notice.id);
        self.worker.call(&self.sim, WEBHOOK, &what, self.make(url, notice)).await
    }

    async fn make(&self, url: &str, notice: &Notice) -> Result<(), DeliveryError> {
        let sim = &self.sim;
        let (who, _) = self.worker.who();
        let strictness = sim.strictness();
        let problems = {
            let mut model = lock(&sim.model);
            let begins = model.heard.begins(notice).filter(|_| strictness.exact);
            [model.hooks.called(notice.id, strictness), model.hooks.enter(url, &who, strictness), begins]
        };
        problems.into_iter().flatten().for_each(|problem| sim.violate(problem));
        crate::notices::called(sim, notice);
        let (answer, result) = self.decide(notice).await;
        sim.trace.line(&who, &format!("{url} answers to {}: {answer:?}", notice.id));
        lock(&sim.model).hooks.leave(url, &who);
        lock(&sim.model).heard.ends(notice);
        lock(&sim.model).hooks.answered(notice.id, answer);
        if answer == ReceiverAnswer::Takes {
            lock(&sim.model).heard.takes(notice);
        }
        result
    }

    async fn decide(&self, notice: &Notice) -> (ReceiverAnswer, Result<(), DeliveryError>) {
        let (sim, dice) = (&self.sim, &self.sim.dice);
        if dice.chance(sim.rate(1_000)) {
            sim.count("webhook: no answer");
            tokio::time::sleep(NOTICE_TIMEOUT).await;
            return (ReceiverAnswer::Refuses(Duration::ZERO), Err(DeliveryError::Silent("no answer".to_owned())));
        }
        tokio::time::sleep(dice.skewed(Duration::from_millis(5), Duration::from_secs(3))).await;
        if dice.chance(sim.rate(3_000)) {
            sim.count("webhook: come again");
            let asked = dice.chance(2_000).then(|| Duration::from_secs(dice.between(0, 120)));
            let refused = DeliveryError::Refused { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: asked };
            return (ReceiverAnswer::Refuses(asked.unwrap_or_default()), Err(refused));
        }
        self.remember(notice);
        // Also once faults have stopped, when workers still die: a notice that is given up is in the dead-letter queue.
        if sim.gate.is_none() && dice.chance(2_000) {
            sim.count("webhook: gone");
            return (ReceiverAnswer::Gone, Err(DeliveryError::Refused { status: StatusCode::GONE, retry_after: None }));
        }
        (ReceiverAnswer::Takes, Ok(()))
    }

    /// Remembers a notice, which must always say the same.
    fn remember(&self, notice: &Notice) {
        let known = lock(&self.sim.model).notices.entry(notice.id).or_insert_with(|| notice.clone()).clone();
        if known != *notice {
            self.sim.violate(format!("notice {} said {known:?}, and then {notice:?}", notice.id));
        }
    }
}
