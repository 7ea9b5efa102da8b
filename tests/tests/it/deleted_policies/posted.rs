//! The last outcome of a batch is posted between two attempts, about when the policy is deleted that says whether its key is free.

use fanfold_register::Registration;
use fanfold_tests::outcomes;

use super::*;

fn later() -> serde_json::Value {
    let batch_api = json!({"url": "https://example.com/", "answers_within": "1m"});
    policy(json!({"key": "content.order", "backoff": {"base": "10m", "max": "10m"}, "batch_api": batch_api}))
}

/// A batch of one task whose call was not answered by its deadline. Requests are struck from now on.
async fn between(crash: Crash) -> (TestStack, Vec<TaskId>) {
    let stack = TestStack::new(later(), ScriptedApi::answers_later(), crash.waiting()).await;
    let ids = stack.register_orders("117", 0..1).await;
    stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
    stack.pass_time(Duration::from_secs(120)).await;
    let batch = stack.only_batch().await;
    assert!(batch.retry_at.is_some() && batch.later.is_none(), "{batch:?}");
    stack.crash.begin();
    (stack, ids)
}

/// What becomes of the same order when it is registered again.
async fn again(stack: &TestStack) -> Registration {
    stack.register.register(vec![order(None, "117", 0)], "again").await.unwrap().remove(0).outcome
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_posted_without_a_policy_releases_the_key_when_there_is_one() {
    let (stack, ids) = between(Crash::never()).await;
    stack.delete_policy("parcel").await;
    let batch = stack.only_batch().await.id;
    let answer = stack.post(batch, &stack.last_token(), &outcomes(&ids, "failed")).await;
    assert_eq!(answer["open"], 0);
    idle(&stack).await;
    stack.put_policy(later()).await;
    stack.minutes(6).await;
    stack.drain().await;
    let batch = stack.assert_settled(&ids, 10).await.remove(&ids[0]).unwrap();
    assert_eq!((batch.failed.count(), stack.api.seen().len()), (1, 1));
    assert_eq!(again(&stack).await, Registration::Registered);
}

/// The worker dies over the post, and then the policy is deleted. Returns whether the outcome was recorded by then.
async fn dies(crash: Crash) -> Option<bool> {
    let (stack, ids) = between(crash).await;
    let batch = stack.only_batch().await.id;
    stack.post_once(batch, &stack.last_token(), &outcomes(&ids, "failed")).await;
    stack.crash.revive();
    stack.crash.struck()?;
    let recorded = stack.only_batch().await.failed.count() == 1;
    stack.delete_policy("parcel").await;
    stack.minutes(6).await;
    stack.put_policy(later()).await;
    let free = if recorded { Registration::Registered } else { Registration::Duplicate { of: ids[0] } };
    assert_eq!(again(&stack).await, free);
    Some(recorded)
}

#[tokio::test(start_paused = true)]
async fn the_key_of_a_posted_failure_is_released_although_the_worker_dies_and_the_policy_is_deleted() {
    let recorded = at_every_request(Moment::After, dies).await;
    assert!(recorded.contains(&true), "{recorded:?}");
}
