//! Keys that failed tasks still have, where fan-outs share keys.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use fanfold::messages::TaskRequest;
use fanfold::producing::ReissueRequest;
use fanfold::registering::Registration;
use fanfold::store::fanouts::FanoutState;
use fanfold_tests::{Crash, changed, order, policy};
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

/// What its policy does not accept any more is left out, and nobody else does it either.
#[tokio::test(start_paused = true)]
async fn a_task_that_is_left_out_keeps_its_key() {
    let changes = json!({"key": "content.order", "scope": "kind", "key_after_failure": "keep"});
    let (stack, broken) = stack(changes.clone(), Crash::never()).await;
    let (old, ids) = stack.open(2, true).await;
    let content = json!({"depot": "117", "order": "ORD-3", "street": "Elm"});
    let accepted = TaskRequest { content, ..order(Some(ids[1]), "117", 3) };
    stack.register(vec![order(Some(ids[0]), "117", 0), accepted]).await;
    stack.rest().await;
    assert_eq!(stack.header(old).await.failed, 2);
    broken.store(false, Ordering::Relaxed);
    stack.put_policy(changed(policy(changes.clone()), json!({"target": "content.street"}))).await;
    let calls = stack.api.seen().len();
    let new = reissue(&stack, old, &ReissueRequest::default()).await;
    stack.rest().await;
    let header = stack.header(new).await;
    assert_eq!((header.state, header.total, header.duplicates), (FanoutState::Completed, 1, 0));
    assert_eq!(called(&stack, calls).into_keys().collect::<BTreeSet<_>>(), orders([3]));
    stack.put_policy(policy(changes)).await;
    let registered = stack.register.register(vec![order(None, "117", 0)], "others").await.unwrap();
    assert!(matches!(registered[0].outcome, Registration::Duplicate { .. }), "{registered:?}");
}
