//! Progress that is overtaken: by a later percentage, or by the end. Receivers that are down, workers that die, messages that are lost.

use fanfold::notice::Event;
use fanfold::store::fanouts::FanoutState;
use fanfold_sweep::SweepRequest;
use fanfold_tests::WebhookAnswer;

use super::progress::{ack, delivered, opened};
use super::*;

/// A receiver that is down gets the latest one, by a chain of tries of its own. The end does not wait for the pauses of those before.
#[tokio::test(start_paused = true)]
async fn what_was_not_delivered_is_overtaken() {
    for small in [true, false] {
        let stack = stack().await;
        stack.webhooks.answer(|_, _| WebhookAnswer::RetryAfter(503, HOUR));
        let (fanout, ids) = opened(&stack, &[25, 50, 75], 20, small).await;
        stack.seal(fanout).await;
        ack(&stack, &ids[..5]).await;
        tokio::time::sleep(MINUTE).await;
        ack(&stack, &ids[5..10]).await;
        let notice = stack.header(fanout).await.notice;
        assert_eq!((notice.tries, notice.over()), (1, false), "{notice:?}");
        run_for(&stack, 3 * HOUR, MINUTE).await;
        assert_eq!(delivered(&stack), ["25% 5/20", "50% 10/20", "50% 10/20", "50% 10/20"]);
        stack.webhooks.answer(|_, before| if before == 0 { WebhookAnswer::Refuses(503) } else { WebhookAnswer::Takes });
        ack(&stack, &ids[10..]).await;
        run_for(&stack, MINUTE, Duration::from_secs(1)).await;
        assert_eq!(delivered(&stack)[4..], ["fanout.completed", "fanout.completed"]);
        let header = stack.header(fanout).await;
        assert_eq!((header.notice.tries, header.notice.delivered.is_some()), (2, true));
        run_for(&stack, 3 * HOUR, MINUTE).await;
        stack.sweep().await;
        assert_eq!((delivered(&stack).len(), stack.backlog().await), (6, 0));
    }
}

/// A percentage whose notice is being delivered when the end comes: the end is sent when that is over, and neither's outcome is taken for the
/// other's.
#[tokio::test(start_paused = true)]
async fn the_end_is_sent_right_after_a_share_that_is_being_delivered() {
    for small in [true, false] {
        for late in [
            WebhookAnswer::TakesAfter(Duration::from_secs(10)),
            WebhookAnswer::Hangs,
            WebhookAnswer::RetryAfter(503, HOUR),
            WebhookAnswer::Refuses(410),
        ] {
            let stack = stack().await;
            stack.webhooks.answer_to(move |notice, _| match notice.event {
                Event::FanoutProgress(_) => late,
                _ => WebhookAnswer::Takes,
            });
            let (fanout, ids) = opened(&stack, &[50], 10, small).await;
            stack.seal(fanout).await;
            stack.ack(&done(&ids[..5])).await;
            let rest = async {
                while stack.webhooks.posted().is_empty() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                stack.ack(&done(&ids[5..])).await;
                run_for(&stack, 20 * Duration::from_secs(1), Duration::from_millis(200)).await;
            };
            futures::join!(stack.deliver(QueueName::Notify), rest);
            assert_eq!(delivered(&stack), ["50% 5/10", "fanout.completed"], "{late:?}, small: {small}");
            let posted = stack.webhooks.posted();
            let pause = posted[1].at.since(posted[0].at);
            assert!(pause <= Duration::from_secs(16), "{pause:?}");
            let header = stack.header(fanout).await;
            assert!(header.notice.delivered.is_some() && !header.ending(), "{header:?}");
            run_for(&stack, 2 * HOUR, MINUTE).await;
            assert_eq!((delivered(&stack).len(), stack.backlog().await), (2, 0));
        }
    }
}

