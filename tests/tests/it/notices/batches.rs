//! Notices of failures: the batch's record keeps their chain, and the batch is closed when it ends.

use std::collections::BTreeMap;

use fanfold::ids::TaskId;
use fanfold::limits::CLOSING_MAX;
use fanfold::notice::{Event, Notice};
use fanfold::store::batches::Batch;
use fanfold::store::places::{Party, Place, Places};
use fanfold_batch_api::{Answer, Call, CallError, MemberAnswer, MemberOutcome};
use fanfold_tests::{QueueName, WebhookAnswer, order};
use serde_json::Value;

use super::*;

/// A stack whose tasks all fail, with so long an error each, and `tasks` of them in one batch.
async fn failing(tasks: usize) -> (TestStack, Batch) {
    failing_to(tasks, json!({"url": URL})).await
}

/// The same with notices to there.
pub(super) async fn failing_to(tasks: usize, notify: Value) -> (TestStack, Batch) {
    failing_with(tasks, notify, |n| format!("{} {}", n % 20, "x".repeat(200))).await
}

/// The same with these errors, by the positions of members.
async fn failing_with(
    tasks: usize,
    notify: Value,
    error: impl Fn(usize) -> String + Send + Sync + 'static,
) -> (TestStack, Batch) {
    let script = move |call: &Call| -> Result<Answer, CallError> {
        let failed = |(n, member): (usize, &fanfold_batch_api::CallMember)| {
            let error = Some(error(n));
            MemberAnswer { error, ..MemberAnswer::new(member.id, MemberOutcome::Failed) }
        };
        Ok(Answer::Members(call.members.iter().enumerate().map(failed).collect()))
    };
    let policy = json!({"kind": "parcel", "target": "content.depot", "batch_api": {"command": ["truck"]},
        "max_batch": 2_000, "notify": notify});
    let stack = TestStack::new(policy, ScriptedApi::new(script), Crash::never()).await;
    stack.webhooks.answer(|_, _| WebhookAnswer::Refuses(500));
    stack.register((0..tasks).map(|n| order(None, "117", n)).collect()).await;
    for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
        tokio::time::sleep(Duration::from_secs(3)).await;
        stack.deliver(queue).await;
    }
    let batch = stack.all_batches().await.remove(0);
    (stack, batch)
}

#[tokio::test(start_paused = true)]
async fn failures_are_reported_by_one_chain_and_then_the_batch_is_closed() {
    let (stack, batch) = failing(3).await;
    for _ in 0..20 {
        run_for(&stack, 6 * MINUTE, Duration::from_secs(5)).await;
        stack.sweeper.sweep(fanfold_sweep::SweepRequest::default()).await.unwrap();
        assert!(stack.backlog().await <= 1, "one message per notice");
    }
    let calls = stack.webhooks.posted().len();
    assert!((9..16).contains(&calls), "{calls} calls in hours");
    assert!(stack.locks.get(&batch.lane).await.unwrap().closing.contains(&batch.id));
    stack.webhooks.answer(|_, _| WebhookAnswer::Takes);
    stack.drain().await;
    assert_eq!((stack.webhooks.posted().len(), stack.webhooks.by_notice().len()), (calls + 1, 1));
    assert!(stack.batches.get(batch.id).await.unwrap().unwrap().notice.delivered.is_some());
    stack.assert_locks_free().await;
}

#[tokio::test(start_paused = true)]
async fn a_part_that_was_delivered_is_not_sent_again() {
    let (stack, batch) = failing(2_000).await;
    // Of the first two parts each is refused once.
    stack.webhooks.answer(|_, before| if before == 0 { WebhookAnswer::Refuses(500) } else { WebhookAnswer::Takes });
    stack.drain().await;
    let by_notice = stack.webhooks.by_notice();
    assert!(by_notice.len() > 1 && by_notice.values().all(|calls| *calls == 2), "{by_notice:?}");
    let mut parts = BTreeMap::new();
    for posted in stack.webhooks.posted() {
        let Event::TasksFailed(failed) = posted.notice.event else { panic!("of failures") };
        let known = parts.entry(posted.notice.id).or_insert_with(|| failed.failures.clone());
        assert_eq!(known, &failed.failures, "a notice says the same each time");
    }
    let reported: BTreeMap<TaskId, String> =
        parts.values().flatten().map(|reported| (reported.id, reported.error.clone())).collect();
    assert_eq!((reported.len(), parts.values().map(Vec::len).sum::<usize>()), (2_000, 2_000));
    for (n, id) in batch.members.ids().iter().enumerate() {
        assert_eq!(reported[id].split(' ').next(), Some((n % 20).to_string().as_str()), "{id}");
    }
    let notice = stack.batches.get(batch.id).await.unwrap().unwrap().notice;
    assert_eq!((notice.delivered.is_some(), notice.tries as usize), (true, by_notice.len() + 1));
    stack.assert_locks_free().await;
}

