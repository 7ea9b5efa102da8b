//! What is counted, over HTTP and by messages, and what is refused.

use fanfold::delivery::Delivery;
use fanfold::ids::ItemId;
use fanfold::messages::AckMessage;
use fanfold::store::fanouts::FanoutState;
use fanfold::tracking::{GroupPage, OpenRequest, TrackingError};
use fanfold_tests::{QueueName, TestStack, done, listen, logged, message};
use futures::future::join_all;
use uuid::Uuid;

use super::{beginning, count, counted, open, stack, stands};

#[tokio::test(start_paused = true)]
async fn the_count_that_leaves_none_outstanding_ends_it_with_one_notice() {
    let stack = stack().await;
    let fanout = open(&stack, OpenRequest { user_key: Some("order 7".to_owned()), ..beginning(2, false) }).await;
    assert_eq!(stands(&counted(&stack, fanout, [3, 0, 0]).await.unwrap()), (FanoutState::Open, [5, 0, 0]));
    assert_eq!(stands(&counted(&stack, fanout, [0, 2, 1]).await.unwrap()), (FanoutState::Open, [5, 3, 1]));
    assert_eq!(stands(&stack.tracking.seal(fanout).await.unwrap()), (FanoutState::Sealed, [5, 3, 1]));
    assert_eq!(stands(&counted(&stack, fanout, [0, 1, 0]).await.unwrap()), (FanoutState::Sealed, [5, 4, 1]));
    let last = counted(&stack, fanout, [0, 1, 0]).await.unwrap();
    assert_eq!((stands(&last), last.user_key.as_deref()), ((FanoutState::Completed, [5, 5, 1]), Some("order 7")));
    stack.drain().await;
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].fanout, ends[0].user_key.as_deref()), (1, fanout, Some("order 7")));
    assert_eq!([ends[0].total, ends[0].succeeded, ends[0].failed, ends[0].missing], [5, 4, 1, 0]);
    // The counters of what has ended stand still; a repeated last count is answered with how it ended.
    assert_eq!(stands(&counted(&stack, fanout, [0, 1, 0]).await.unwrap()), (FanoutState::Completed, [5, 5, 1]));
    stack.sweep().await;
    stack.drain().await;
    assert!(stack.completions().await.is_empty(), "one notice");
}

#[tokio::test(start_paused = true)]
async fn the_seal_ends_what_was_counted_before() {
    let stack = stack().await;
    for (items, counts, at_the_end) in [(0, [0; 3], [0; 3]), (3, [0, 3, 0], [3, 3, 0]), (2, [1, 4, 0], [3, 4, 0])] {
        let fanout = open(&stack, beginning(items, false)).await;
        assert_eq!(stands(&counted(&stack, fanout, counts).await.unwrap()), (FanoutState::Open, at_the_end));
        assert_eq!(stands(&stack.tracking.seal(fanout).await.unwrap()), (FanoutState::Completed, at_the_end));
    }
    let sealed = open(&stack, beginning(2, true)).await;
    assert_eq!(stands(&counted(&stack, sealed, [0, 2, 0]).await.unwrap()), (FanoutState::Completed, [2, 2, 0]));
    let nothing = open(&stack, beginning(0, true)).await;
    assert!(stack.header(nothing).await.complete());
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 5);
}

/// A worker adds what it found before it counts itself as done, or with it.
#[tokio::test(start_paused = true)]
async fn after_the_seal_more_are_added_while_some_are_outstanding() {
    let stack = stack().await;
    let fanout = open(&stack, beginning(1, true)).await;
    assert_eq!(stands(&counted(&stack, fanout, [2, 0, 0]).await.unwrap()), (FanoutState::Sealed, [3, 0, 0]));
    assert_eq!(stands(&counted(&stack, fanout, [0, 2, 0]).await.unwrap()), (FanoutState::Sealed, [3, 2, 0]));
    assert_eq!(stands(&counted(&stack, fanout, [1, 1, 0]).await.unwrap()), (FanoutState::Sealed, [4, 3, 0]));
    assert!(counted(&stack, fanout, [0, 1, 0]).await.unwrap().complete());
    let late = counted(&stack, fanout, [1, 1, 0]).await;
    assert!(matches!(late, Err(TrackingError::CountedOut { state: FanoutState::Completed, .. })), "{late:?}");
    assert_eq!(stands(&stack.header(fanout).await), (FanoutState::Completed, [4, 4, 0]));
}

/// Messages overtake each other: what is done may be counted before what is to be done.
#[tokio::test(start_paused = true)]
async fn an_open_one_may_be_below_zero_for_a_while() {
    let stack = stack().await;
    let fanout = open(&stack, beginning(0, false)).await;
    assert_eq!(stands(&counted(&stack, fanout, [0, 2, 1]).await.unwrap()), (FanoutState::Open, [0, 3, 1]));
    assert_eq!(stands(&counted(&stack, fanout, [4, 0, 0]).await.unwrap()), (FanoutState::Open, [4, 3, 1]));
    assert_eq!(stands(&stack.tracking.seal(fanout).await.unwrap()), (FanoutState::Sealed, [4, 3, 1]));
}

