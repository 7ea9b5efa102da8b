//! A whole stack on the embedded engine whose messages are delivered by hand, so that a test decides when, how often and
//! in which order. Time is tokio's: with a paused clock a test takes no longer than its work.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

mod api;
mod check;
mod counters;
mod crash;
mod dev;
mod logged;
mod outcomes;
mod partitions;
mod policies;
mod pumps;
mod queues;
mod rates;
mod requests;
mod sources;
mod stack;
mod waiting;
mod webhooks;
mod world;

pub use api::{ScriptedApi, Seen};
pub use counters::Counters;
pub use crash::{Crash, Moment, at_every_request};
pub use dev::{DEV_QUEUES, DEV_WITHIN};
pub use logged::{listen, logged};
pub use outcomes::{outcome, outcomes};
pub use partitions::{Partitions, Throughput};
pub use policies::{changed, lane, policy};
pub use pumps::until;
pub use queues::{QueueName, delivery, message};
pub use rates::{Counted, members};
pub use requests::{NOBODY, done, failed, order};
pub use sources::{Asked, ScriptedSources};
pub use stack::TestStack;
pub use webhooks::{Posted, ScriptedWebhooks, WebhookAnswer};
pub use world::{TestClock, world};
