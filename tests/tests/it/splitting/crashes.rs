//! A worker dies at each request in turn while a batch is split.

use super::*;

async fn run(crash: Crash) -> Option<String> {
    let poison = [2, 5];
    let changes = json!({"max_batch": 6, "max_attempts": 2, "key": "content.order"});
    let stack = TestStack::new(policy(changes), refuses(&poison, 400), crash).await;
    let tasks: Vec<_> = (0..6).map(|n| order(None, "117", n)).collect();
    let registered = stack.insist(async || stack.register.register(tasks.clone(), "a").await).await;
    let tasks: Vec<_> = registered.into_iter().map(|task| task.id).collect();
    stack.drain().await;
    for _ in 0..3 {
        stack.sweep().await;
        stack.drain().await;
    }
    let batches = stack.assert_settled(&tasks, 6).await;
    let mut failed = BTreeMap::new();
    let distinct: BTreeMap<_, _> = batches.values().map(|batch| (batch.id, batch)).collect();
    for batch in distinct.values() {
        failed.extend(failures(&stack, batch).await);
    }
    let expected = poison.map(|order| (order, format!("400: order {order} is wrong")));
    assert_eq!(failed, BTreeMap::from(expected));
    stack.crash.struck()
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    assert!(at_every_request(Moment::Before, run).await.len() > 40);
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    assert!(at_every_request(Moment::After, run).await.len() > 40);
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    assert!(at_every_request(Moment::AnswerLost, run).await.len() > 40);
}
