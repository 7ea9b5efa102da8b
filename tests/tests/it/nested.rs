//! Nested fan-outs, and tasks that follow an end: the end acks the parent item as it came out, and registers one task, once, though messages
//! come twice, late, or not at all.

mod crashes;
mod follows;
mod parents;
mod refused;

use std::time::Duration;

use fanfold::ids::{ItemId, TaskId, derived};
use fanfold::limits::{HINT_LOST_AFTER, THEN_BYTES_MAX};
use fanfold::policy::{Destination, NoticesQueue, Span};
use fanfold::store::fanouts::{FanoutState, IdleLimit, Then, Tolerance};
use fanfold::tracking::{ItemState, OpenRequest, TrackingError};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, deaths, delivery, done, failed, policy};
use serde_json::{Value, json};
use uuid::Uuid;

async fn stack() -> TestStack {
    TestStack::with(json!({})).await
}

/// A small fan-out of so many items under a parent item.
fn under(parent: Option<ItemId>, items: u32) -> OpenRequest {
    OpenRequest { items, seal: true, parent, ..OpenRequest::default() }
}

fn then() -> Then {
    Then::new("parcel", json!({"depot": "117", "report": 1}))
}

/// How often the batch API was called for a task, and with which content.
fn called(stack: &TestStack, id: TaskId) -> Vec<Value> {
    let seen = stack.api.seen();
    let members = seen.iter().flat_map(|seen| &seen.call.members).filter(|member| member.id == id);
    members.map(|member| serde_json::from_str(member.content.get()).unwrap()).collect()
}
