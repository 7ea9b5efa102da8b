//! Producers: every row of a source is one task of the fan-out, whichever worker dies, whichever message comes twice or is lost,
//! and though the source answers otherwise when it is asked again; the last partition seals.

mod at_once;
mod aws;
mod crashes;
mod failures;
mod fixed;
mod local;
mod resumed;
mod sources;

use std::collections::BTreeMap;

use fanfold::clock::World;
use fanfold::config::Surroundings;
use fanfold::ids::{ItemGroup, TaskId, expand};
use fanfold::policy::{Destination, NoticesQueue};
use fanfold::producing::Producer;
use fanfold::share::share;
use fanfold::store::fanouts::FanoutState;
use fanfold::store::producers::{Partition, PartitionState};
use fanfold::tracking::{ItemState, OpenRequest};
use fanfold_http_client::Guard;
use fanfold_local::Engine;
use fanfold_produce::{AllSources, SourceRequest};
use fanfold_tests::{QueueName, TestStack};
use serde_json::{Value, json};
use uuid::Uuid;

/// Of a policy without keys: by what the producer says.
fn producer(partitions: u32, changes: &Value) -> Producer {
    let mut producer =
        json!({"source": {"url": "https://rows.example/"}, "partitions": partitions, "key": "content.order"});
    producer.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    serde_json::from_value(producer).unwrap()
}

fn request(producer: Producer) -> OpenRequest {
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    OpenRequest { producer: Some(producer), notify, ..OpenRequest::default() }
}

/// Sources of an environment without AWS.
fn sources() -> AllSources {
    let engine = Engine::memory().unwrap();
    let surroundings = Surroundings::new(engine.dynamodb(), engine.sqs(), World::system(), |_| None);
    AllSources::from_environment(&surroundings, Guard::local(|_| None))
}

async fn open(stack: &TestStack, producer: Producer) -> Uuid {
    let request = request(producer);
    let open = async || stack.producing.open(&stack.tracking, request.clone(), Some("open")).await;
    stack.insist(open).await.fanout.id
}

fn name(n: usize) -> String {
    format!("ORD-{n:03}")
}

fn row(n: usize) -> Value {
    json!({"kind": "parcel", "content": {"depot": (n % 3).to_string(), "order": name(n)}})
}

/// A page of so many rows, of all there are: a source that knows nothing of partitions. Its cursor is a row's number.
fn page(ask: &SourceRequest, rows: usize, per_page: usize) -> Value {
    let from = usize::try_from(ask.cursor.as_u64().unwrap_or(0)).unwrap();
    let to = rows.min(from + per_page);
    let cursor = (to < rows).then_some(to);
    json!({"tasks": (from..to).map(row).collect::<Vec<_>>(), "cursor": cursor})
}

async fn partitions(stack: &TestStack, id: Uuid) -> Vec<Partition> {
    let fanout = stack.header(id).await;
    stack.insist(async || stack.producing.partitions(&fanout).await).await
}

/// The tasks of a fan-out's items by order, which must be one each; every item has one, or is a duplicate.
async fn tasks(stack: &TestStack, id: Uuid) -> BTreeMap<String, TaskId> {
    let fanout = stack.header(id).await;
    let mut groups = Vec::new();
    loop {
        let after = groups.last().map(|group: &ItemGroup| group.id);
        let page = stack.insist(async || stack.tracking.groups_of(&fanout, after, 100).await).await;
        groups.extend(page.groups);
        if !page.more {
            break;
        }
    }
    let (mut orders, mut items) = (BTreeMap::new(), 0);
    for item in expand(id, &groups) {
        items += 1;
        if stack.item(&item).await == ItemState::Duplicate {
            continue;
        }
        let task = stack.tasks.get(&TaskId::Item(item)).await.unwrap().expect("an item has no task");
        let content: Value = serde_json::from_str(task.content.as_deref().unwrap()).unwrap();
        let before = orders.insert(content["order"].as_str().unwrap().to_owned(), TaskId::Item(item));
        assert_eq!(before, None, "{content} is two tasks");
    }
    assert_eq!(items, fanout.total);
    orders
}