/// A try ends well before its lease does. Another one goes on with the parts that are left.
#[tokio::test(start_paused = true)]
async fn a_slow_receiver_gets_some_parts_per_try_and_none_twice() {
    let (stack, batch) = failing_with(2_000, json!({"url": URL}), |_| "x".repeat(500)).await;
    stack.webhooks.answer(|_, _| WebhookAnswer::TakesAfter(Duration::from_secs(14)));
    stack.drain().await;
    let by_notice = stack.webhooks.by_notice();
    assert!(by_notice.len() > 3 && by_notice.values().all(|calls| *calls == 1), "{by_notice:?}");
    let notice = stack.batches.get(batch.id).await.unwrap().unwrap().notice;
    assert!(notice.delivered.is_some() && notice.tries > 1, "{notice:?}");
    stack.assert_locks_free().await;
}

/// A queue takes this character only as an escape, which is twice as long.
#[tokio::test(start_paused = true)]
async fn errors_that_a_queue_takes_only_escaped_are_reported_in_as_many_parts_as_that_needs() {
    let error = "\u{ffff}".repeat(170);
    let said = error.clone();
    let (stack, batch) = failing_with(400, json!({"queue": "notices"}), move |_| said.clone()).await;
    stack.drain().await;
    let mut reported = BTreeMap::new();
    for delivery in stack.take(QueueName::Notices).await {
        let notice: Notice = serde_json::from_str(&delivery.body).unwrap();
        let Event::TasksFailed(failed) = notice.event else { panic!("of failures") };
        reported.extend(failed.failures.into_iter().map(|failure| (failure.id, failure.error)));
    }
    assert_eq!((reported.len(), batch.members.len()), (400, 400));
    assert!(reported.values().all(|reported| *reported == error));
    assert!(stack.dead(QueueName::Notify).await.is_empty());
    stack.assert_locks_free().await;
}

#[tokio::test(start_paused = true)]
async fn failures_that_no_receiver_takes_are_given_up_and_sent_back() {
    let (stack, batch) = failing(3).await;
    stack.webhooks.answer(|_, _| WebhookAnswer::Refuses(410));
    stack.drain().await;
    stack.assert_locks_free().await;
    assert!(stack.batches.get(batch.id).await.unwrap().unwrap().notice.given_up.is_some());
    let dead = stack.dead(QueueName::Notify).await;
    assert_eq!(dead.len(), 1);
    for _ in 0..3 {
        stack.sweep().await;
        assert_eq!(stack.backlog().await, 0);
    }
    stack.webhooks.answer(|_, before| if before == 1 { WebhookAnswer::Refuses(500) } else { WebhookAnswer::Takes });
    stack.send(QueueName::Notify, &dead[0]).await;
    stack.deliver(QueueName::Notify).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(stack.take(QueueName::Notify).await.len(), 1, "the message of the next try is lost");
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(stack.webhooks.posted().len(), 3);
    stack.assert_locks_free().await;
}

/// The ids of batches whose failures are to be reported stand in their lane's lock, which is one item.
#[tokio::test(start_paused = true)]
async fn no_more_notices_wait_than_the_lock_of_a_lane_can_name() {
    for hangs in [false, true] {
        let (stack, batch) = failing(3).await;
        for n in 0..CLOSING_MAX as u128 {
            stack.locks.close_again(&batch.lane, Uuid::from_u128(n)).await.unwrap();
        }
        if hangs {
            let (places, now) = (Places::new(stack.surroundings().table("LOCKS_TABLE").unwrap()), stack.world.now());
            for n in 0..5 {
                let party = Party::Receiver("https://receiver.example:443".to_owned());
                let place = Place { party, record: 0, holder: Uuid::from_u128(n), until: now.plus(MINUTE) };
                assert!(places.take(&place, 5, now).await.unwrap());
            }
        }
        stack.deliver(QueueName::Notify).await;
        assert_eq!(stack.webhooks.posted().len(), usize::from(!hangs), "it is tried once, if there is a place");
        assert_eq!((stack.dead(QueueName::Notify).await.len(), stack.backlog().await), (1, 0));
        assert!(stack.batches.get(batch.id).await.unwrap().unwrap().notice.given_up.is_some());
        let closing = stack.locks.get(&batch.lane).await.unwrap().closing;
        assert_eq!((closing.len(), closing.contains(&batch.id)), (CLOSING_MAX, false));
    }
}
