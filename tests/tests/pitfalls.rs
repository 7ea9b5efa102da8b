//! Pitfalls: what a plausible version of a protocol gets wrong, and this one must not.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fanfold::clock::{Clock, Random, Timestamp, World};
use fanfold::config::Surroundings;
use fanfold::delivery::{Delivery, Step};
use fanfold::ids::{ItemId, TaskId};
use fanfold::lane::Lane;
use fanfold::members::Members;
use fanfold::messages::{AckRequest, ElectMessage, GroupMessage, TaskRequest};
use fanfold::notice::{Event, Notice};
use fanfold::store::locks::{Leader, Locks};
use fanfold::store::tasks::{Key, KeyClaim};
use fanfold::tracking::{OpenRequest, Tracking};
use fanfold_ack::Ack;
use fanfold_handle::api::{Answer, MemberAnswer, MemberOutcome};
use fanfold_local::{Call, Engine, Fate, Interceptor, Template};
use fanfold_sweep::{Sweep, SweepRequest};
use fanfold_tests::{Crash, QueueName, ScriptedApi, Stack, order, policy};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;

async fn stack(changes: Value) -> Stack {
    Stack::new(policy(changes), ScriptedApi::always_succeeds(), Crash::never()).await
}

/// A policy that this version cannot read, as after a roll-back.
async fn spoil_policy(stack: &Stack, kind: &str) {
    let name = stack.surroundings().variable("POLICIES_TABLE").unwrap();
    let put = stack.surroundings().dynamodb.put_item().table_name(name);
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    put.item("kind", text(kind)).item("policy", text("{\"new\": 1}")).send().await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
}

async fn register(stack: &Stack, depot: &str, numbers: std::ops::Range<usize>) -> Vec<TaskId> {
    let request = format!("{depot}-{numbers:?}");
    let tasks = numbers.map(|n| order(None, depot, n)).collect();
    stack.register.register(tasks, &request).await.unwrap().into_iter().map(|task| task.id).collect()
}

fn lane(text: &str) -> Lane {
    text.parse().unwrap()
}

fn delivery(id: &str, message: &impl serde::Serialize) -> Delivery {
    Delivery { message_id: id.to_owned(), body: serde_json::to_string(message).unwrap(), receive_count: 1 }
}

fn elect(stack: &Stack, at: &str, tasks: &[TaskId]) -> ElectMessage {
    ElectMessage { lane: lane(at), tasks: Members::new(tasks.to_vec()), workflow: stack.world.uuid(), tries: 0 }
}

/// A repeated election must not give the leader another epoch: its first message could then dispatch the batch, but not
/// put it in flight, and a lost ack would be lost for good.
#[tokio::test(start_paused = true)]
async fn a_batch_is_known_to_its_lock_although_its_election_was_repeated() {
    let stack = stack(json!({})).await;
    let (_, ids) = stack.open(2, true).await;
    stack.register(ids.iter().enumerate().map(|(n, id)| order(Some(*id), "117", n)).collect()).await;
    let election = stack.take(QueueName::Elect).await;
    stack.hand(QueueName::Elect, election.clone()).await;
    stack.hand(QueueName::Elect, election).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut groups = stack.take(QueueName::Group).await;
    groups.sort_by_key(|delivery| serde_json::from_str::<GroupMessage>(&delivery.body).unwrap().epoch);
    assert_eq!(groups.len(), 2);
    let second = groups.split_off(1);
    stack.hand(QueueName::Group, groups).await;
    stack.deliver(QueueName::Handle).await;
    assert_eq!(stack.take(QueueName::Ack).await.len(), 1, "the ack is lost");
    stack.hand(QueueName::Group, second).await;
    for _ in 0..3 {
        stack.sweep().await;
        stack.drain().await;
    }
    assert_eq!(stack.completions().await.len(), 1, "the fan-out never completes");
}

/// A task stays in the lane it was stored in, wherever a repeated registration would place it after its policy changed.
#[tokio::test(start_paused = true)]
async fn members_share_the_lane_of_their_batch_although_the_policy_changed() {
    let stack = stack(json!({})).await;
    let tasks = register(&stack, "117", 0..2).await;
    stack.take(QueueName::Elect).await;
    stack.put_policy(policy(json!({"target": "content.order"}))).await;
    assert_eq!(register(&stack, "117", 0..2).await, tasks);
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}

