//! A webhook that does not take a notice is called again: ever more rarely, no sooner than it asks for, and not for ever.

use fanfold::limits::{NOTICE_GIVE_UP, NOTICE_PAUSES};
use fanfold::messages::NotifyMessage;
use fanfold_tests::{QueueName, WebhookAnswer};

use super::*;

/// The pauses between calls.
fn pauses(stack: &TestStack) -> Vec<Duration> {
    let posted = stack.webhooks.posted();
    posted.windows(2).map(|pair| pair[1].at.since(pair[0].at)).collect()
}

#[tokio::test(start_paused = true)]
async fn pauses_double_up_to_an_hour_although_messages_are_repeated() {
    let stack = stack().await;
    stack.webhooks.answer(|_, _| WebhookAnswer::Refuses(503));
    let (fanout, ids) = open(&stack, URL, 2, "order").await;
    stack.ack.apply(&done(&ids)).await.unwrap();
    let step = Duration::from_secs(5);
    for _ in 0..10 {
        for _ in 0..10 {
            stack.ack.apply(&done(&ids)).await.unwrap();
            stack.tracking.seal(fanout).await.unwrap();
        }
        assert!(stack.backlog().await <= 1, "one message per notice");
        run_for(&stack, HOUR, step).await;
        stack.sweeper.sweep(fanfold_sweep::SweepRequest::default()).await.unwrap();
    }
    let pauses = pauses(&stack);
    assert!((15..30).contains(&pauses.len()), "{pauses:?}");
    for (n, pause) in pauses.iter().enumerate() {
        let full = NOTICE_PAUSES.max.min(NOTICE_PAUSES.base * 2_u32.pow(n.min(20) as u32));
        let slack = Duration::from_secs(2) + step;
        assert!(*pause >= full / 2 && *pause <= full + slack, "pause {n} of {pauses:?}");
    }
    let notice = stack.header(fanout).await.notice;
    assert_eq!(notice.tries as usize, pauses.len() + 1);
    assert_eq!(notice.error.as_deref(), Some("the receiver answered 503 Service Unavailable"));
    assert_eq!(stack.webhooks.by_notice().len(), 1, "one id");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_asks_for_time_gets_it() {
    for (asked, pause) in [(2 * HOUR, 2 * HOUR), (10 * DAY, DAY)] {
        let stack = stack().await;
        stack.webhooks.answer(
            move |_, before| if before == 0 { WebhookAnswer::RetryAfter(429, asked) } else { WebhookAnswer::Takes },
        );
        completed(&stack, URL).await;
        run_for(&stack, pause + HOUR, MINUTE).await;
        let pauses = pauses(&stack);
        assert_eq!(pauses.len(), 1);
        assert!(pauses[0] >= pause && pauses[0] <= pause + 2 * MINUTE, "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_days_it_is_given_up_with_one_dead_letter() {
    let stack = stack().await;
    stack.webhooks.answer(|_, _| WebhookAnswer::Hangs);
    let fanout = completed(&stack, URL).await;
    run_for(&stack, NOTICE_GIVE_UP + 3 * HOUR, 5 * MINUTE).await;
    let posted = stack.webhooks.posted();
    let lasted = posted[posted.len() - 1].at.since(posted[0].at);
    assert!(lasted >= NOTICE_GIVE_UP && lasted <= NOTICE_GIVE_UP + 2 * HOUR, "{lasted:?}");
    let notice = stack.header(fanout).await.notice;
    assert!(notice.given_up.is_some() && notice.delivered.is_none());
    let dead = stack.dead(QueueName::Notify).await;
    assert_eq!(dead.len(), 1);
    let letter: NotifyMessage = serde_json::from_str(&dead[0]).unwrap();
    let undelivered = letter.undelivered.unwrap();
    assert_eq!((undelivered.to.as_str(), undelivered.error.as_str()), (URL, "the receiver did not answer"));
    assert_eq!((&undelivered.notice, undelivered.tries as usize), (&posted[0].notice, posted.len()));
    for _ in 0..3 {
        stack.sweep().await;
        assert_eq!(stack.backlog().await, 0, "there is no further try");
    }
    // Once it is sent back, it is tried for as many days again.
    stack.send(QueueName::Notify, &dead[0]).await;
    run_for(&stack, 6 * HOUR, 5 * MINUTE).await;
    let notice = stack.header(fanout).await.notice;
    assert!(notice.given_up.is_none() && stack.webhooks.posted().len() > posted.len() + 2, "{notice:?}");
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_is_gone_is_not_called_again_until_the_dead_letter_is_sent_back() {
    let stack = stack().await;
    stack.webhooks.answer(|_, _| WebhookAnswer::Refuses(410));
    let (fanout, ids) = open(&stack, URL, 2, "order").await;
    stack.ack.apply(&done(&ids)).await.unwrap();
    for _ in 0..5 {
        stack.drain().await;
        stack.ack.apply(&done(&ids)).await.unwrap();
        stack.sweep().await;
    }
    assert_eq!(stack.webhooks.posted().len(), 1);
    let notice = stack.header(fanout).await.notice;
    assert_eq!(notice.error.as_deref(), Some("the receiver answered 410 Gone"));
    let dead = stack.dead(QueueName::Notify).await;
    assert_eq!(dead.len(), 1);
    stack.webhooks.answer(|_, before| if before < 3 { WebhookAnswer::Refuses(500) } else { WebhookAnswer::Takes });
    // Sent back twice: one chain all the same.
    stack.send(QueueName::Notify, &dead[0]).await;
    stack.send(QueueName::Notify, &dead[0]).await;
    stack.drain().await;
    assert_eq!((stack.webhooks.posted().len(), stack.webhooks.by_notice().len()), (4, 1));
    assert!(stack.header(fanout).await.notice.delivered.is_some());
    stack.send(QueueName::Notify, &dead[0]).await;
    stack.drain().await;
    assert_eq!(stack.webhooks.posted().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_lost_message_of_a_chain_is_sent_by_a_sweep_and_copies_of_it_count_no_more() {
    let stack = stack().await;
    stack.webhooks.answer(|_, before| if before < 2 { WebhookAnswer::Refuses(503) } else { WebhookAnswer::Takes });
    let fanout = completed(&stack, URL).await;
    stack.deliver(QueueName::Notify).await;
    tokio::time::sleep(MINUTE).await;
    let lost = stack.take(QueueName::Notify).await;
    assert_eq!(lost.len(), 1, "the message of the second try is lost");
    stack.sweep().await;
    assert_eq!(stack.backlog().await, 1);
    // It was only late.
    assert!(stack.hand(QueueName::Notify, lost.clone()).await.is_empty());
    assert_eq!(stack.webhooks.posted().len(), 1);
    stack.drain().await;
    assert!(stack.header(fanout).await.notice.delivered.is_some());
    assert_eq!(stack.webhooks.posted().len(), 3);
    stack.sweep().await;
    assert_eq!(stack.backlog().await, 0);
}

/// A runner that is started again has lost its queues; no other works on its tables.
#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_with_a_chain_where_it_was() {
    let stack = stack().await;
    stack
        .webhooks
        .answer(|_, before| if before == 0 { WebhookAnswer::RetryAfter(503, HOUR) } else { WebhookAnswer::Takes });
    completed(&stack, URL).await;
    stack.deliver(QueueName::Notify).await;
    tokio::time::sleep(15 * MINUTE).await;
    assert_eq!(stack.take(QueueName::Notify).await.len(), 1);
    let request = fanfold_sweep::SweepRequest { min_age: Duration::ZERO, workers_dead: true };
    stack.sweeper.sweep(request).await.unwrap();
    stack.drain().await;
    let pauses = pauses(&stack);
    assert!(pauses.len() == 1 && pauses[0] >= HOUR, "{pauses:?}");
}
