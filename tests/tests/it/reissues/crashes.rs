//! A worker dies at each request of a reissue, or its answer is lost.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use fanfold::producing::{Corrected, ReissueRequest};
use fanfold::store::fanouts::FanoutState;
use fanfold_tests::{Crash, Moment, QueueName, at_every_request};
use serde_json::json;

use super::{called, contents, ended, orders, reissue, stack};

async fn run(crash: Crash) -> Option<String> {
    let changes = json!({"linger": 0, "key": "content.order", "scope": "kind"});
    let (stack, broken) = stack(changes, crash.waiting()).await;
    let (old, ids) = ended(&stack, &[2, 6]).await;
    stack.crash.begin();
    let calls = stack.api.seen().len();
    broken.store(false, Ordering::Relaxed);
    let content = json!({"depot": "117", "order": "ORD-3", "checked": true});
    let contents_of = vec![Corrected { id: ids[3], content: content.clone() }];
    let request = ReissueRequest { max_batch: Some(1), contents: contents_of, ..ReissueRequest::default() };
    let new = reissue(&stack, old, &request).await;
    // A message that comes twice, and again after all is done.
    let messages = stack.take(QueueName::Produce).await;
    stack.hand(QueueName::Produce, messages.clone()).await;
    stack.crash.revive();
    stack.rest().await;
    stack.hand(QueueName::Produce, messages).await;
    stack.crash.revive();
    stack.rest().await;
    let header = stack.header(new).await;
    assert_eq!((header.state, header.total, header.duplicates), (FanoutState::Completed, 3, 0), "{header:?}");
    let tasks = contents(&stack, new).await;
    assert_eq!(tasks.keys().cloned().collect::<BTreeSet<_>>(), orders([0, 3, 6]));
    assert_eq!(tasks["ORD-3"], content);
    let called = called(&stack, calls);
    assert_eq!(
        called.keys().cloned().collect::<BTreeSet<_>>(),
        orders([0, 3, 6]),
        "nothing that succeeded is called again"
    );
    // A task whose worker died while it was registered waits on its own, and nobody reads how small its batch should be.
    let small = called.values().flatten().all(|members| *members == 1);
    assert!(small || stack.crash.struck().is_some());
    let by_key = stack.api.members_by_key();
    assert_eq!(by_key.values().flatten().collect::<BTreeSet<_>>().len(), by_key.values().flatten().count());
    assert_eq!(stack.completions().await.iter().filter(|end| end.fanout == new).count(), 1);
    assert_eq!((header.reissue_of(), stack.header(old).await.reissued_as), (Some(old), Some(new)));
    stack.crash.struck()
}

async fn dies(moment: Moment) {
    let struck: BTreeSet<String> = at_every_request(moment, async |crash| run(crash).await).await.into_iter().collect();
    for request in ["TransactWriteItems", "PutItem", "UpdateItem", "BatchGetItem", "BatchExecuteStatement"] {
        assert!(struck.contains(&format!("DynamoDb {request}")), "{request} was never struck: {struck:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    dies(Moment::Before).await;
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    dies(Moment::After).await;
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    dies(Moment::AnswerLost).await;
}
