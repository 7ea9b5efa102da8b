//! Tracking on its own: open, add, seal and ack in any order and number.

use fanfold::ids::{ItemId, expand};
use fanfold::limits::{GROUP_ITEMS_MAX, ITEMS_PER_ADD_MAX};
use fanfold::messages::AckRequest;
use fanfold::store::fanouts::FanoutState;
use fanfold::tracking::{OpenRequest, TrackingError};
use fanfold_tests::{QueueName, TestStack, delivery, done, failed, message};
use futures::future::join_all;
use serde_json::json;
use uuid::Uuid;

async fn stack() -> TestStack {
    TestStack::with(json!({})).await
}

#[tokio::test(start_paused = true)]
async fn the_last_ack_answers_that_the_fanout_is_complete() {
    let stack = stack().await;
    let (fanout, ids) = stack.open(3, false).await;
    stack.seal(fanout).await;
    assert!(!stack.ack.apply(&done(&ids[..2])).await.unwrap().fanouts[0].complete);
    let last = stack.ack.apply(&failed(&ids[2..])).await.unwrap();
    assert_eq!((last.fanouts[0].complete, last.fanouts[0].user_key.as_deref()), (true, Some("test")));
    stack.drain().await;
    let completions = stack.completions().await;
    assert_eq!((completions.len(), completions[0].succeeded, completions[0].failed), (1, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn the_seal_answers_that_the_fanout_is_complete() {
    let stack = stack().await;
    let (fanout, ids) = stack.open(2, false).await;
    assert!(!stack.ack.apply(&done(&ids)).await.unwrap().fanouts[0].complete, "an open fan-out never completes");
    assert!(stack.tracking.seal(fanout).await.unwrap().complete());
    assert!(stack.tracking.seal(fanout).await.unwrap().complete(), "sealing again says the same");
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_complete_at_once_if_sealed_empty() {
    let stack = stack().await;
    let (fanout, _) = stack.open(0, false).await;
    assert!(stack.tracking.seal(fanout).await.unwrap().complete());
    let empty = stack.tracking.open(OpenRequest { seal: true, ..OpenRequest::default() }, None).await.unwrap();
    assert!(empty.fanout.complete());
}

/// Carlyle: every ack after the end reports the end again; sidekiq: callbacks fire twice.
#[tokio::test(start_paused = true)]
async fn acks_after_the_end_send_no_second_notice() {
    let stack = stack().await;
    let (_, ids) = stack.open(2, true).await;
    for _ in 0..5 {
        stack.ack.apply(&done(&ids)).await.unwrap();
        stack.drain().await;
    }
    assert_eq!(stack.take(QueueName::Notices).await.len(), 1, "delivered once");
}

/// Carlyle: of several decrements for one batch in a request only the first counts.
#[tokio::test(start_paused = true)]
async fn groups_that_end_together_are_all_counted() {
    let stack = stack().await;
    let (fanout, _) = stack.open(0, false).await;
    let mut ids = Vec::new();
    for n in 0..7 {
        ids.extend(stack.add(fanout, 3, &n.to_string()).await);
    }
    stack.seal(fanout).await;
    assert!(stack.ack.apply(&done(&ids)).await.unwrap().fanouts[0].complete);
}

/// Carlyle: a retried add leaves a group that never empties.
#[tokio::test(start_paused = true)]
async fn a_repeated_add_gives_the_same_items() {
    let stack = stack().await;
    let (fanout, _) = stack.open(0, false).await;
    let first = stack.tracking.add(fanout, GROUP_ITEMS_MAX + 1, Some("k")).await.unwrap();
    assert_eq!(stack.tracking.add(fanout, GROUP_ITEMS_MAX + 1, Some("k")).await.unwrap(), first);
    assert!(matches!(stack.tracking.add(fanout, 5, Some("k")).await, Err(TrackingError::KeyReused(_))));
    let header = stack.tracking.fanouts.get(fanout).await.unwrap().unwrap();
    assert_eq!((header.total, header.open_groups), (u64::from(GROUP_ITEMS_MAX) + 1, 2));
    stack.seal(fanout).await;
    assert_eq!(stack.tracking.add(fanout, GROUP_ITEMS_MAX + 1, Some("k")).await.unwrap(), first, "even after the seal");
    let ids: Vec<ItemId> = expand(fanout, &first).collect();
    assert!(stack.ack.apply(&done(&ids)).await.unwrap().fanouts[0].complete);
}

/// Carlyle: add and close race.
#[tokio::test(start_paused = true)]
async fn nothing_can_be_added_after_the_seal() {
    let stack = stack().await;
    let (fanout, _) = stack.open(1, false).await;
    stack.seal(fanout).await;
    let late = stack.tracking.add(fanout, 1, Some("late")).await;
    assert!(matches!(late, Err(TrackingError::NotOpen { state: FanoutState::Sealed, .. })));
    assert!(matches!(stack.tracking.add(Uuid::nil(), 1, None).await, Err(TrackingError::UnknownFanout(_))));
    for items in [0, ITEMS_PER_ADD_MAX + 1] {
        assert!(matches!(stack.tracking.add(fanout, items, None).await, Err(TrackingError::OutOfRange { .. })));
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_open_gives_the_same_fanout() {
    let stack = stack().await;
    for (items, seal) in [(0, false), (3, true), (GROUP_ITEMS_MAX * 2, false)] {
        let request = || OpenRequest { items, seal, ..OpenRequest::default() };
        let key = format!("{items}");
        let first = stack.tracking.open(request(), Some(&key)).await.unwrap();
        let again = stack.tracking.open(request(), Some(&key)).await.unwrap();
        assert_eq!((first.fanout.id, &first.groups), (again.fanout.id, &again.groups));
        let other = OpenRequest { user_key: Some("other".to_owned()), ..request() };
        assert!(matches!(stack.tracking.open(other, Some(&key)).await, Err(TrackingError::KeyReused(_))));
        let unlike = OpenRequest { seal: !seal, ..request() };
        if items > 0 && items <= GROUP_ITEMS_MAX {
            assert!(matches!(stack.tracking.open(unlike, Some(&key)).await, Err(TrackingError::KeyReused(_))));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_acks_of_one_group_at_once_all_get_through() {
    // Sealed at once, a fan-out has its bits in its header; else in a group.
    for seal in [false, true] {
        let stack = stack().await;
        let (fanout, ids) = stack.open(300, seal).await;
        let acks: Vec<AckRequest> = ids.chunks(5).chain(ids.chunks(7)).map(done).collect();
        let answers = join_all(acks.iter().map(|ack| stack.ack.apply(ack))).await;
        let gave_up: Vec<String> = answers.into_iter().filter_map(|answer| Some(answer.err()?.to_string())).collect();
        assert!(gave_up.is_empty(), "sealed at once: {seal}, of {} gave up {}: {gave_up:?}", acks.len(), gave_up.len());
        assert!(stack.tracking.seal(fanout).await.unwrap().complete(), "no ack was lost");
    }
}

#[tokio::test(start_paused = true)]
async fn last_acks_and_seal_race() {
    let mut seen = [0; 3];
    for seed in 0..48 {
        let stack = stack().await;
        let (fanout, _) = stack.open(0, false).await;
        let mut ids = stack.add(fanout, 2, "a").await;
        ids.extend(stack.add(fanout, 2, "b").await);
        let one = done(&ids[..3]);
        let two = done(&ids[1..]);
        // Each begins some requests after the others.
        let (one, two, seal) = futures::join!(
            after(seed % 4 * 2, stack.ack.apply(&one)),
            after(seed / 4 % 4 * 2, stack.ack.apply(&two)),
            after(seed / 16 * 4, stack.tracking.seal(fanout))
        );
        let ends = [one.unwrap().fanouts[0].complete, two.unwrap().fanouts[0].complete, seal.unwrap().complete()];
        assert!(ends.contains(&true), "seed {seed}: one of them saw the end");
        for (seen, end) in seen.iter_mut().zip(ends) {
            *seen += u32::from(end);
        }
        stack.drain().await;
        assert_eq!(stack.completions().await.len(), 1, "seed {seed}");
    }
    assert!(seen.iter().all(|times| *times > 0), "each of them is last sometimes: {seen:?}");
}

/// Begins after others had so many turns.
async fn after<T>(turns: u64, work: impl Future<Output = T>) -> T {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
    work.await
}

#[tokio::test(start_paused = true)]
async fn an_item_that_does_not_exist_spoils_no_other() {
    let stack = stack().await;
    let (fanout, ids) = stack.open(3, false).await;
    let beyond = ItemId { index: 3, ..ids[0] };
    let elsewhere = ItemId { fanout: Uuid::from_u128(5), ..ids[0] };
    let nowhere = ItemId { group: Uuid::from_u128(6), ..ids[0] };
    let ack = |id: &str, items: &[ItemId]| message(id, &done(items));
    let deliveries = vec![
        ack("beyond", &[beyond, ids[0]]),
        ack("good", &ids[1..]),
        ack("elsewhere", &[elsewhere]),
        ack("nowhere", &[nowhere]),
        delivery("garbage", json!({"items": ["x"]})),
    ];
    let mut refused = stack.hand(QueueName::Ack, deliveries).await;
    refused.sort_unstable();
    assert_eq!(refused, ["beyond", "elsewhere", "garbage", "nowhere"]);
    assert!(stack.tracking.seal(fanout).await.unwrap().complete(), "all that was right was applied");
}

#[tokio::test(start_paused = true)]
async fn progress_is_reported() {
    let stack = stack().await;
    for seal in [true, false] {
        let request = OpenRequest { items: 10, seal, ..OpenRequest::default() };
        let opened = stack.tracking.open(request, None).await.unwrap();
        let ids: Vec<ItemId> = expand(opened.fanout.id, &opened.groups).collect();
        stack.ack.apply(&failed(&ids[..2])).await.unwrap();
        stack.ack.apply(&done(&ids[1..5])).await.unwrap();
        let fanout = stack.tracking.fanouts.get(opened.fanout.id).await.unwrap().unwrap();
        let (_, progress) = stack.tracking.progress(fanout).await.unwrap();
        assert_eq!((progress.done, progress.failed, progress.exact), (5, 2, true), "seal: {seal}");
    }
}

/// laravel/horizon#1512: the worker died between the last item and the callback.
#[tokio::test(start_paused = true)]
async fn a_lost_notice_is_sent_by_a_sweep() {
    let stack = stack().await;
    let (_, ids) = stack.open(2, false).await;
    let (fanout, _) = stack.open(2, false).await;
    stack.seal(fanout).await;
    stack.ack.apply(&done(&ids)).await.unwrap();
    assert_eq!(stack.take(QueueName::Notify).await.len(), 1, "the hint is lost");
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 0);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 0, "one notice");
}

/// Every order and every repetition of acks, late ones too, ends the same.
#[tokio::test(start_paused = true)]
async fn any_order_and_repetition_of_acks_ends_the_same() {
    for seed in 0..30 {
        let mut random = fastrand::Rng::with_seed(seed);
        let stack = stack().await;
        let (fanout, _) = stack.open(0, false).await;
        let mut ids = stack.add(fanout, random.u32(1..40), "a").await;
        ids.extend(stack.add(fanout, random.u32(1..40), "b").await);
        let failing: Vec<bool> = ids.iter().map(|_| random.u8(..) < 50).collect();
        let mut deliveries: Vec<usize> = (0..ids.len()).flat_map(|at| vec![at; random.usize(1..4)]).collect();
        random.shuffle(&mut deliveries);
        let seal_at = random.usize(0..=deliveries.len());
        let mut notices = 0;
        for (n, chunk) in deliveries.chunks(5).enumerate() {
            if n == seal_at / 5 {
                stack.seal(fanout).await;
            }
            let of = |fails: bool| chunk.iter().filter(|at| failing[**at] == fails).map(|at| ids[*at].into()).collect();
            stack.ack.apply(&AckRequest { items: of(false), failed: of(true), ..AckRequest::default() }).await.unwrap();
            stack.drain().await;
            notices += stack.completions().await.len();
        }
        stack.seal(fanout).await;
        stack.drain().await;
        notices += stack.completions().await.len();
        assert_eq!(notices, 1, "seed {seed}");
        let header = stack.tracking.fanouts.get(fanout).await.unwrap().unwrap();
        let failed = failing.iter().filter(|fails| **fails).count() as u64;
        assert_eq!((header.complete(), header.total, header.failed), (true, ids.len() as u64, failed), "seed {seed}");
    }
}

/// An open repeated under its key with other items is refused, whatever was added since.
#[tokio::test(start_paused = true)]
async fn an_open_key_is_not_reused_for_other_items() {
    let stack = stack().await;
    let request = |items| OpenRequest { items, ..OpenRequest::default() };
    let first = stack.tracking.open(request(0), Some("key")).await.unwrap();
    stack.tracking.add(first.fanout.id, 5, None).await.unwrap();
    let again = stack.tracking.open(request(3), Some("key")).await;
    assert!(again.is_err(), "{:?} does not exist", again.unwrap().groups);
}