/// A duplicate names its key's owner, which may be stored in another lane: only that one is woken.
#[tokio::test(start_paused = true)]
async fn a_duplicate_does_not_wake_its_own_lane() {
    let stack = stack(json!({"key": "content.order"})).await;
    let tasks = vec![order(None, "117", 7), order(None, "900", 7)];
    let first = stack.register.register(tasks, "r").await.unwrap()[0].id;
    let (mut late, soon): (Vec<Delivery>, _) =
        stack.take(QueueName::Elect).await.into_iter().partition(|delivery| delivery.body.contains("parcel:0:117"));
    stack.hand(QueueName::Elect, soon).await;
    stack.drain().await;
    stack.hand(QueueName::Elect, late.split_off(0)).await;
    stack.drain().await;
    stack.assert_settled(&[first], 10).await;
}

/// DynamoDB refuses a read that names one item twice; the lanes of an invocation must not suffer for one another.
#[tokio::test(start_paused = true)]
async fn a_task_named_by_two_lanes_does_not_stop_all_elections() {
    let stack = stack(json!({})).await;
    let used = [register(&stack, "117", 0..1).await, register(&stack, "900", 0..1).await].concat();
    stack.drain().await;
    assert_eq!(used.len(), 2);
    let task = register(&stack, "117", 1..2).await;
    let innocent = register(&stack, "331", 0..1).await;
    stack.take(QueueName::Elect).await;
    let deliveries = vec![
        delivery("a", &elect(&stack, "parcel:0:117", &task)),
        delivery("b", &elect(&stack, "parcel:0:900", &task)),
        delivery("c", &elect(&stack, "parcel:0:331", &innocent)),
    ];
    assert_eq!(stack.hand(QueueName::Elect, deliveries).await, Vec::<String>::new());
}

/// A duplicate stands in for its key's owner only if that one is not at hand.
#[tokio::test(start_paused = true)]
async fn an_owner_behind_its_duplicate_is_stored_as_itself() {
    let stack = stack(json!({"key": "content.order"})).await;
    let (duplicate, owner) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let key = Key { scope: "parcel".to_owned(), value: "ORD-7".to_owned() };
    // The invocation that took the key died; its two messages come again in another order.
    stack.tasks.take_keys(&[KeyClaim { key, owner: TaskId::Single(owner) }]).await.unwrap();
    let task = |id, depot: &str| TaskRequest { id: Some(TaskId::Single(id)), ..order(None, depot, 7) };
    stack.register.register(vec![task(duplicate, "117"), task(owner, "900")], "r").await.unwrap();
    let stored = stack.tasks.get(&TaskId::Single(owner)).await.unwrap().unwrap();
    assert_eq!(stored.lane, lane("parcel:0:900"));
}

/// A wake-up names no tasks. It counts beside a workflow all of whose tasks are claimed.
#[tokio::test(start_paused = true)]
async fn a_wake_up_is_heard_beside_a_workflow_that_is_done() {
    let stack = stack(json!({})).await;
    let done = register(&stack, "117", 0..2).await;
    stack.drain().await;
    register(&stack, "117", 2..4).await;
    stack.take(QueueName::Elect).await;
    let wake_up = delivery("wake-up", &elect(&stack, "parcel:0:117", &[]));
    let loser = delivery("loser", &elect(&stack, "parcel:0:117", &done));
    stack.hand(QueueName::Elect, vec![wake_up, loser]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 1, "nobody leads");
}

/// A lane that is woken because there is room in flight again forms full batches at once.
#[tokio::test(start_paused = true)]
async fn full_batches_do_not_linger() {
    // A batch API that takes some seconds.
    let api = ScriptedApi::new(|call| match call.attempt {
        1 => Err(fanfold_handle::api::CallError::again("503")),
        _ => Ok(Answer::AllSucceeded),
    });
    let changes = json!({"linger": 600, "max_batch": 5, "max_in_flight": 1});
    let stack = Stack::new(policy(changes), api, Crash::never()).await;
    let begun = stack.world.now();
    let tasks = register(&stack, "117", 0..40).await;
    stack.drain().await;
    stack.assert_settled(&tasks, 5).await;
    let took = stack.world.now().since(begun);
    assert!(took < Duration::from_secs(600), "eight full batches took {took:?}");
}

