//! Tasks with a head start.

use std::sync::Arc;
use std::time::Duration;

use fanfold::bits::Bits;
use fanfold::control::Scope;
use fanfold::grouping::{Bundle, Load, Loads};
use fanfold::ids::TaskId;
use fanfold::members::Members;
use fanfold::messages::TaskRequest;
use fanfold::policy::HeadStart;
use fanfold::store::tasks::NewTask;
use fanfold_local::{Fate, Interceptor, ServiceAnswer, ServiceRequest};
use fanfold_register::RegisterError;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, changed, deaths, lane, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{assert_batched, calls, heal, parcel, register, register_each};

/// A policy of small batches, one at a time, by which parcels may have a head start.
fn ahead(changes: Value) -> Value {
    changed(json!({"priority": "has(content.p) ? content.p : null", "max_batch": 4, "max_in_flight": 1}), changes)
}

/// Parcels with these numbers, and this head start.
fn parcels(numbers: impl IntoIterator<Item = usize>, head_start: Value) -> Vec<TaskRequest> {
    numbers.into_iter().map(|n| parcel(json!({"n": n, "p": head_start}))).collect()
}

/// The numbers of the members of each call, in their order.
fn numbers(stack: &TestStack) -> Vec<Vec<u64>> {
    let sorted = |call: Vec<Value>| {
        let mut numbers: Vec<u64> = call.iter().filter_map(Value::as_u64).collect();
        numbers.sort_unstable();
        numbers
    };
    calls(stack, "n").into_iter().map(sorted).collect()
}

fn seconds(seconds: u64) -> impl Future<Output = ()> {
    tokio::time::sleep(Duration::from_secs(seconds))
}

/// Those that came last go first, in bundles, on their own, and both.
#[tokio::test(start_paused = true)]
async fn urgent_tasks_go_before_three_batches() {
    for (bundled, urgent) in [(true, true), (true, false), (false, true), (false, false)] {
        let stack = TestStack::with(ahead(json!({}))).await;
        let enter = async |name: &str, tasks, bundled| match bundled {
            true => register(&stack, name, tasks).await,
            false => register_each(&stack, name, tasks).await,
        };
        let mut tasks = enter("others", parcels(0..12, json!(null)), bundled).await;
        seconds(5).await;
        tasks.extend(enter("urgent", parcels(12..16, json!("10m")), urgent).await);
        tasks.extend(enter("most", parcels([16], json!("20m")), urgent).await);
        stack.drain().await;
        stack.assert_settled(&tasks, 4).await;
        let calls = numbers(&stack);
        let first: Vec<u64> = calls.iter().take(2).flatten().copied().collect();
        assert!(calls[0].contains(&16) && calls[0].iter().all(|n| *n >= 12), "{calls:?}");
        assert!((12..17).all(|n| first.contains(&n)), "{calls:?}");
        assert_eq!(calls.len(), 5, "{calls:?}");
    }
}

/// A task overtakes only what was registered within its head start before it.
#[tokio::test(start_paused = true)]
async fn what_came_earlier_than_that_goes_first() {
    let stack = TestStack::with(ahead(json!({}))).await;
    let mut tasks = register(&stack, "first", parcels(0..4, json!(0))).await;
    seconds(20).await;
    tasks.extend(register(&stack, "second", parcels(4..8, json!(0))).await);
    seconds(5).await;
    tasks.extend(register(&stack, "urgent", parcels(8..12, json!(10))).await);
    stack.drain().await;
    stack.assert_settled(&tasks, 4).await;
    assert_eq!(numbers(&stack), [vec![0, 1, 2, 3], vec![8, 9, 10, 11], vec![4, 5, 6, 7]]);
}

/// Urgent tasks come as fast as they are handled. Others wait until their turn, and no longer.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_ever() {
    let rate = json!({"lane_rate": {"calls": 10, "per": "minute", "burst": 1}});
    let stack = TestStack::with(ahead(rate)).await;
    let others = register(&stack, "others", parcels(0..4, json!(null))).await;
    let mut tasks = register(&stack, "urgent", parcels(100..108, json!(60))).await;
    let mut claimed = Vec::new();
    for round in 0..40 {
        tasks.extend(register(&stack, &format!("urgent-{round}"), parcels(200..204, json!(60))).await);
        stack.seconds(6).await;
        claimed.push(stack.claimed(&others).await);
    }
    assert_eq!(claimed[..8], [0; 8], "urgent ones overtake them: {claimed:?}");
    assert_eq!(claimed[30..], [4; 10], "but not those that came a minute later: {claimed:?}");
    stack.drain().await;
    stack.assert_settled(&[others, tasks].concat(), 4).await;
}