/// The worker that delivered the percentage is dead: the end comes when its lease is over.
#[tokio::test(start_paused = true)]
async fn a_dead_worker_holds_the_end_up_for_its_lease_and_no_longer() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, &[50], 10, true).await;
    stack.ack(&done(&ids[..5])).await;
    let before = stack.header(fanout).await;
    let running = stack.tracking.fanouts.notices().begin(&fanout.to_string(), &before.notice).await.unwrap().unwrap();
    stack.ack(&done(&ids[5..])).await;
    run_for(&stack, Duration::from_secs(90), Duration::from_secs(1)).await;
    assert_eq!(delivered(&stack), ["fanout.completed"], "and its own notice is not sent any more");
    let end = stack.header(fanout).await;
    let notices = stack.tracking.fanouts.notices();
    assert!(!notices.delivered(&running).await.unwrap() && !notices.give_up(&running, 0, "late").await.unwrap());
    assert!(!notices.again(&running, stack.world.now(), 0, Some("late")).await.unwrap());
    assert!(notices.leave(&running).await.unwrap().is_none());
    assert!(notices.begin(&fanout.to_string(), &before.notice).await.unwrap().is_none());
    assert_eq!(stack.header(fanout).await, end);
}

#[tokio::test(start_paused = true)]
async fn once_its_end_is_decided_no_progress_is_reported() {
    for small in [true, false] {
        let stack = stack().await;
        stack.webhooks.answer(|_, before| if before == 0 { WebhookAnswer::Refuses(503) } else { WebhookAnswer::Takes });
        let (fanout, ids) = opened(&stack, &[25, 75], 20, small).await;
        stack.register_items(&ids[15..]).await;
        stack.seal(fanout).await;
        ack(&stack, &ids[..5]).await;
        let cancelled = stack.tracking.cancel(fanout).await.unwrap();
        assert!(cancelled.state == FanoutState::Cancelled && !cancelled.ended(), "{cancelled:?}");
        run_for(&stack, 2 * MINUTE, Duration::from_secs(1)).await;
        stack.ack(&done(&ids[15..])).await;
        assert_eq!(stack.header(fanout).await.ended(), !small, "a small one may still have calls under way");
        for _ in 0..4 {
            stack.drain().await;
            stack.clock.skip(fanfold::limits::MISSING_AFTER);
            stack.sweep().await;
        }
        stack.drain().await;
        let delivered = delivered(&stack);
        assert_eq!(delivered, ["25% 5/20", "fanout.cancelled", "fanout.cancelled"], "small: {small}");
        assert!(!stack.header(fanout).await.ending());
    }
}

/// The worker that sealed it died before it noted the percentage that it has reached.
#[tokio::test(start_paused = true)]
async fn a_percentage_that_nobody_noted_is_noted_by_a_sweep() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, &[50], 20, false).await;
    ack(&stack, &ids[..10]).await;
    stack.tracking.fanouts.seal(fanout, false).await.unwrap();
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(delivered(&stack), ["50% 10/20"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_lost_is_sent_by_a_sweep_and_copies_of_it_count_no_more() {
    for small in [true, false] {
        let stack = stack().await;
        let (fanout, ids) = opened(&stack, &[25, 50], 20, small).await;
        stack.seal(fanout).await;
        stack.ack(&done(&ids[..5])).await;
        let lost = stack.take(QueueName::Notify).await;
        assert_eq!(lost.len(), 1, "one message a percentage");
        stack.sweeper.sweep(SweepRequest::default()).await.unwrap();
        assert_eq!(stack.backlog().await, 0, "it may only be late");
        stack.sweep().await;
        stack.drain().await;
        assert_eq!(delivered(&stack), ["25% 5/20"], "small: {small}");
        for _ in 0..3 {
            assert!(stack.hand(QueueName::Notify, lost.clone()).await.is_empty());
            stack.sweep().await;
        }
        stack.ack(&done(&ids[5..10])).await;
        assert!(stack.hand(QueueName::Notify, lost.clone()).await.is_empty());
        assert_eq!(delivered(&stack).len(), 1, "it asked for the percentage before");
        // A runner that is started again has lost its queues.
        stack.take(QueueName::Notify).await;
        stack.sweeper.sweep(SweepRequest { min_age: Duration::ZERO, workers_dead: true }).await.unwrap();
        stack.drain().await;
        assert_eq!(delivered(&stack)[1..], ["50% 10/20"]);
        assert_eq!(stack.backlog().await, 0);
    }
}
