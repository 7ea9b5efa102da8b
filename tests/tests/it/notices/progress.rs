//! Progress at chosen percentages: each is reported once, with what was done then, the latest one counts, and the end comes after it.

use fanfold::ids::derived;
use fanfold::notice::{Event, FanoutProgress, Notice};
use fanfold::policy::NoticesQueue;
use fanfold::store::fanouts::{Fanout, NotifyOn, ProgressPercentage};
use fanfold_tests::QueueName;

use super::*;

/// Progress at these percentages, in hundredths, and every end.
pub(super) fn at(percentages: &[u16]) -> Option<NotifyOn> {
    let progress = percentages.iter().map(|percentage| ProgressPercentage::new(percentage * 100).unwrap()).collect();
    Some(NotifyOn { ends: None, progress })
}

/// What was delivered, in order: `50%` and how many were done, or the type of an end.
pub(super) fn delivered(stack: &TestStack) -> Vec<String> {
    stack.webhooks.posted().iter().map(|posted| short(&posted.notice)).collect()
}

fn short(notice: &Notice) -> String {
    match &notice.event {
        Event::FanoutProgress(progress) => format!("{} {}/{}", progress.percentage, progress.done, progress.total),
        event => serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned(),
    }
}

/// A small sealed fan-out of so many items, or an open one of groups of five.
pub(super) async fn opened(stack: &TestStack, percentages: &[u16], items: u32, small: bool) -> (Uuid, Vec<ItemId>) {
    let notify = Some(Destination::Url(URL.to_owned()));
    let request = OpenRequest { notify, notify_on: at(percentages), ..OpenRequest::default() };
    let request = if small { OpenRequest { items, seal: true, ..request } } else { request };
    let (fanout, mut ids) = stack.open_as(&request, "order").await;
    while ids.len() < items as usize {
        ids.extend(stack.add(fanout, 5, &ids.len().to_string()).await);
    }
    (fanout, ids)
}

/// Acks, and delivers the notices that are due.
pub(super) async fn ack(stack: &TestStack, ids: &[ItemId]) {
    stack.ack(&done(ids)).await;
    while stack.deliver(QueueName::Notify).await > 0 {}
}

#[tokio::test(start_paused = true)]
async fn each_share_is_reported_once_with_what_was_done_then() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, &[90, 25, 50], 10, true).await;
    for few in ids[..7].chunks(1) {
        ack(&stack, few).await;
        ack(&stack, few).await;
    }
    let failed = AckRequest { failed: vec![ids[7].into()], duplicates: vec![ids[8].into()], ..AckRequest::default() };
    stack.ack(&failed).await;
    stack.drain().await;
    assert_eq!(delivered(&stack), ["25% 3/10", "50% 5/10", "90% 9/10"]);
    ack(&stack, &ids[9..]).await;
    assert_eq!(delivered(&stack)[3..], ["fanout.completed"]);
    stack.sweep().await;
    assert_eq!((stack.backlog().await, stack.webhooks.posted().len()), (0, 4));
    let last = &stack.webhooks.posted()[2].notice;
    assert_eq!((last.id, &last.source), (derived::progress_notice(fanout, 9_000), &format!("/fanouts/{fanout}")));
    let header = stack.header(fanout).await;
    assert!(header.notice.delivered.is_some() && !header.ending(), "{header:?}");
    let opened_at = header.created_at.0;
    assert_eq!(
        serde_json::to_value(&last.event).unwrap(),
        json!({"type": "fanout.progress", "data": {"fanout": fanout, "user_key": null, "percentage": "90%", "total": 10, "done": 9,
            "succeeded": 7, "failed": 1, "duplicates": 1, "opened_at": opened_at}})
    );
}

#[tokio::test(start_paused = true)]
async fn of_several_shares_at_once_the_largest_is_reported() {
    let stack = stack().await;
    let (_, ids) = opened(&stack, &[10, 20, 30, 80], 10, true).await;
    ack(&stack, &ids[..7]).await;
    ack(&stack, &ids[7..]).await;
    assert_eq!(delivered(&stack), ["30% 7/10", "fanout.completed"], "all are done: that is the end");
}

