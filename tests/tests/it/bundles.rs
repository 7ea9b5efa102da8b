//! Bundles: tasks that were registered together are stored once, and wait and are claimed as one record.

mod beside;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::bits::Bits;
use fanfold::grouping::{BatchSize, Bundle, BundleState, Load, Loads, cut};
use fanfold::ids::TaskId;
use fanfold::limits::{BUNDLED_RETENTION, OLD_BUNDLES_PER_SEGMENT, SWEEP_SEGMENTS};
use fanfold::masks::Masks;
use fanfold::policy::HeadStart;
use fanfold::store::tasks::NewTask;
use fanfold_register::Registration;
use fanfold_tests::{QueueName, TestStack, order, policy};
use serde_json::json;
use uuid::Uuid;

/// A bundle of four orders that a worker has begun, as `Register` does, and the tasks to be stored for it.
async fn begun(stack: &TestStack) -> (Bundle, Vec<NewTask>) {
    let ids: Vec<TaskId> = (1..5).map(|n| TaskId::Single(Uuid::from_u128(n))).collect();
    let (id, lane) = (stack.world.uuid(), "parcel:0:117".parse().unwrap());
    let slots = (ids.iter().copied().collect(), Loads::default());
    let bundle = Bundle::filling(id, lane, slots, stack.world.now());
    stack.tasks.begin_bundles(std::slice::from_ref(&bundle)).await.unwrap();
    let content = |n: usize| json!({"depot": "117", "order": format!("ORD-{n}")}).to_string();
    let task = |(n, id): (usize, &TaskId)| NewTask {
        id: *id,
        lane: bundle.lane.clone(),
        content: content(n),
        key: None,
        load: Load::default(),
        head_start: HeadStart::NONE,
        bundle: Some(bundle.id),
    };
    let tasks = ids.iter().enumerate().map(task).collect();
    (bundle, tasks)
}

fn ids(tasks: &[NewTask]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id).collect()
}

/// The request that the worker of [`begun`] had, once more.
async fn repeat(stack: &TestStack, tasks: &[NewTask]) -> Vec<Registration> {
    let request =
        |(n, task): (usize, &NewTask)| fanfold::messages::TaskRequest { id: Some(task.id), ..order(None, "117", n) };
    let requests = tasks.iter().enumerate().map(request).collect();
    stack.register.register(requests, "again").await.unwrap().into_iter().map(|task| task.outcome).collect()
}

async fn heal(stack: &TestStack, sweeps: usize) {
    for _ in 0..sweeps {
        stack.sweep().await;
        stack.drain().await;
    }
}

