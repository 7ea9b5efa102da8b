//! Messages for notices that are not due yet.

use fanfold::messages::NotifyMessage;
use fanfold::policy::{Destination, NoticesQueue};
use fanfold_batch_api::CallError;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, message, policy};
use serde_json::json;

use super::{assert_unharmed, hand};

/// A batch is known as closing until its acks are through: that is how the sweep finds acks that were lost. A message for its notice that
/// comes before that neither closes it nor delivers the notice.
#[tokio::test(start_paused = true)]
async fn a_message_for_a_notice_that_is_not_due_closes_no_batch() {
    for receiver in [None, Some(Destination::Queue(NoticesQueue::Notices))] {
        let api = ScriptedApi::new(|_| Err(CallError::for_good("400")));
        let notify = receiver.as_ref().map_or(json!({}), |to| json!({ "notify": to }));
        let stack = TestStack::new(policy(notify), api, Crash::never()).await;
        let (_, ids) = stack.open(4, true).await;
        let tasks = stack.register_items(&ids).await;
        stack.pass(&[QueueName::Elect, QueueName::Group, QueueName::Handle]).await;
        assert_eq!(stack.take(QueueName::Ack).await.len(), 1, "the acks are lost");
        let batch = stack.all_batches().await.remove(0);
        let forged = vec![message("forged", &NotifyMessage::failures(&batch))];
        assert!(hand(&stack, QueueName::Notify, forged).await.is_empty());
        let lock = stack.locks.get(&batch.lane).await.unwrap();
        assert_eq!(lock.closing, [batch.id], "nothing is left that acks them");
        assert!(!stack.batches.get(batch.id).await.unwrap().unwrap().notice.begun());
        assert_unharmed(&stack, &tasks, 4).await;
    }
}