/// A notice of very many failures is told in parts that fit a message.
#[tokio::test(start_paused = true)]
async fn many_failures_can_be_told() {
    let api = ScriptedApi::new(|call| {
        let failed = |member: &fanfold_handle::api::CallMember| MemberAnswer {
            id: member.id,
            outcome: MemberOutcome::Failed,
            error: Some("x".repeat(256)),
        };
        Ok(Answer::Members(call.members.iter().map(failed).collect()))
    });
    let changes = json!({"max_batch": 1000, "notify": {"queue": "notices"}});
    let stack = Stack::new(policy(changes), api, Crash::never()).await;
    let tasks = register(&stack, "117", 0..1000).await;
    stack.drain().await;
    stack.assert_locks_free().await;
    let notices = stack.take(QueueName::Notices).await;
    let mut told = Vec::new();
    for notice in &notices {
        let notice: Notice = serde_json::from_str(&notice.body).unwrap();
        let Event::TasksFailed(failed) = notice.event else { panic!("{notice:?}") };
        assert_eq!((failed.kind.as_str(), failed.target.as_str()), ("parcel", "117"));
        assert!(failed.failures.iter().all(|failure| failure.error == "x".repeat(256)));
        told.extend(failed.failures.into_iter().map(|failure| failure.id));
    }
    assert!(notices.len() > 1, "one notice of everything");
    assert_eq!((told.len(), told.into_iter().collect::<BTreeSet<_>>()), (1_000, tasks.into_iter().collect()));
}

/// Members of as many item groups take 37 bytes each. Members, outcomes and errors fit a record of 400 KB.
#[tokio::test(start_paused = true)]
async fn the_outcome_of_the_largest_batch_fits_its_record() {
    let api = ScriptedApi::new(|call| {
        let answer = |(n, member): (usize, &fanfold_handle::api::CallMember)| MemberAnswer {
            id: member.id,
            outcome: if n.is_multiple_of(2) { MemberOutcome::Succeeded } else { MemberOutcome::Failed },
            error: Some(format!("{:0>256}", n % 80)),
        };
        Ok(Answer::Members(call.members.iter().enumerate().map(answer).collect()))
    });
    let stack = Stack::new(policy(json!({"max_batch": 10_000})), api, Crash::never()).await;
    // Every item of a fan-out of its own: members of one fan-out take far less room.
    let mut tasks = Vec::new();
    for n in 0..10_000 {
        let request = OpenRequest { items: 1, seal: true, ..OpenRequest::default() };
        let fanout = stack.tracking.open(request, None).await.unwrap().fanout.id;
        tasks.push(order(Some(ItemId { fanout, group: fanout, index: 0 }), "117", n));
    }
    stack.register(tasks).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    let batches = stack.all_batches().await;
    let succeeded: u64 = batches.iter().map(|batch| batch.succeeded.count()).sum();
    assert_eq!((batches.len(), succeeded), (2, 5_000), "after {} calls", stack.api.seen().len());
}

/// A key is unique among the tasks of its kind.
#[tokio::test(start_paused = true)]
async fn two_kinds_of_task_may_have_one_key_in_a_fanout() {
    let stack = stack(json!({"key": "content.order"})).await;
    stack.put_policy(policy(json!({"kind": "letter", "key": "content.order"}))).await;
    let (_, ids) = stack.open(2, true).await;
    stack.register(vec![order(Some(ids[0]), "117", 1)]).await;
    stack.register(vec![TaskRequest { kind: "letter".to_owned(), ..order(Some(ids[1]), "117", 1) }]).await;
    stack.drain().await;
    let kinds: Vec<String> = stack.api.seen().into_iter().map(|seen| seen.call.kind).collect();
    assert_eq!(kinds.len(), 2, "only {kinds:?} was called for");
}

/// Whether failures are told is asked of the policy each time. A batch is closed even if the answer changed.
#[tokio::test(start_paused = true)]
async fn a_batch_is_closed_although_its_policy_tells_nobody_any_more() {
    let api = ScriptedApi::new(|_| Err(fanfold_handle::api::CallError::for_good("404")));
    let stack = Stack::new(policy(json!({"notify": {"queue": "notices"}})), api, Crash::never()).await;
    register(&stack, "117", 0..2).await;
    for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
        stack.deliver(queue).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(stack.take(QueueName::Notify).await.len(), 1, "the notice's message is lost");
    stack.put_policy(policy(json!({}))).await;
    for _ in 0..3 {
        stack.sweep().await;
        stack.drain().await;
    }
    stack.assert_locks_free().await;
}

