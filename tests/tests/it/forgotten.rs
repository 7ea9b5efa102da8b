//! What has been done is forgotten some time later: records of tasks, keys and item groups expire. Repeating a request does not do it
//! again as long as the fan-out goes on.

use fanfold::aws::StoreError;
use fanfold::ids::{TaskId, derived};
use fanfold::item_results::{ItemResults, ItemResultsReader};
use fanfold::limits::HINT_LOST_AFTER;
use fanfold::messages::TaskRequest;
use fanfold::policy::Span;
use fanfold::store::fanouts::{IdleLimit, Then};
use fanfold::tracking::{ItemState, OpenRequest, TrackingError};
use fanfold_register::Registration;
use fanfold_tests::{QueueName, TestStack, done, failed, order};
use serde_json::{Value, json};

/// Time passes, and records expire.
async fn days_pass(stack: &TestStack, days: u32) {
    stack.days(days).await;
    stack.drain().await;
}

async fn outcomes(stack: &TestStack, tasks: Vec<TaskRequest>) -> Vec<Registration> {
    stack.register.register(tasks, "a request").await.unwrap().into_iter().map(|task| task.outcome).collect()
}

/// The task whose item is done takes no key either: the next one with its key is not a duplicate of it.
#[tokio::test(start_paused = true)]
async fn a_task_whose_item_is_done_is_not_stored_again() {
    for small in [true, false] {
        let stack = TestStack::with(json!({"key": "content.order"})).await;
        let (fanout, ids) = stack.open(if small { 4 } else { 7_300 }, true).await;
        let task = |item: usize, number: usize| order(Some(ids[item]), "117", number);
        let first = [Registration::Registered, Registration::Registered];
        assert_eq!(outcomes(&stack, vec![task(0, 7), task(1, 8)]).await, first);
        stack.drain().await;
        let calls = stack.api.seen().len();
        days_pass(&stack, 40).await;
        assert!(!stack.tasks.is_stored(&TaskId::Item(ids[0])).await.unwrap(), "it is forgotten");
        let tasks = vec![task(0, 7), task(1, 8), task(2, 7), task(3, 7)];
        let of = Registration::Duplicate { of: TaskId::Item(ids[2]) };
        let again = [Registration::Known, Registration::Known, Registration::Registered, of];
        assert_eq!(outcomes(&stack, tasks.clone()).await, again, "small: {small}");
        stack.drain().await;
        assert_eq!(outcomes(&stack, tasks).await[..2], again[..2]);
        stack.drain().await;
        let called: Vec<String> =
            stack.api.seen()[calls..].iter().flat_map(|seen| &seen.call.members).map(|it| it.id.to_string()).collect();
        assert_eq!(called, [ids[2].to_string()]);
        assert_eq!(stack.header(fanout).await.ended(), small);
    }
}

/// The header of a fan-out is forgotten before its groups.
#[tokio::test(start_paused = true)]
async fn a_key_whose_fanout_is_forgotten_is_refused() {
    let stack = TestStack::with(json!({})).await;
    let request = OpenRequest { items: 8_000, seal: true, ..OpenRequest::default() };
    let (fanout, ids) = stack.open_as(&request, "k").await;
    stack.ack(&done(&ids)).await;
    assert!(stack.header(fanout).await.complete());
    days_pass(&stack, 20).await;
    assert_eq!(stack.tracking.fanouts.get(fanout).await.unwrap(), None);
    let again = stack.tracking.open(request, Some("k")).await;
    assert!(matches!(again, Err(TrackingError::KeyReused(_))), "{again:?}");
}

