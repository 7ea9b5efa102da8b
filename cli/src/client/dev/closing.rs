//! The end of a session: first no more calls begin, then the lease is given back, then what still comes is handed back.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Why a session ends.
#[derive(Debug)]
pub(super) enum End {
    /// A signal asked.
    Asked,
    /// Its lease was lost.
    Lost(String),
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Working,
    /// No more calls begin.
    Closing,
    /// The lease is given back: what is handed back counts as not called. Messages may come until then.
    GivenBack(Instant),
}

/// How far the end of a session has come, for all who work in it.
#[derive(Clone, Debug)]
pub(super) struct Closing(watch::Sender<Phase>);

impl Closing {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(Phase::Working))
    }

    /// From now on no call begins.
    pub(super) fn begin(&self) {
        self.0.send_replace(Phase::Closing);
    }

    /// The lease is given back; messages may come for so long.
    pub(super) fn given_back(&self, stragglers: Duration) {
        self.0.send_replace(Phase::GivenBack(Instant::now() + stragglers));
    }

    pub(super) fn has_begun(&self) -> bool {
        *self.0.borrow() != Phase::Working
    }

    /// Whether no more messages can come.
    pub(super) fn is_quiet(&self) -> bool {
        matches!(*self.0.borrow(), Phase::GivenBack(until) if Instant::now() >= until)
    }

    /// Waits until the end begins.
    pub(super) async fn begun(&self) {
        let _ = self.0.subscribe().wait_for(|phase| *phase != Phase::Working).await;
    }

    /// Waits until the lease is given back.
    pub(super) async fn until_given_back(&self) {
        let _ = self.0.subscribe().wait_for(|phase| matches!(phase, Phase::GivenBack(_))).await;
    }
}
