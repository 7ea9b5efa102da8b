//! Tests of the embedded engine, the template reader and the pump, through their public faces and the real SDK.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod dynamodb;
mod faults;
mod folder;
mod http;
mod provision;
mod pump;
mod queues;
mod stack;
mod template;
mod usage;
mod worker;