/// The same with items that were added: the fan-out can be opened again, but old groups are none of its own.
#[tokio::test(start_paused = true)]
async fn items_of_a_forgotten_fanout_are_not_added_to_the_next_of_its_key() {
    let stack = TestStack::with(json!({})).await;
    let request = OpenRequest::default();
    let (fanout, _) = stack.open_as(&request, "k").await;
    let ids = stack.add(fanout, 3, "a").await;
    stack.seal(fanout).await;
    stack.ack(&done(&ids)).await;
    days_pass(&stack, 20).await;
    let again = stack.tracking.add(fanout, 3, Some("a")).await;
    assert!(matches!(again, Err(TrackingError::UnknownFanout(_))), "{again:?}");
    assert_eq!(stack.open_as(&request, "k").await.0, fanout);
    let again = stack.tracking.add(fanout, 3, Some("a")).await;
    assert!(matches!(again, Err(TrackingError::KeyReused(_))), "{again:?}");
    let more = stack.add(fanout, 3, "b").await;
    assert_eq!(stack.add(fanout, 3, "b").await, more);
    assert_eq!(stack.header(fanout).await.total, 3);
}

/// Item groups that end long before their fan-out: items are not added again, and those that failed are still known.
#[tokio::test(start_paused = true)]
async fn groups_are_kept_while_their_fanout_goes_on() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, _) = stack.open(0, false).await;
    let ids = stack.add(fanout, 3, "a").await;
    stack.ack(&done(&ids[1..])).await;
    stack.ack(&failed(&ids[..1])).await;
    // As many as make up forty days, each sooner than the fan-out expires.
    for _ in 0..8 {
        days_pass(&stack, 5).await;
        stack.add(fanout, 1, &format!("at {:?}", stack.world.now())).await;
    }
    assert_eq!(stack.add(fanout, 3, "a").await, ids);
    let header = stack.header(fanout).await;
    assert_eq!((header.total, header.done, header.failed), (3 + 8, 3, 1));
    let states = stack.tracking.states(&ids).await.unwrap();
    assert_eq!(states, [ItemState::Failed, ItemState::Succeeded, ItemState::Succeeded]);
    assert!(stack.take(QueueName::Ack).await.is_empty());
}

/// A group that ended long before its fan-out is forgotten by its end, whether it was added or the fan-out was opened with it. The
/// task that follows is not told of items, and comes all the same.
#[tokio::test(start_paused = true)]
async fn a_fanout_that_went_on_for_months_is_followed_by_its_task() {
    for items in [0, 8] {
        let stack = TestStack::with(json!({})).await;
        let limit = Some(Span::from_secs(365 * 24 * 3_600));
        let then = Then { results: true, ..Then::new("parcel", json!({"depot": "117"})) };
        let idle_limit = Some(IdleLimit { open: limit, sealed: limit });
        let request = OpenRequest { items, idle_limit, then: Some(then), ..OpenRequest::default() };
        let (fanout, mut ids) = stack.open_as(&request, "k").await;
        if items == 0 {
            ids = stack.add(fanout, 1, "a").await;
        }
        stack.ack(&done(&ids)).await;
        days_pass(&stack, 90).await;
        assert_eq!(stack.item(&ids[0]).await, ItemState::Unknown, "it is forgotten");
        let last = stack.add(fanout, 1, "b").await;
        stack.ack(&done(&last)).await;
        stack.seal(fanout).await;
        let header = stack.header(fanout).await;
        let TestStack { tracking, tasks, batches, .. } = &stack;
        let at_once = ItemResultsReader { tracking, tasks, batches, now: header.ended_at.unwrap() }.of(&header).await;
        match at_once {
            // Groups that were added may also be missing because an index lags.
            Err(TrackingError::Store(StoreError::Contended { .. })) => assert_eq!(items, 0),
            results => assert!(matches!(results, Ok(ItemResults::LeftOut(_))) && items > 0, "{results:?}"),
        }
        stack.clock.skip(HINT_LOST_AFTER);
        stack.rest().await;
        let task = stack.tasks.get(&derived::then_task(fanout)).await.unwrap().unwrap();
        let content: Value = serde_json::from_str(&task.content.unwrap()).unwrap();
        let why = content["results_left_out"].as_str().unwrap();
        assert!(why.contains("12 weeks ago") && content.get("results").is_none(), "{why}");
        assert!(stack.dead(QueueName::Notify).await.is_empty());
    }
}
