//! Keys that failed tasks still have, where fan-outs share keys.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use fanfold::producing::ReissueRequest;
use fanfold::store::fanouts::FanoutState;
use fanfold_tests::{Crash, order};
use serde_json::json;

use super::{called, ended, orders, reissue, stack};

/// A policy that keeps keys keeps them from others, but whoever reissues a task wants it called again.
#[tokio::test(start_paused = true)]
async fn a_reissued_task_gets_the_key_that_it_kept() {
    let changes = json!({"key": "content.order", "scope": "kind", "key_after_failure": "keep"});
    let (stack, broken) = stack(changes, Crash::never()).await;
    let (old, _) = ended(&stack, &[6]).await;
    let calls = stack.api.seen().len();
    broken.store(false, Ordering::Relaxed);
    let new = reissue(&stack, old, &ReissueRequest::default()).await;
    stack.rest().await;
    let header = stack.header(new).await;
    assert_eq!((header.state, header.total, header.duplicates), (FanoutState::Completed, 2, 0));
    assert_eq!(called(&stack, calls).into_keys().collect::<BTreeSet<_>>(), orders([0, 3]));
}

/// Somebody registered the same work after it had failed, and it succeeded: it is not done again.
#[tokio::test(start_paused = true)]
async fn work_that_another_task_has_done_since_is_a_duplicate() {
    let (stack, broken) = stack(json!({"key": "content.order", "scope": "kind"}), Crash::never()).await;
    let (old, _) = ended(&stack, &[6]).await;
    broken.store(false, Ordering::Relaxed);
    stack.register.register(vec![order(None, "117", 3)], "since").await.unwrap();
    stack.rest().await;
    let calls = stack.api.seen().len();
    let new = reissue(&stack, old, &ReissueRequest::default()).await;
    stack.rest().await;
    let header = stack.header(new).await;
    assert_eq!((header.state, header.total, header.duplicates), (FanoutState::Completed, 2, 1));
    assert_eq!(called(&stack, calls).into_keys().collect::<BTreeSet<_>>(), orders([0]));
}