/// A policy that cannot be read, as after a roll-back, does not keep a sweep from healing the rest.
#[tokio::test(start_paused = true)]
async fn a_sweep_goes_on_past_a_record_that_it_can_not_read() {
    let stack = stack(json!({})).await;
    spoil_policy(&stack, "letter").await;
    stack.locks.acquire(&lane("letter:0:x"), Uuid::from_u128(1), 1).await.unwrap().done().unwrap();
    let tasks = register(&stack, "117", 0..2).await;
    stack.take(QueueName::Elect).await;
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(300)).await;
        let _ = stack.sweeper.sweep(SweepRequest::default()).await;
    }
    stack.drain().await;
    let claimed = stack.tasks.claimed(&tasks).await.unwrap();
    assert_eq!(claimed.len(), 2, "tasks of another kind wait for ever");
}

/// An attempt that could not read what it needs has not called: it is taken back.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_could_not_read_does_not_count() {
    let stack = stack(json!({})).await;
    let tasks = register(&stack, "117", 0..2).await;
    for queue in [QueueName::Elect, QueueName::Group] {
        stack.deliver(queue).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    spoil_policy(&stack, "parcel").await;
    for _ in 0..40 {
        stack.sweep().await;
        stack.deliver(QueueName::Handle).await;
    }
    stack.put_policy(policy(json!({}))).await;
    for _ in 0..3 {
        stack.sweep().await;
        stack.drain().await;
    }
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), stack.api.seen().len()), (2, 1), "{:?}", batch.errors);
}

/// SQS refuses a message with U+FFFE or U+FFFF in it. A target may hold one.
#[tokio::test(start_paused = true)]
async fn messages_hold_only_what_sqs_takes() {
    let stack = stack(json!({})).await;
    register(&stack, "\u{ffff}", 0..1).await;
    for message in stack.take(QueueName::Elect).await {
        assert!(!message.body.contains(['\u{fffe}', '\u{ffff}']), "SQS answers InvalidMessageContents");
    }
}

/// A queue that is an hour behind must not get a message a minute for each of its batches.
#[tokio::test(start_paused = true)]
async fn sweeps_do_not_pile_up_messages_for_one_batch() {
    let stack = stack(json!({})).await;
    register(&stack, "117", 0..2).await;
    for queue in [QueueName::Elect, QueueName::Group] {
        stack.deliver(queue).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(60)).await;
        stack.sweeper.sweep(SweepRequest::default()).await.unwrap();
    }
    let messages = stack.take(QueueName::Handle).await.len();
    assert!(messages <= 10, "{messages} messages for one batch");
}

/// An open repeated under its key with other items is refused, whatever was added since.
#[tokio::test(start_paused = true)]
async fn an_open_key_is_not_reused_for_other_items() {
    let stack = stack(json!({})).await;
    let request = |items| OpenRequest { items, ..OpenRequest::default() };
    let first = stack.tracking.open(request(0), Some("key")).await.unwrap();
    stack.tracking.add(first.fanout.id, 5, None).await.unwrap();
    let again = stack.tracking.open(request(3), Some("key")).await;
    assert!(again.is_err(), "{:?} does not exist", again.unwrap().groups);
}

/// The acks of an invocation do not depend on one another's policies.
#[tokio::test(start_paused = true)]
async fn an_ack_does_not_fail_for_another_kinds_policy() {
    let stack = stack(json!({})).await;
    stack.put_policy(policy(json!({"kind": "letter"}))).await;
    let (_, ids) = stack.open(2, true).await;
    let letter = TaskRequest { kind: "letter".to_owned(), ..order(Some(ids[1]), "117", 1) };
    stack.register(vec![order(Some(ids[0]), "117", 0), letter]).await;
    for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
        stack.deliver(queue).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let acks = stack.take(QueueName::Ack).await;
    assert_eq!(acks.len(), 2);
    spoil_policy(&stack, "letter").await;
    assert!(stack.hand(QueueName::Ack, acks).await.len() < 2, "both failed");
}

/// Requests so far. `Crash` counts them; its debug form tells.
fn requests(stack: &Stack) -> u64 {
    let text = format!("{:?}", stack.crash);
    let seen = text.split("seen: ").nth(1).unwrap();
    seen[..seen.find(|c: char| !c.is_ascii_digit()).unwrap()].parse().unwrap()
}

