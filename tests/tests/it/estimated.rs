//! Estimated fan-outs: counters without items. Each request counts once, whether or not its worker dies; the end comes once, and never
//! before the counters say so.

mod counting;
mod crashes;
mod ends;

use fanfold::messages::{CountEntry, CountRequest};
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::store::fanouts::{Fanout, FanoutState, Mode};
use fanfold::tracking::{OpenRequest, TrackingError};
use fanfold_tests::TestStack;
use serde_json::json;
use uuid::Uuid;

async fn stack() -> TestStack {
    TestStack::with(json!({})).await
}

/// One that begins with so many, with a notice of its end.
fn beginning(items: u32, seal: bool) -> OpenRequest {
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    OpenRequest { mode: Mode::Estimated, items, seal, notify, ..OpenRequest::default() }
}

async fn open(stack: &TestStack, request: OpenRequest) -> Uuid {
    stack.tracking.open(request, None).await.unwrap().fanout.id
}

/// What is counted of one: added, succeeded, failed.
fn count(fanout: Uuid, [add, succeeded, failed]: [u32; 3]) -> CountRequest {
    CountRequest { counts: vec![CountEntry { fanout, add, succeeded, failed }] }
}

/// Counts once, and returns what is answered.
async fn counted(stack: &TestStack, fanout: Uuid, counts: [u32; 3]) -> Result<Fanout, TrackingError> {
    stack.ack.count([&count(fanout, counts)]).await.remove(&fanout).unwrap()
}

/// State, and counts: total, done, failed.
fn stands(fanout: &Fanout) -> (FanoutState, [u64; 3]) {
    assert_eq!(fanout.ended(), !matches!(fanout.state, FanoutState::Open | FanoutState::Sealed), "{fanout:?}");
    (fanout.state, [fanout.total, fanout.done, fanout.failed])
}