/// Checks that a fan-out is complete, and that exactly these rows are its tasks, each called for in one batch. Counts agree.
async fn assert_produced(stack: &TestStack, id: Uuid, rows: impl IntoIterator<Item = usize>) -> Vec<Partition> {
    let fanout = stack.header(id).await;
    let partitions = partitions(stack, id).await;
    assert_eq!(fanout.state, FanoutState::Completed, "{fanout:?} {partitions:?}");
    let orders = tasks(stack, id).await;
    assert_eq!(orders.keys().cloned().collect::<Vec<_>>(), rows.into_iter().map(name).collect::<Vec<_>>());
    let sum = |count: fn(&Partition) -> u64| partitions.iter().map(count).sum::<u64>();
    assert_eq!(sum(|it| it.rows - it.dropped - it.bad), fanout.total);
    assert_eq!(sum(|it| it.duplicates), fanout.duplicates);
    assert!(partitions.iter().all(|it| it.state == PartitionState::Done && it.closed), "{partitions:?}");
    let ids: Vec<TaskId> = orders.into_values().collect();
    stack.assert_settled(&ids, 100).await;
    let ends = stack.completions().await;
    assert_eq!(ends.iter().filter(|end| end.fanout == id).count(), 1, "{ends:?}");
    partitions
}

#[tokio::test(start_paused = true)]
async fn every_row_is_one_task_and_the_last_partition_seals() {
    for (partitions, rows) in [(1, 25), (3, 25), (64, 25), (2, 0), (2, 8)] {
        let stack = TestStack::with(json!({})).await;
        stack.sources.answer(move |ask| Ok(page(ask, rows, 4)));
        let id = open(&stack, producer(partitions, &json!({}))).await;
        stack.drain().await;
        let partitions = assert_produced(&stack, id, 0..rows).await;
        for it in &partitions {
            assert_eq!(it.rows, rows as u64, "a source that knows nothing of partitions is read by each as a whole");
            let ours = (0..rows).filter(|n| share(&name(*n), partitions.len() as u32) == it.number).count();
            assert_eq!(it.rows - it.dropped, ours as u64);
        }
    }
}

/// A source that picks its rows by share, as in SQL, drops none and is read once.
#[tokio::test(start_paused = true)]
async fn a_source_that_knows_its_shares_is_read_once() {
    let stack = TestStack::with(json!({"key": "content.order"})).await;
    stack.sources.answer(|ask| {
        let ours = (0..100).filter(|n| share(&name(*n), ask.of) == ask.partition);
        let from = usize::try_from(ask.cursor.as_u64().unwrap_or(0)).unwrap();
        let page: Vec<usize> = ours.filter(|n| *n >= from).take(8).collect();
        let cursor = page.last().filter(|_| page.len() == 8).map(|last| last + 1);
        Ok(json!({"tasks": page.into_iter().map(row).collect::<Vec<_>>(), "cursor": cursor}))
    });
    let producer: Producer =
        serde_json::from_value(json!({"source": {"url": "https://rows.example/"}, "partitions": 4})).unwrap();
    let id = open(&stack, producer).await;
    stack.drain().await;
    let partitions = assert_produced(&stack, id, 0..100).await;
    assert_eq!(partitions.iter().map(|it| (it.rows, it.dropped)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)), (100, 0));
}

/// The orders for which the batch API was called, sorted; an order that was called for twice is there twice.
fn called(stack: &TestStack) -> Vec<String> {
    let calls = stack.api.seen();
    let members = calls.iter().flat_map(|seen| &seen.call.members);
    let order = |content: &str| serde_json::from_str::<Value>(content).unwrap()["order"].as_str().unwrap().to_owned();
    let mut orders: Vec<String> = members.map(|member| order(member.content.get())).collect();
    orders.sort_unstable();
    orders
}

/// A run over the same source, in so many partitions.
async fn run(stack: &TestStack, of: u32) -> Uuid {
    let key = format!("run {of}");
    stack.producing.open(&stack.tracking, request(producer(of, &json!({}))), Some(&key)).await.unwrap().fanout.id
}