/// Of a large fan-out the groups that ended count, and the percentages of what it has when it is sealed.
#[tokio::test(start_paused = true)]
async fn a_large_one_is_judged_by_groups_that_ended_once_it_is_sealed() {
    let stack = stack().await;
    let (fanout, ids) = opened(&stack, &[25, 50, 75], 15, false).await;
    ack(&stack, &ids[..10]).await;
    stack.sweep().await;
    assert_eq!(delivered(&stack), Vec::<String>::new(), "more may come: 10 of 15");
    let more = stack.add(fanout, 5, "more").await;
    stack.seal(fanout).await;
    stack.drain().await;
    assert_eq!(delivered(&stack), ["50% 10/20"]);
    ack(&stack, &ids[10..14]).await;
    ack(&stack, &more[..4]).await;
    assert_eq!(delivered(&stack).len(), 1, "18 are done, but no other group ended");
    ack(&stack, &ids[14..]).await;
    assert_eq!(delivered(&stack)[1..], ["75% 15/20"]);
    let header = stack.header(fanout).await;
    assert!(header.notice.delivered.is_some() && header.ending(), "a sweep still looks at it: {header:?}");
    ack(&stack, &more[4..]).await;
    assert_eq!(delivered(&stack)[2..], ["fanout.completed"]);
}

#[tokio::test(start_paused = true)]
async fn queues_get_progress_as_well() {
    let stack = stack().await;
    let (_, ids) =
        stack.open_with(OpenRequest { items: 4, seal: true, notify_on: at(&[50]), ..OpenRequest::default() }).await;
    ack(&stack, &ids[..3]).await;
    ack(&stack, &ids[3..]).await;
    let bodies: Vec<Notice> =
        stack.take(QueueName::Notices).await.iter().map(|notice| serde_json::from_str(&notice.body).unwrap()).collect();
    assert_eq!(bodies.iter().map(short).collect::<Vec<_>>(), ["50% 3/4", "fanout.completed"]);
}

#[tokio::test(start_paused = true)]
async fn many_workers_at_once_report_each_share_once() {
    let mut reported = 0;
    for (small, seed) in (0..6).map(|seed| (seed % 2 == 0, seed)) {
        let stack = stack().await;
        let percentages: Vec<u16> = (1..20).map(|n| n * 5).collect();
        let (fanout, mut ids) = opened(&stack, &percentages, 100, small).await;
        stack.seal(fanout).await;
        fastrand::Rng::with_seed(seed).shuffle(&mut ids);
        let requests: Vec<AckRequest> = ids.chunks(if small { 3 } else { 20 }).map(done).collect();
        let acks = futures::future::join_all(requests.iter().chain(&requests).map(|acks| stack.ack.apply(acks)));
        let delivering = run_for(&stack, MINUTE, Duration::from_millis(20));
        let (answers, ()) = futures::join!(acks, delivering);
        answers.into_iter().for_each(|answer| drop(answer.unwrap()));
        let delivered = delivered(&stack);
        assert_eq!(delivered.last().map(String::as_str), Some("fanout.completed"), "seed {seed}: {delivered:?}");
        assert!(stack.webhooks.by_notice().values().all(|calls| *calls == 1), "seed {seed}: {delivered:?}");
        let done: Vec<u64> = stack.webhooks.posted().iter().filter_map(|posted| progress(&posted.notice)).collect();
        assert!(done.is_sorted() && done.iter().all(|done| *done < 100), "seed {seed}: {delivered:?}");
        reported += done.len();
    }
    assert!(reported > 0, "no percentage is reported while acks go on");
}

fn progress(notice: &Notice) -> Option<u64> {
    let Event::FanoutProgress(FanoutProgress { done, .. }) = &notice.event else { return None };
    Some(*done)
}

/// A notice costs its writes, and nothing else does: an ack that reaches no percentage costs what it costs without percentages.
#[tokio::test(start_paused = true)]
async fn an_ack_that_reaches_no_share_costs_nothing_more() {
    for small in [true, false] {
        let mut costs = Vec::new();
        for percentages in [&[][..], &[90]] {
            let stack = stack().await;
            let (fanout, ids) = opened(&stack, percentages, 100, small).await;
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
    let request = |percentages: &[u16]| OpenRequest {
        items: 4,
        notify: Some(Destination::Queue(NoticesQueue::Notices)),
        notify_on: at(percentages),
        ..OpenRequest::default()
    };
    let Fanout { id, .. } = stack.tracking.open(request(&[50, 25]), Some("k")).await.unwrap().fanout;
    assert_eq!(stack.tracking.open(request(&[25, 50]), Some("k")).await.unwrap().fanout.id, id);
    let other = stack.tracking.open(request(&[25]), Some("k")).await.unwrap_err().to_string();
    assert!(other.contains("`notify_on` differs"), "{other}");
}
