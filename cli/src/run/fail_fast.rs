//! `--fail-fast`: once so many tasks have failed, no further call is begun.

use std::sync::Arc;

use fanfold::delivery::{Delivery, Failures, Step};
use fanfold::metrics::MEMBERS_FAILED;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::meter::Meter;

/// A limit of failed tasks. Those of earlier processes do not count, so that a run that was stopped can be resumed.
#[derive(Debug)]
pub(crate) struct FailFast {
    most: u64,
    meter: Arc<Meter>,
    reached: Notify,
}

impl FailFast {
    pub(super) fn new(most: u64, meter: Arc<Meter>) -> Self {
        Self { most, meter, reached: Notify::new() }
    }

    /// Waits until so many tasks have failed.
    pub(super) async fn reached(&self) {
        self.reached.notified().await;
    }

    /// Once every task has its outcome, there is nothing left to stop: the run completes.
    fn is_reached(&self) -> bool {
        self.meter.counters.get(MEMBERS_FAILED) >= self.most && !self.meter.is_handled()
    }
}

/// A step that does nothing more once the limit is reached.
pub(crate) struct Limited {
    step: Arc<dyn Step>,
    limit: Arc<FailFast>,
}

impl Limited {
    pub(crate) fn new(step: Arc<dyn Step>, limit: Arc<FailFast>) -> Self {
        Self { step, limit }
    }
}

impl Step for Limited {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            if self.limit.is_reached() {
                // Outcomes that are posted reach it, too.
                self.limit.reached.notify_one();
                return deliveries.into_iter().map(|delivery| delivery.message_id).collect();
            }
            let failures = self.step.deliver(deliveries).await;
            if self.limit.is_reached() {
                // Kept for those that wait later.
                self.limit.reached.notify_one();
            }
            failures
        }
        .boxed()
    }
}