/// The message of the leader names more tasks than it looks for. The urgent one's own was lost.
#[tokio::test(start_paused = true)]
async fn an_urgent_task_that_no_message_names_goes_first() {
    let stack = TestStack::with(ahead(json!({}))).await;
    let mut tasks = register_each(&stack, "others", parcels(0..12, json!(null))).await;
    let named = stack.take(QueueName::Elect).await;
    tasks.extend(register(&stack, "urgent", parcels([12], json!("1h"))).await);
    assert_eq!(stack.take(QueueName::Elect).await.len(), 1);
    assert!(stack.hand(QueueName::Elect, named).await.is_empty());
    stack.drain().await;
    stack.assert_settled(&tasks, 4).await;
    assert!(numbers(&stack)[0].contains(&12), "{:?}", numbers(&stack));
}

/// An index that shows nothing yet.
#[derive(Debug)]
struct Blind;

impl Interceptor for Blind {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let body = json!({"Items": [], "Count": 0, "ScannedCount": 0}).to_string();
        let looks = call.operation == "Query";
        let fate = if looks { Fate::Answered(ServiceAnswer { status: 200, body: body.into() }) } else { Fate::Pass };
        async { fate }.boxed()
    }
}

/// What a leader knows by its message only goes in the same order.
#[tokio::test(start_paused = true)]
async fn what_the_index_does_not_show_yet_goes_in_its_order() {
    let changes = policy(ahead(json!({"linger": 0})));
    let stack = TestStack::new(changes, ScriptedApi::always_succeeds(), Crash::meeting(Arc::new(Blind))).await;
    for round in 0..8 {
        let all = [
            parcels(0..8, json!(null)),
            parcels([8], json!("10m")),
            parcels(9..11, json!("20m")),
            parcels([11], json!("30m")),
        ];
        let tasks = register(&stack, &format!("all-{round}"), all.concat()).await;
        stack.drain().await;
        assert_batched(&stack, &tasks).await;
        let calls = numbers(&stack).split_off(3 * round);
        assert_eq!(calls[0], [8, 9, 10, 11], "{calls:?}");
        assert_eq!(calls.len(), 3, "{calls:?}");
    }
}

/// What was registered under one policy keeps its place under the next.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_policy_holds_for_what_is_registered_from_then_on() {
    let with = |priority: Value| policy(ahead(json!({"priority": priority})));
    let stack = TestStack::with(ahead(json!({"priority": null}))).await;
    let mut tasks = register(&stack, "before", parcels(0..4, json!("1h"))).await;
    seconds(5).await;
    stack.put_policy(with(json!("content.p"))).await;
    tasks.extend(register(&stack, "ahead", parcels(4..8, json!("1h"))).await);
    seconds(5).await;
    stack.put_policy(with(json!("content.p == '1h' ? '2h' : '0s'"))).await;
    tasks.extend(register(&stack, "further", parcels(8..12, json!("1h"))).await);
    seconds(5).await;
    stack.put_policy(with(json!(null))).await;
    tasks.extend(register(&stack, "after", parcels(12..16, json!("1h"))).await);
    for queue in QueueName::STEPS {
        stack.take(queue).await;
    }
    // Woken by a sweep, its leaders go by the index.
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&tasks, 4).await;
    let blocks = |firsts: [u64; 4]| firsts.map(|first| (first..first + 4).collect::<Vec<_>>());
    assert_eq!(numbers(&stack), blocks([8, 4, 0, 12]));
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_head_start_is_none_is_refused_with_the_reason() {
    let stack = TestStack::with(ahead(json!({}))).await;
    for wrong in [json!(-1), json!("8days"), json!(true), json!("soon"), json!([1])] {
        let tasks = [parcels(0..2, json!("7days")), parcels([2], wrong.clone())].concat();
        let error = stack.register.register(tasks, "request").await.unwrap_err();
        let RegisterError::Refused(faults) = error else { panic!("{error}") };
        assert_eq!((faults.len(), faults[0].path().as_str()), (1, "tasks[2].priority"), "{wrong}");
        assert!(faults[0].problem.contains("from 0 to 604800 (7days)"), "{}", faults[0].problem);
        assert!(stack.scan("TasksTable").await.is_empty(), "nothing is half done");
    }
}

/// The age of a task is that of its registration.
#[tokio::test(start_paused = true)]
async fn an_urgent_task_is_not_older_than_it_is() {
    let stack = TestStack::with(ahead(json!({}))).await;
    let begun = stack.world.now();
    let mut tasks = register(&stack, "others", parcels(0..2, json!(null))).await;
    seconds(10).await;
    tasks.extend(register(&stack, "urgent", parcels([2], json!("7days"))).await);
    tasks.extend(register(&stack, "together", parcels(3..6, json!("6days"))).await);
    for queue in QueueName::STEPS {
        stack.take(queue).await;
    }
    let page = stack.control.lanes(&Scope::Lane(lane()), false, None, 10).await.unwrap();
    let pending = page.lanes[0].pending;
    assert_eq!((pending.tasks, pending.oldest.map(|oldest| oldest.since(begun).as_secs())), (6, Some(0)));
    let urgent = stack.tasks.get(&tasks[2]).await.unwrap().unwrap();
    assert_eq!(urgent.created_at.since(begun).as_secs(), 10);
    // No hint of it can be taken for lost so early.
    assert_eq!(stack.sweep_now().await.lanes, 0);
    assert_eq!(stack.sweep().await.lanes, 1);
    stack.drain().await;
    stack.assert_settled(&tasks, 4).await;
}

