//! Progress at chosen shares: each is told once, with what was done then, the latest one counts, and the end is told after it.

use fanfold::ids::derived;
use fanfold::notice::{Event, FanoutProgress, Notice};
use fanfold::policy::NoticesQueue;
use fanfold::store::fanouts::{Fanout, FanoutState, NotifyOn, ProgressShare};
use fanfold_sweep::SweepRequest;
use fanfold_tests::{QueueName, WebhookAnswer};

use super::*;

/// Progress at these shares, in hundredths, and every end.
pub(super) fn at(shares: &[u16]) -> Option<NotifyOn> {
    let progress = shares.iter().map(|share| ProgressShare::new(share * 100).unwrap()).collect();
    Some(NotifyOn { ends: None, progress })
}

/// What was delivered, in order: `50%` and how many were done, or the type of an end.
pub(super) fn told(stack: &TestStack) -> Vec<String> {
    stack.webhooks.posted().iter().map(|posted| short(&posted.notice)).collect()
}

fn short(notice: &Notice) -> String {
    match &notice.event {
        Event::FanoutProgress(progress) => format!("{} {}/{}", progress.share, progress.done, progress.total),
        event => serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned(),
    }
}

/// A small sealed fan-out of so many items, or an open one of groups of five.
pub(super) async fn opened(stack: &TestStack, shares: &[u16], items: u32, small: bool) -> (Uuid, Vec<ItemId>) {
    let notify = Some(Destination::Url(URL.to_owned()));
    let request = OpenRequest { notify, notify_on: at(shares), ..OpenRequest::default() };
    let request = if small { OpenRequest { items, seal: true, ..request } } else { request };
    let opened = stack.insist(async || stack.tracking.open(request.clone(), Some("order")).await).await;
    let mut ids: Vec<ItemId> = expand(opened.fanout.id, &opened.groups).collect();
    while ids.len() < items as usize {
        ids.extend(stack.add(opened.fanout.id, 5, &ids.len().to_string()).await);
    }
    (opened.fanout.id, ids)
}

/// Acks, and has told what there is to tell.
async fn ack(stack: &TestStack, ids: &[ItemId]) {
    stack.ack(&done(ids)).await;
    while stack.deliver(QueueName::Notify).await > 0 {}
}

#[tokio::test(start_paused = true)]
async fn each_share_is_told_once_with_what_was_done_then() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, &[90, 25, 50], 10, true).await;
    for few in ids[..7].chunks(1) {
        ack(&stack, few).await;
        ack(&stack, few).await;
    }
    let failed = AckRequest { failed: vec![ids[7].into()], duplicates: vec![ids[8].into()], ..AckRequest::default() };
    stack.ack(&failed).await;
    stack.drain().await;
    assert_eq!(told(&stack), ["25% 3/10", "50% 5/10", "90% 9/10"]);
    ack(&stack, &ids[9..]).await;
    assert_eq!(told(&stack)[3..], ["fanout.completed"]);
    stack.sweep().await;
    assert_eq!((stack.backlog().await, stack.webhooks.posted().len()), (0, 4));
    let last = &stack.webhooks.posted()[2].notice;
    assert_eq!((last.id, &last.source), (derived::progress_notice(fanout, 9_000), &format!("/fanouts/{fanout}")));
    let header = stack.header(fanout).await;
    assert!(header.notice.delivered.is_some() && !header.ending(), "{header:?}");
    let opened_at = header.created_at.0;
    assert_eq!(
        serde_json::to_value(&last.event).unwrap(),
        json!({"type": "fanout.progress", "data": {"fanout": fanout, "user_key": null, "share": "90%", "total": 10, "done": 9,
            "succeeded": 7, "failed": 1, "duplicates": 1, "opened_at": opened_at}})
    );
}

#[tokio::test(start_paused = true)]
async fn of_several_shares_at_once_the_largest_is_told() {
    let stack = stack().await;
    let (_, ids) = opened(&stack, &[10, 20, 30, 80], 10, true).await;
    ack(&stack, &ids[..7]).await;
    ack(&stack, &ids[7..]).await;
    assert_eq!(told(&stack), ["30% 7/10", "fanout.completed"], "all are done: that is the end");
}