/// Every record of the table of tasks, by its id.
async fn records(stack: &TestStack) -> BTreeMap<String, String> {
    let mut records = BTreeMap::new();
    for item in stack.scan("TasksTable").await {
        let attributes: BTreeMap<_, _> = item.iter().collect();
        records.insert(item["id"].as_s().unwrap().clone(), format!("{attributes:?}"));
    }
    records
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_bundle_is_written_once_and_not_touched_again() {
    let stack = TestStack::with(json!({"max_batch": 7})).await;
    let tasks = stack.register_orders("117", 0..60).await;
    let before = records(&stack).await;
    assert_eq!(before.len(), 60 + 2, "60 tasks in two bundles: {:?}", before.keys());
    stack.drain().await;
    stack.assert_settled(&tasks, 7).await;
    let after = records(&stack).await;
    for id in &tasks {
        assert_eq!(before[&id.to_string()], after[&id.to_string()]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_batches_of_several_leaders_share_a_bundle() {
    let stack = TestStack::with(json!({"max_batch": 4, "max_in_flight": 3})).await;
    let tasks = stack.register_orders("117", 0..10).await;
    stack.drain().await;
    let batches: BTreeSet<Uuid> = stack.assert_settled(&tasks, 4).await.values().map(|batch| batch.id).collect();
    assert_eq!(batches.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn tasks_whose_worker_died_over_their_bundle_are_found_by_a_sweep() {
    for stored in 0..=4 {
        let stack = TestStack::with(json!({})).await;
        let (_, tasks) = begun(&stack).await;
        stack.tasks.insert(&tasks[..stored]).await.unwrap();
        heal(&stack, 2).await;
        stack.assert_settled(&ids(&tasks[..stored]), 10).await;
        let again = repeat(&stack, &tasks).await;
        assert_eq!(again.iter().filter(|outcome| **outcome == Registration::Known).count(), stored);
        stack.drain().await;
        stack.assert_settled(&ids(&tasks), 10).await;
    }
}

/// No hint is sent for tasks that another worker may be storing right now; the sweep sends one when that worker is lost.
#[tokio::test(start_paused = true)]
async fn a_repeated_request_leaves_a_bundle_that_fills_to_its_worker() {
    let stack = TestStack::with(json!({})).await;
    let (bundle, tasks) = begun(&stack).await;
    stack.tasks.insert(&tasks).await.unwrap();
    assert_eq!(repeat(&stack, &tasks).await, [const { Registration::Known }; 4]);
    // And a leader that sees it passes it by.
    let other = stack.register_orders("117", 10..11).await;
    stack.drain().await;
    assert_eq!((stack.claimed(&ids(&tasks)).await, stack.claimed(&other).await), (0, 1));
    let opened = stack.tasks.open_bundles(&[bundle.opened(Bits::ones(4))]).await.unwrap();
    assert!(opened.is_empty(), "it was declared dead");
    assert_eq!(repeat(&stack, &tasks).await, [const { Registration::Known }; 4]);
    stack.drain().await;
    stack.assert_settled(&[ids(&tasks), other].concat(), 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_bundle_was_declared_dead_frees_its_tasks() {
    let stack = TestStack::with(json!({})).await;
    let (bundle, tasks) = begun(&stack).await;
    heal(&stack, 2).await;
    stack.tasks.insert(&tasks).await.unwrap();
    let dead = stack.tasks.open_bundles(&[bundle.opened(Bits::ones(4))]).await.unwrap();
    assert_eq!(dead, [bundle.id].into());
    // It dies before it can free them. The next request for one of them does.
    assert_eq!(stack.claimed(&ids(&tasks)).await, 0);
    assert_eq!(repeat(&stack, &tasks).await, [const { Registration::Known }; 4]);
    stack.drain().await;
    stack.assert_settled(&ids(&tasks), 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_burying_a_bundle_is_followed_by_another() {
    for freed in 0..=4 {
        let stack = TestStack::with(json!({})).await;
        let (new, tasks) = begun(&stack).await;
        stack.tasks.insert(&tasks).await.unwrap();
        let bundle = stack.tasks.bundles(&[new.id], true).await.unwrap().remove(&new.id).unwrap();
        let only = Bundle { members: ids(&tasks[..freed]).into_iter().collect(), ..bundle };
        stack.tasks.bury(&only).await.unwrap();
        // The rest is found by its tasks: the bundle has left the index.
        repeat(&stack, &tasks).await;
        heal(&stack, 2).await;
        stack.assert_settled(&ids(&tasks), 10).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_whose_bundle_is_gone_had_its_turn() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..5).await;
    let bundle = *stack.waiting(&tasks).await.bundles.keys().next().unwrap();
    stack.drain().await;
    stack.delete_record("TasksTable", &format!("bundle:{bundle}")).await;
    let again =
        (0..5).map(|n| fanfold::messages::TaskRequest { id: Some(tasks[n]), ..order(None, "117", n) }).collect();
    let again = stack.register.register(again, "late").await.unwrap();
    assert!(again.iter().all(|task| task.outcome == Registration::Known), "{again:?}");
    heal(&stack, 2).await;
    assert_eq!(stack.all_batches().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_repeated_takes_nothing_more() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..6).await;
    let bundle = *stack.waiting(&tasks).await.bundles.keys().next().unwrap();
    let lane = "parcel:0:117".parse().unwrap();
    let (batch, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let claim = async |batch: Uuid, slots: Bits| {
        let wanted: Masks = [(bundle, slots)].into_iter().collect();
        let claimed = stack.tasks.claim_bundles(&wanted, BTreeMap::new(), &lane, batch).await.unwrap();
        claimed.iter().flat_map(|(_, won)| won.iter().collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    assert_eq!(claim(batch, Bits::ones(3)).await, [0, 1, 2]);
    assert_eq!(claim(batch, Bits::ones(6)).await, [0, 1, 2], "what it has is what it got first");
    assert_eq!(claim(other, Bits::ones(6)).await, [3, 4, 5]);
    assert_eq!(claim(batch, Bits::ones(3)).await, [0, 1, 2]);
    let elsewhere = "parcel:0:900".parse().unwrap();
    let wanted: Masks = [(bundle, Bits::ones(6))].into_iter().collect();
    assert!(stack.tasks.claim_bundles(&wanted, BTreeMap::new(), &elsewhere, batch).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_smaller_batch_leaves_the_rest_of_its_bundle_to_the_next() {
    let stack = TestStack::with(json!({"max_batch": 100, "max_in_flight": 1})).await;
    let tasks = stack.register_orders("117", 0..30).await;
    stack.pass(&[QueueName::Elect]).await;
    stack.put_policy(policy(json!({"max_batch": 8, "max_in_flight": 1}))).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 8).await;
}

#[tokio::test(start_paused = true)]
async fn thousands_of_tasks_come_in_bundles_of_one_write_unit() {
    let stack = TestStack::with(json!({"max_batch": 100})).await;
    let (_, items) = stack.open(5_000, true).await;
    stack.register_items(&items).await;
    let tasks: Vec<TaskId> = items.iter().copied().map(TaskId::Item).collect();
    let size = BatchSize::of(&serde_json::from_value(policy(json!({"max_batch": 100}))).unwrap());
    let loads = tasks.iter().map(|id| (*id, Load::default())).collect();
    let bundles = cut(&loads, &"parcel:0:117".parse().unwrap(), size);
    assert_eq!(stack.waiting(&tasks).await.bundles.len(), bundles.len());
    stack.drain().await;
    stack.assert_settled(&tasks, 100).await;
    for item in stack.scan("TasksTable").await {
        let value = |value: &aws_sdk_dynamodb::types::AttributeValue| match value {
            aws_sdk_dynamodb::types::AttributeValue::S(text) => text.len(),
            aws_sdk_dynamodb::types::AttributeValue::B(bytes) => bytes.as_ref().len(),
            _ => 8,
        };
        let bytes: usize = item.iter().map(|(name, of)| name.len() + value(of)).sum();
        assert!(bytes <= 1_024, "{bytes} bytes: {item:?}");
    }
}

/// Tasks of a bundle have a time to live from the beginning. Those that wait for longer get another one.
#[tokio::test(start_paused = true)]
async fn tasks_that_wait_for_weeks_are_kept() {
    let stack = TestStack::with(json!({})).await;
    let tasks = stack.register_orders("117", 0..3).await;
    stack.take(QueueName::Elect).await;
    let ttl = async || {
        let records = stack.scan("TasksTable").await;
        let ttl = |id: &TaskId| {
            records.iter().find(|item| item["id"].as_s() == Ok(&id.to_string())).unwrap()["ttl"]
                .as_n()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        tasks.iter().map(ttl).min().unwrap()
    };
    let first = ttl().await;
    for _ in 0..3 {
        stack.clock.skip(BUNDLED_RETENTION / 2 - Duration::from_secs(600));
        stack.sweep().await;
        stack.take(QueueName::Elect).await;
        assert!(ttl().await >= stack.world.now().plus(BUNDLED_RETENTION / 2).seconds() - 600);
    }
    assert!(ttl().await > first);
    let bundles = stack.waiting(&tasks).await.bundles;
    assert!(!bundles.is_empty());
    heal(&stack, 1).await;
    stack.assert_settled(&tasks, 10).await;
    for bundle in bundles.keys() {
        let bundles = stack.tasks.bundles(&[*bundle], true).await.unwrap();
        assert_eq!(bundles[bundle].state, BundleState::Taken);
    }
}

/// Very many bundles wait for months. Each sweep looks at some of them, and each of them is kept in time.
#[tokio::test(start_paused = true)]
async fn sweeps_share_the_work_of_keeping_what_waits() {
    const PER_SWEEP: usize = OLD_BUNDLES_PER_SEGMENT * SWEEP_SEGMENTS as usize;
    let stack = TestStack::with(json!({})).await;
    let new = |n: u128| {
        let members = [2 * n + 1, 2 * n + 2].map(|id| TaskId::Single(Uuid::from_u128(id)));
        let slots = (members.into_iter().collect(), Loads::default());
        Bundle::filling(stack.world.uuid(), "parcel:0:117".parse().unwrap(), slots, stack.world.now())
    };
    let bundles: Vec<Bundle> = (0..3 * PER_SWEEP as u128).map(new).collect();
    stack.tasks.begin_bundles(&bundles).await.unwrap();
    let opened: Vec<Bundle> = bundles.iter().map(|bundle| bundle.opened(Bits::ones(2))).collect();
    stack.tasks.open_bundles(&opened).await.unwrap();
    let ids: Vec<Uuid> = bundles.iter().map(|bundle| bundle.id).collect();
    let kept = async || {
        let bundles = stack.tasks.bundles(&ids, true).await.unwrap();
        bundles.values().filter(|bundle| bundle.kept_until.is_some()).count()
    };
    stack.clock.skip(BUNDLED_RETENTION / 2);
    let (mut before, mut most) = (0, 0);
    for _ in 0..4 {
        stack.clock.skip(Duration::from_secs(60));
        stack.sweep_now().await;
        let now = kept().await;
        most = most.max(now - before);
        before = now;
    }
    assert_eq!(before, ids.len());
    assert!(most < PER_SWEEP * 3 / 2, "{most} in one sweep");
}

/// In a lane without elections, such as a paused one, no leader finds the bundle of a worker that was lost. A repeated request
/// was answered that its tasks are known, so they must not expire.
#[tokio::test(start_paused = true)]
async fn tasks_of_a_lost_worker_do_not_expire_in_a_lane_without_leaders() {
    let stack = TestStack::with(json!({})).await;
    let (_, tasks) = begun(&stack).await;
    stack.tasks.insert(&tasks).await.unwrap();
    assert_eq!(repeat(&stack, &tasks).await, [const { Registration::Known }; 4]);
    stack.clock.skip(BUNDLED_RETENTION / 2);
    stack.sweep().await;
    stack.take(QueueName::Elect).await;
    let records = stack.scan("TasksTable").await;
    for id in ids(&tasks) {
        let record = records.iter().find(|item| item["id"].as_s() == Ok(&id.to_string())).unwrap();
        assert!(!record.contains_key("ttl"), "{record:?}");
    }
    heal(&stack, 1).await;
    stack.assert_settled(&ids(&tasks), 10).await;
}