/// Each page goes on where the one before ended, and none is left out.
#[tokio::test(start_paused = true)]
async fn what_waits_is_cancelled_page_by_page() {
    let stack = TestStack::with(ahead(json!({}))).await;
    let heads = [json!(null), json!(7), json!("1h"), json!("7days")];
    let all: Vec<TaskRequest> = (0..230).flat_map(|n| parcels([n], heads[n % 4].clone())).collect();
    let tasks = register_each(&stack, "each", all).await;
    let (mut after, mut cancelled, mut pages) = (None, 0, 0);
    loop {
        let page = stack.cancelling.cancel_page(&Scope::Lane(lane()), after.as_ref()).await.unwrap();
        (cancelled, pages) = (cancelled + page.cancelled, pages + 1);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((cancelled, pages), (230, 3));
    assert_eq!(stack.claimed(&tasks).await, 0);
}

/// The tasks of a bundle whose worker was lost keep their head start.
#[tokio::test(start_paused = true)]
async fn tasks_of_a_dead_bundle_keep_their_head_start() {
    let stack = TestStack::with(ahead(json!({}))).await;
    let mut tasks = register(&stack, "others", parcels(0..8, json!(null))).await;
    seconds(5).await;
    let (ids, head_start): (Members, _) =
        ((1..5).map(|n| TaskId::Single(Uuid::from_u128(n))).collect(), HeadStart::of(Duration::from_secs(60)).unwrap());
    let slots = (ids.clone(), Loads::default());
    let bundle = Bundle::filling(stack.world.uuid(), lane(), slots, stack.world.now()).ahead(head_start);
    stack.tasks.begin_bundles(std::slice::from_ref(&bundle)).await.unwrap();
    let task = |(n, id): (usize, &TaskId)| NewTask {
        id: *id,
        lane: lane(),
        content: json!({"depot": "117", "n": 100 + n}).to_string(),
        key: None,
        load: Load::default(),
        head_start,
        bundle: Some(bundle.id),
    };
    stack.tasks.insert(&ids.ids().iter().enumerate().map(task).collect::<Vec<_>>()).await.unwrap();
    stack.tasks.bury(&bundle).await.unwrap();
    assert!(stack.tasks.open_bundles(&[bundle.opened(Bits::ones(4))]).await.unwrap().contains(&bundle.id));
    stack.drain().await;
    tasks.extend(ids.ids());
    stack.assert_settled(&tasks, 4).await;
    assert_eq!(numbers(&stack)[0], [100, 101, 102, 103]);
}

/// A policy by which no task has a head start writes and sends what one without the field does, also if tasks have one that is the
/// same for all.
#[tokio::test(start_paused = true)]
async fn it_costs_no_write() {
    let cost = async |changes: Value, head_start: Value| {
        let stack = TestStack::with(changes).await;
        let mut tasks = register(&stack, "together", parcels(0..100, head_start.clone())).await;
        tasks.extend(register_each(&stack, "apart", parcels(100..110, head_start)).await);
        stack.drain().await;
        stack.assert_settled(&tasks, 100).await;
        let usage = stack.usage();
        (usage.write_units, usage.sqs_requests)
    };
    let size = |priority: Value| ahead(json!({"max_batch": 100, "priority": priority}));
    let without = cost(size(json!(null)), json!(null)).await;
    assert_eq!(cost(size(json!("content.p")), json!(null)).await, without);
    assert_eq!(cost(size(json!("content.p")), json!("10m")).await, without);
}

async fn run(crash: Crash) -> Option<String> {
    let stack = TestStack::new(policy(ahead(json!({}))), ScriptedApi::always_succeeds(), crash).await;
    let mut tasks = register(&stack, "first", parcels(0..6, json!(null))).await;
    let mixed = [parcels(6..9, json!(60)), parcels(9..11, json!(null)), parcels([11], json!("1h"))].concat();
    tasks.extend(register(&stack, "mixed", mixed).await);
    tasks.extend(register_each(&stack, "each", parcels(12..14, json!(90))).await);
    heal(&stack, &tasks, 4).await;
    stack.crash.struck()
}

deaths!(
    run,
    20,
    dies_before_a_request: Before,
    dies_after_a_request: After,
);