/// Of a large fan-out the groups that ended count, and the shares of what it has when it is sealed.
#[tokio::test(start_paused = true)]
async fn a_large_one_is_judged_by_groups_that_ended_once_it_is_sealed() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, &[25, 50, 75], 15, false).await;
    ack(&stack, &ids[..10]).await;
    stack.sweep().await;
    assert_eq!(told(&stack), Vec::<String>::new(), "more may come: 10 of 15");
    let more = stack.add(fanout, 5, "more").await;
    stack.seal(fanout).await;
    stack.drain().await;
    assert_eq!(told(&stack), ["50% 10/20"]);
    ack(&stack, &ids[10..14]).await;
    ack(&stack, &more[..4]).await;
    assert_eq!(told(&stack).len(), 1, "18 are done, but no other group ended");
    ack(&stack, &ids[14..]).await;
    assert_eq!(told(&stack)[1..], ["75% 15/20"]);
    let header = stack.header(fanout).await;
    assert!(header.notice.delivered.is_some() && header.ending(), "a sweep still looks at it: {header:?}");
    ack(&stack, &more[4..]).await;
    assert_eq!(told(&stack)[2..], ["fanout.completed"]);
}

#[tokio::test(start_paused = true)]
async fn queues_are_told_as_well() {
    let stack = stack().await;
    let (_, ids) =
        stack.open_with(OpenRequest { items: 4, seal: true, notify_on: at(&[50]), ..OpenRequest::default() }).await;
    ack(&stack, &ids[..3]).await;
    ack(&stack, &ids[3..]).await;
    let bodies: Vec<Notice> =
        stack.take(QueueName::Notices).await.iter().map(|notice| serde_json::from_str(&notice.body).unwrap()).collect();
    assert_eq!(bodies.iter().map(short).collect::<Vec<_>>(), ["50% 3/4", "fanout.completed"]);
}

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
        assert_eq!(told(&stack), ["25% 5/20", "50% 10/20", "50% 10/20", "50% 10/20"]);
        stack.webhooks.answer(|_, before| if before == 0 { WebhookAnswer::Refuses(503) } else { WebhookAnswer::Takes });
        ack(&stack, &ids[10..]).await;
        run_for(&stack, MINUTE, Duration::from_secs(1)).await;
        assert_eq!(told(&stack)[4..], ["fanout.completed", "fanout.completed"]);
        let header = stack.header(fanout).await;
        assert_eq!((header.notice.tries, header.notice.delivered.is_some()), (2, true));
        run_for(&stack, 3 * HOUR, MINUTE).await;
        stack.sweep().await;
        assert_eq!((told(&stack).len(), stack.backlog().await), (6, 0));
    }
}

/// A share whose notice is being delivered when the end comes: the end is told when that is over, and neither's outcome is taken for the
/// other's.
#[tokio::test(start_paused = true)]
async fn the_end_is_told_right_after_a_share_that_is_being_delivered() {
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
            assert_eq!(told(&stack), ["50% 5/10", "fanout.completed"], "{late:?}, small: {small}");
            let posted = stack.webhooks.posted();
            let pause = posted[1].at.since(posted[0].at);
            assert!(pause <= Duration::from_secs(16), "{pause:?}");
            let header = stack.header(fanout).await;
            assert!(header.notice.delivered.is_some() && !header.ending(), "{header:?}");
            run_for(&stack, 2 * HOUR, MINUTE).await;
            assert_eq!((told(&stack).len(), stack.backlog().await), (2, 0));
        }
    }
}

/// Whoever delivered the share is dead: the end comes when its lease is over.
#[tokio::test(start_paused = true)]
async fn a_dead_worker_holds_the_end_up_for_its_lease_and_no_longer() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, &[50], 10, true).await;
    stack.ack(&done(&ids[..5])).await;
    let before = stack.header(fanout).await;
    let turn = stack.tracking.fanouts.notices().begin(&fanout.to_string(), &before.notice).await.unwrap().unwrap();
    stack.ack(&done(&ids[5..])).await;
    run_for(&stack, Duration::from_secs(90), Duration::from_secs(1)).await;
    assert_eq!(told(&stack), ["fanout.completed"], "and what it was to tell is not told any more");
    let end = stack.header(fanout).await;
    let notices = stack.tracking.fanouts.notices();
    assert!(!notices.delivered(&turn).await.unwrap() && !notices.give_up(&turn, 0, "late").await.unwrap());
    assert!(!notices.again(&turn, stack.world.now(), 0, Some("late")).await.unwrap());
    assert!(notices.leave(&turn).await.unwrap().is_none());
    assert!(notices.begin(&fanout.to_string(), &before.notice).await.unwrap().is_none());
    assert_eq!(stack.header(fanout).await, end);
}

