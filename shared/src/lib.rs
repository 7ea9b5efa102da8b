//! Shared parts of Fanfold: ids, bits, tables and queues, records and their stores, messages, policies, the rules of grouping,
//! and the protocols of tracking.

pub mod aws;
pub mod backoff;
pub mod bits;
pub mod clock;
pub mod config;
pub mod content;
pub mod control;
pub mod delivery;
pub mod grouping;
pub mod headers;
pub mod ids;
pub mod item_results;
pub mod json;
pub mod lane;
pub mod limits;
pub mod mapping;
pub mod masks;
pub mod members;
pub mod messages;
pub mod metrics;
pub mod notice;
#[cfg(feature = "openapi")]
pub mod openapi;
pub mod overdue;
pub mod pacing;
pub mod policy;
pub mod producing;
pub mod registering;
pub mod results;
pub mod retention;
pub mod retry_after;
pub mod share;
pub mod store;
#[cfg(test)]
mod testing;
pub mod text;
pub mod tracking;
mod unset;
pub mod waiting;
pub mod whole;
