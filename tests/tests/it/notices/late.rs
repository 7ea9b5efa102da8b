//! Workers and sweeps that act on what they read, or began, a while ago.

use fanfold_tests::WebhookAnswer;

use super::*;

/// Its record shows the lease since then, and is due as before.
#[tokio::test(start_paused = true)]
async fn a_try_that_has_begun_is_not_taken_for_lost() {
    let stack = stack().await;
    let fanout = completed(&stack, URL).await;
    let (notices, before) = (stack.tracking.fanouts.notices(), stack.header(fanout).await.notice);
    assert!(notices.begin(&fanout.to_string(), &before).await.unwrap().is_some());
    assert_eq!(notices.note_woken(&fanout.to_string(), &before).await.unwrap(), None);
}

/// It was taken for dead, as its lease is over.
#[tokio::test(start_paused = true)]
async fn a_late_worker_does_not_end_the_try_of_another_one() {
    let stack = stack().await;
    let fanout = completed(&stack, URL).await;
    let (notices, key) = (stack.tracking.fanouts.notices(), fanout.to_string());
    let late = notices.begin(&key, &stack.header(fanout).await.notice).await.unwrap().unwrap();
    stack.clock.skip(2 * MINUTE);
    assert!(notices.begin(&key, &stack.header(fanout).await.notice).await.unwrap().is_some());
    let running = stack.header(fanout).await;
    assert!(!notices.again(&late, stack.world.now(), 0, Some("late")).await.unwrap());
    assert!(!notices.give_up(&late, 0, "late").await.unwrap());
    assert_eq!(stack.header(fanout).await, running);
}

/// The workers read that it was given up. The message of its next try is lost.
#[tokio::test(start_paused = true)]
async fn a_notice_that_is_sent_back_stays_with_the_sweep_whatever_workers_read_before() {
    let stack = stack().await;
    stack.webhooks.answer(|_, before| if before == 0 { WebhookAnswer::Refuses(410) } else { WebhookAnswer::Takes });
    let fanout = completed(&stack, URL).await;
    stack.drain().await;
    let (given_up, fanouts) = (stack.header(fanout).await, &stack.tracking.fanouts);
    assert!(fanouts.notices().revive(&fanout.to_string(), None).await.unwrap().is_some());
    fanouts.followed(&given_up).await.unwrap();
    fanouts.forget(&given_up).await.unwrap();
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(stack.webhooks.posted().len(), 2);
}