#[tokio::test(start_paused = true)]
async fn once_its_end_is_decided_no_progress_is_told() {
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
        assert!(stack.header(fanout).await.ended() || small);
        for _ in 0..4 {
            stack.drain().await;
            stack.clock.skip(fanfold::limits::DRAINED_AFTER);
            stack.sweep().await;
        }
        stack.drain().await;
        let told = told(&stack);
        assert_eq!(told, ["25% 5/20", "fanout.cancelled", "fanout.cancelled"], "small: {small}");
        assert!(!stack.header(fanout).await.ending());
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_lost_is_sent_by_a_sweep_and_copies_of_it_count_no_more() {
    for small in [true, false] {
        let stack = stack().await;
        let (fanout, ids) = opened(&stack, &[25, 50], 20, small).await;
        stack.seal(fanout).await;
        stack.ack(&done(&ids[..5])).await;
        let lost = stack.take(QueueName::Notify).await;
        assert_eq!(lost.len(), 1, "one message a share");
        stack.sweeper.sweep(SweepRequest::default()).await.unwrap();
        assert_eq!(stack.backlog().await, 0, "it may only be late");
        stack.sweep().await;
        stack.drain().await;
        assert_eq!(told(&stack), ["25% 5/20"], "small: {small}");
        for _ in 0..3 {
            assert!(stack.hand(QueueName::Notify, lost.clone()).await.is_empty());
            stack.sweep().await;
        }
        stack.ack(&done(&ids[5..10])).await;
        assert!(stack.hand(QueueName::Notify, lost.clone()).await.is_empty());
        assert_eq!(told(&stack).len(), 1, "it asked for the share before");
        // A runner that is started again has lost its queues.
        stack.take(QueueName::Notify).await;
        stack.sweeper.sweep(SweepRequest { min_age: Duration::ZERO, workers_dead: true }).await.unwrap();
        stack.drain().await;
        assert_eq!(told(&stack)[1..], ["50% 10/20"]);
        assert_eq!(stack.backlog().await, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn many_workers_at_once_have_each_share_told_once() {
    for (small, seed) in (0..6).map(|seed| (seed % 2 == 0, seed)) {
        let stack = stack().await;
        let shares: Vec<u16> = (1..20).map(|n| n * 5).collect();
        let (fanout, mut ids) = opened(&stack, &shares, 100, small).await;
        stack.seal(fanout).await;
        fastrand::Rng::with_seed(seed).shuffle(&mut ids);
        let requests: Vec<AckRequest> = ids.chunks(if small { 3 } else { 20 }).map(done).collect();
        let acks = futures::future::join_all(requests.iter().chain(&requests).map(|acks| stack.ack.apply(acks)));
        let telling = run_for(&stack, MINUTE, Duration::from_millis(20));
        let (answers, ()) = futures::join!(acks, telling);
        answers.into_iter().for_each(|answer| drop(answer.unwrap()));
        let told = told(&stack);
        assert_eq!(told.last().map(String::as_str), Some("fanout.completed"), "seed {seed}: {told:?}");
        assert!(stack.webhooks.by_notice().values().all(|calls| *calls == 1), "seed {seed}: {told:?}");
        let done: Vec<u64> = stack.webhooks.posted().iter().filter_map(|posted| progress(&posted.notice)).collect();
        assert!(done.is_sorted() && done.iter().all(|done| *done < 100), "seed {seed}: {told:?}");
    }
}

fn progress(notice: &Notice) -> Option<u64> {
    let Event::FanoutProgress(FanoutProgress { done, .. }) = &notice.event else { return None };
    Some(*done)
}

/// What is told costs its writes, and nothing else does: an ack that reaches no share costs what it costs without shares.
#[tokio::test(start_paused = true)]
async fn an_ack_that_reaches_no_share_costs_nothing_more() {
    for small in [true, false] {
        let mut costs = Vec::new();
        for shares in [&[][..], &[90]] {
            let stack = stack().await;
            let (fanout, ids) = opened(&stack, shares, 100, small).await;
            stack.seal(fanout).await;
            let before = stack.usage();
            for few in ids[..85].chunks(1) {
                stack.ack(&done(few)).await;
            }
            let after = stack.usage();
            costs.push((after.dynamodb_requests - before.dynamodb_requests, after.write_units - before.write_units));
        }
        assert_eq!(costs[0], costs[1], "small: {small}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_open_repeated_with_other_shares_is_refused() {
    let stack = stack().await;
    let request = |shares: &[u16]| OpenRequest {
        items: 4,
        notify: Some(Destination::Queue(NoticesQueue::Notices)),
        notify_on: at(shares),
        ..OpenRequest::default()
    };
    let Fanout { id, .. } = stack.tracking.open(request(&[50, 25]), Some("k")).await.unwrap().fanout;
    assert_eq!(stack.tracking.open(request(&[25, 50]), Some("k")).await.unwrap().fanout.id, id);
    let other = stack.tracking.open(request(&[25]), Some("k")).await.unwrap_err().to_string();
    assert!(other.contains("`notify_on` differs"), "{other}");
}