async fn requests_of_a_lane(tasks: usize) -> u64 {
    // A batch API that takes some ten seconds.
    let api = ScriptedApi::new(|call| match call.attempt {
        1 => Err(fanfold_handle::api::CallError::again("503")),
        _ => Ok(Answer::AllSucceeded),
    });
    let changes = json!({"max_batch": 20, "max_in_flight": 1, "backoff": {"base": 10, "max": 10}});
    let stack = Stack::new(policy(changes), api, Crash::never()).await;
    let mut ids = Vec::new();
    for from in (0..tasks).step_by(500) {
        ids.extend(register(&stack, "117", from..from + 500).await);
    }
    stack.drain().await;
    assert_eq!(stack.tasks.claimed(&ids).await.unwrap().len(), tasks);
    requests(&stack)
}

/// Losers must not read their tasks at every try: requests would grow with the square of the lane.
#[tokio::test(start_paused = true)]
async fn requests_of_a_lane_grow_with_its_tasks() {
    let (small, large) = (requests_of_a_lane(500).await, requests_of_a_lane(4_000).await);
    assert!(large < small * 10, "500 tasks take {small} requests, 4,000 take {large}");
}

/// Every request takes five milliseconds.
#[derive(Debug)]
struct Latency;

impl Interceptor for Latency {
    fn before<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, Fate> {
        async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Fate::Pass
        }
        .boxed()
    }
}

struct TestClock(tokio::time::Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_800_000_000_000).plus(self.0.elapsed())
    }
}

struct TestRandom(std::sync::Mutex<fastrand::Rng>);

impl Random for TestRandom {
    fn next(&self) -> u64 {
        self.0.lock().unwrap().u64(..)
    }
}

/// The same tables and queues, seen at once and over a network.
async fn near_and_far(function: &str) -> (Surroundings, Surroundings) {
    let template = Template::parse(include_str!("../../template.yaml")).unwrap();
    let engine = Engine::memory().unwrap();
    engine.provision(&template).await.unwrap();
    let world = World {
        clock: Arc::new(TestClock(tokio::time::Instant::now())),
        random: Arc::new(TestRandom(std::sync::Mutex::new(fastrand::Rng::with_seed(7)))),
    };
    let see = |engine: &Engine| {
        let variables = template.environment(function).unwrap();
        Surroundings::new(engine.dynamodb(), engine.sqs(), world.clone(), move |name| variables.get(name).cloned())
    };
    (see(&engine), see(&engine.with_interceptor(Arc::new(Latency))))
}

/// An invocation may be full of small fan-outs. It must end in the function's time, or its messages come again for
/// ever.
#[tokio::test(start_paused = true)]
async fn an_invocation_of_ack_ends_in_its_time() {
    let (near, far) = near_and_far("AckFunction").await;
    let tracking = Tracking::from_environment(&near).unwrap();
    let mut deliveries = Vec::new();
    for message in 0..100 {
        let mut items = Vec::new();
        for _ in 0..30 {
            let request = OpenRequest { items: 1, seal: true, ..OpenRequest::default() };
            let fanout = tracking.open(request, None).await.unwrap().fanout.id;
            items.push(ItemId { fanout, group: fanout, index: 0 });
        }
        deliveries.push(delivery(&message.to_string(), &AckRequest { items, ..AckRequest::default() }));
    }
    let ack = Ack::from_environment(&far).unwrap();
    let begun = tokio::time::Instant::now();
    assert!(ack.deliver(deliveries).await.is_empty());
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(30), "100 messages of the 1,000 allowed took {took:?}");
}

/// Very many lanes may go idle in a minute. A sweep must come to its end, or it never heals anything.
#[tokio::test(start_paused = true)]
async fn a_sweep_ends_in_its_time() {
    let (near, far) = near_and_far("SweepFunction").await;
    let locks = Locks::new(near.table("LOCKS_TABLE").unwrap());
    for n in 0..6_000_u128 {
        let (lane, batch) = (lane(&format!("parcel:0:{n}")), Uuid::from_u128(n));
        locks.acquire(&lane, batch, 1).await.unwrap().done().unwrap();
        locks.resign(&Leader { lane: &lane, batch, epoch: 1 }).await.unwrap();
    }
    let begun = tokio::time::Instant::now();
    Sweep::from_environment(&far).unwrap().sweep(SweepRequest::default()).await.unwrap();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}