#[tokio::test(start_paused = true)]
async fn many_count_at_once_and_each_counts() {
    let stack = stack().await;
    let fanout = open(&stack, beginning(200, true)).await;
    let answers = join_all((0..200).map(|_| counted(&stack, fanout, [0, 1, 0]))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(stands(&stack.header(fanout).await), (FanoutState::Completed, [200, 200, 0]));
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_counted_is_named_and_spoils_no_other() {
    let stack = stack().await;
    let fanout = open(&stack, beginning(3, false)).await;
    let exact = open(&stack, OpenRequest { items: 3, seal: true, ..OpenRequest::default() }).await;
    let nobody = Uuid::from_u128(9);
    let mut request = count(fanout, [0, 1, 0]);
    for id in [exact, nobody, fanout] {
        request.counts.extend(count(id, [0, 0, 1]).counts);
    }
    let counted = stack.ack.count([&request]).await;
    assert_eq!(
        stands(counted[&fanout].as_ref().unwrap()),
        (FanoutState::Open, [3, 2, 1]),
        "what is named twice counts twice"
    );
    assert!(matches!(counted[&exact], Err(TrackingError::Exact(id)) if id == exact));
    assert!(matches!(counted[&nobody], Err(TrackingError::UnknownFanout(id)) if id == nobody));
    assert_eq!(stack.header(exact).await.inline_group().unwrap().pending.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn it_has_no_items() {
    let stack = stack().await;
    let fanout = open(&stack, beginning(3, true)).await;
    for add in [stack.tracking.add(fanout, 1, None).await, stack.tracking.add(fanout, 1, Some("k")).await] {
        assert!(matches!(add, Err(TrackingError::Estimated(id)) if id == fanout), "{add:?}");
    }
    let header = stack.header(fanout).await;
    assert_eq!(stack.tracking.groups_of(&header, None, 10).await.unwrap(), GroupPage::default());
    for group in [fanout, Uuid::from_u128(9)] {
        let answer = stack.ack.apply(&done(&[ItemId { fanout, group, index: 0 }])).await.unwrap();
        assert!(answer.nothing && answer.refused[0].problem.contains("is estimated and has no items"), "{answer:?}");
    }
    let before = stack.usage().dynamodb_requests;
    let (_, progress) = stack.tracking.progress(header).await.unwrap();
    assert_eq!((progress.exact, stack.usage().dynamodb_requests - before), (false, 0), "there is nothing to be read");
}

#[tokio::test(start_paused = true)]
async fn an_open_repeated_with_another_mode_is_refused() {
    let stack = stack().await;
    let first = stack.tracking.open(beginning(3, false), Some("open")).await.unwrap();
    assert_eq!((first.fanout.total, first.groups.len()), (3, 0));
    counted(&stack, first.fanout.id, [2, 1, 0]).await.unwrap();
    let again = stack.tracking.open(beginning(3, false), Some("open")).await.unwrap();
    assert_eq!((again.fanout.id, again.fanout.total), (first.fanout.id, 5), "what it began with counts once");
    let exact = OpenRequest { mode: Default::default(), ..beginning(3, false) };
    let other = stack.tracking.open(exact, Some("open")).await;
    assert!(matches!(&other, Err(TrackingError::KeyReused(what)) if what.contains("mode")), "{other:?}");
}

/// Hands counts as messages; returns those that come again.
async fn hand(stack: &TestStack, messages: &[(&str, AckMessage)]) -> Vec<String> {
    let messages: Vec<Delivery> = messages.iter().map(|(name, of)| message(name, of)).collect();
    stack.hand(QueueName::Ack, messages).await
}

#[tokio::test(start_paused = true)]
async fn messages_of_an_invocation_are_one_write_beside_those_with_acks() {
    let stack = stack().await;
    let fanout = open(&stack, beginning(3, true)).await;
    let (exact, ids) = stack.open(2, true).await;
    let counts = |counts| AckMessage::Counts(count(fanout, counts));
    let messages = [
        ("one", counts([0, 1, 0])),
        ("acks", AckMessage::Acks(done(&ids))),
        ("two", counts([1, 1, 0])),
        ("three", counts([0, 1, 1])),
    ];
    let before = stack.usage().dynamodb_requests;
    assert!(hand(&stack, &messages).await.is_empty());
    let requests = stack.usage().dynamodb_requests - before;
    assert_eq!(requests, 4, "a read, acks with their end; counts, and their end");
    assert!(stack.header(exact).await.complete());
    assert_eq!(stands(&stack.header(fanout).await), (FanoutState::Completed, [4, 4, 1]));
}

/// A message that came again would count again: so it does not, once something of it was counted.
#[tokio::test(start_paused = true)]
async fn a_message_comes_again_only_if_nothing_of_it_was_counted() {
    let stack = stack().await;
    let fanout = open(&stack, beginning(9, false)).await;
    let ended = open(&stack, beginning(0, true)).await;
    let nobody = Uuid::from_u128(9);
    let both = |one, other| {
        let mut request = count(fanout, one);
        request.counts.extend(count(nobody, other).counts);
        AckMessage::Counts(request)
    };
    listen();
    let messages = [
        ("nobody's", AckMessage::Counts(count(nobody, [0, 1, 0]))),
        ("in part", both([0, 2, 0], [0, 1, 0])),
        ("after the end", AckMessage::Counts(count(ended, [0, 1, 0]))),
        ("added after the end", AckMessage::Counts(count(ended, [1, 0, 0]))),
    ];
    assert_eq!(hand(&stack, &messages).await, ["nobody's", "added after the end"]);
    let logged = logged();
    assert!(
        logged.contains("in part") && logged.contains(&nobody.to_string()),
        "what is not counted is logged: {logged}"
    );
    assert_eq!(stands(&stack.header(fanout).await), (FanoutState::Open, [9, 2, 0]));
    // This is what a queue does, and what makes an estimate of it.
    assert!(hand(&stack, &messages[1..2]).await.is_empty());
    assert_eq!(stands(&stack.header(fanout).await), (FanoutState::Open, [9, 4, 0]));
}