/// With another number of partitions each row is in another one, and in one: over all runs of a source each is called for once.
#[tokio::test(start_paused = true)]
async fn another_number_of_partitions_is_as_exact() {
    let stack = TestStack::with(json!({"key": "content.order", "scope": "kind"})).await;
    stack.sources.answer(|ask| Ok(page(ask, 60, 7)));
    for (of, duplicates) in [(2, 0), (3, 60), (5, 60)] {
        let id = run(&stack, of).await;
        stack.drain().await;
        let fanout = stack.header(id).await;
        assert_eq!((fanout.state, fanout.total, fanout.duplicates), (FanoutState::Completed, 60, duplicates));
        assert_eq!(called(&stack), (0..60).map(name).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn another_number_of_partitions_is_as_exact_beside_a_run_that_is_half_done() {
    let stack = TestStack::with(json!({"key": "content.order", "scope": "kind"})).await;
    stack.sources.answer(|ask| Ok(page(ask, 60, 4)));
    // Of an invocation's turn each page takes an eighth.
    stack.sources.take(std::time::Duration::from_secs(4));
    let half = run(&stack, 2).await;
    assert!(stack.deliver(QueueName::Produce).await > 0);
    let read: Vec<u64> = partitions(&stack, half).await.iter().map(|it| it.rows).collect();
    assert!(read.iter().any(|rows| (1..60).contains(rows)) && read.iter().all(|rows| *rows < 60), "{read:?}");
    let other = run(&stack, 5).await;
    stack.drain().await;
    let ends = [stack.header(half).await, stack.header(other).await];
    assert!(ends.iter().all(|end| (end.state, end.total) == (FanoutState::Completed, 60)), "{ends:?}");
    assert_eq!(ends.iter().map(|end| end.duplicates).sum::<u64>(), 60);
    assert_eq!(called(&stack), (0..60).map(name).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn duplicates_are_counted_and_hold_nothing_open() {
    let stack = TestStack::with(json!({"key": "content.order"})).await;
    // Each row comes twice: on one page, or on two.
    stack.sources.answer(|ask| {
        let mut answer = page(ask, 40, 4);
        let twice = answer["tasks"].as_array_mut().unwrap();
        twice.push(row(1));
        twice.push(twice[0].clone());
        Ok(answer)
    });
    let id = open(&stack, producer(2, &json!({}))).await;
    stack.drain().await;
    let partitions = assert_produced(&stack, id, 0..40).await;
    assert_eq!(partitions.iter().map(|it| it.duplicates).sum::<u64>(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_open_begins_nothing_anew() {
    let stack = TestStack::with(json!({})).await;
    stack.sources.answer(|ask| Ok(page(ask, 20, 4)));
    let id = open(&stack, producer(2, &json!({}))).await;
    stack.drain().await;
    let asked = stack.sources.asked().len();
    assert_eq!(open(&stack, producer(2, &json!({}))).await, id);
    stack.drain().await;
    assert_eq!(stack.sources.asked().len(), asked);
    let other = stack.producing.open(&stack.tracking, request(producer(3, &json!({}))), Some("open")).await;
    assert!(other.unwrap_err().to_string().contains("`producer` differs"));
    assert_produced(&stack, id, 0..20).await;
}

/// An invocation goes on for its turn, and then sends itself on.
#[tokio::test(start_paused = true)]
async fn a_long_read_goes_on_in_another_invocation() {
    let stack = TestStack::with(json!({})).await;
    stack.sources.answer(|ask| Ok(page(ask, 50, 1)));
    stack.sources.take(std::time::Duration::from_secs(4));
    let id = open(&stack, producer(1, &json!({}))).await;
    let mut turns = 0;
    while stack.header(id).await.state == FanoutState::Open {
        turns += stack.deliver(QueueName::Produce).await;
    }
    assert_eq!(turns, 7, "eight pages each");
    stack.drain().await;
    assert_produced(&stack, id, 0..50).await;
}
