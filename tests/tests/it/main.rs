//! Protocol tests of a whole stack on the embedded engine: one binary, as each would link the engine again.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod ack_budgets;
mod ack_queue;
mod addresses;
mod at_scale;
mod breaker;
mod bundles;
mod calls_at_once;
mod cancelled;
mod client;
mod conflicts;
mod control;
mod count_budgets;
mod crash;
mod deleted_policies;
mod dev;
mod doc_examples;
mod elsewhere;
mod embedded;
mod estimated;
mod events;
mod expired;
mod failed_early;
mod filling;
mod forgotten;
mod grouping;
mod hops;
mod hostile;
mod http;
mod lambda;
mod later;
mod leading_on;
mod limits_page;
mod mapped;
mod nested;
mod notices;
mod operations;
mod pacing;
mod partly_stored;
mod places;
mod producers;
mod queued;
mod reissues;
mod released;
mod reliability;
mod request_budgets;
mod results;
mod retention;
mod scaling;
mod scoped;
mod secrets;
mod sent_on;
mod shards;
mod shares;
mod splitting;
mod strict;
mod template;
mod throttled;
mod tracking;
mod woken;

use mimalloc::MiMalloc;

/// As in the command: most of a test is small pieces of memory, taken and freed.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
