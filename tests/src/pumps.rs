//! The stack with messages moved as Lambda's event sources do, up to the dead-letter queues.

use std::sync::Arc;
use std::time::Duration;

use fanfold::delivery::Step;
use fanfold_local::{OperationUsage, Pump, PumpHandle};
use fanfold_stack::Steps;

use crate::queues::QueueName;
use crate::stack::{TestStack, outside, template};

impl TestStack {
    /// Lets everything work for some seconds. While a kind stands still, its probes never end.
    pub async fn seconds(&self, seconds: u32) {
        for _ in 0..seconds.div_ceil(3) {
            for queue in QueueName::STEPS {
                self.deliver(queue).await;
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    }

    /// The same for some minutes, with a sweep in each.
    pub async fn minutes(&self, minutes: u32) {
        for _ in 0..minutes {
            self.seconds(60).await;
            self.sweep_now().await;
        }
        self.seconds(60).await;
    }

    /// Sets every step to work, with the template's batch sizes, time-outs and dead-letter queues.
    pub fn pumps(&self) -> Vec<PumpHandle> {
        let start = |queue: QueueName| {
            let source = template().event_sources().iter().find(|source| source.function == queue.function()).unwrap();
            Pump::start(self.engine.sqs(), source.clone(), self.worker(queue))
        };
        QueueName::STEPS.into_iter().map(start).collect()
    }

    /// Requests to SQS so far: those of pumps, and those of steps.
    pub fn sqs_requests(&self) -> u64 {
        let moved =
            |(name, _): &(&String, &OperationUsage)| name.starts_with("sqs.Receive") || name.starts_with("sqs.Delete");
        let pumps = self.engine.usage().by_operation;
        pumps.iter().filter(moved).map(|(_, usage)| usage.requests).sum::<u64>() + self.usage().sqs_requests
    }

    /// A worker for the step behind a queue, beside the stack's own.
    fn worker(&self, queue: QueueName) -> Arc<dyn Step> {
        let steps =
            Steps::new(|_| self.surroundings().clone(), outside(&self.api, &self.webhooks, &self.sources)).unwrap();
        steps.behind(queue.function()).unwrap()
    }

    /// Bodies of the messages that failed too often.
    pub async fn dead(&self, queue: QueueName) -> Vec<String> {
        let name = self.url(queue).rsplit('/').next().unwrap();
        let live = template().queues().find(|queue| queue.name == name).unwrap();
        let dead = &live.redrive.as_ref().unwrap().queue;
        let url = self.url(queue).replace(name, dead);
        let mut bodies = Vec::new();
        loop {
            let receive = self.engine.sqs().receive_message().queue_url(&url).max_number_of_messages(10);
            let got = receive.wait_time_seconds(0).send().await.unwrap().messages.unwrap_or_default();
            if got.is_empty() {
                return bodies;
            }
            bodies.extend(got.into_iter().map(|message| message.body.unwrap()));
        }
    }
}

/// Waits for something while pumps deliver.
pub async fn until(what: impl AsyncFn() -> bool) {
    for _ in 0..20_000 {
        if what().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it does not come to it");
}
