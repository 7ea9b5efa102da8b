//! Large batches, many failures, many lanes, full invocations: each fits its record, its message and its time.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use fanfold::config::Surroundings;
use fanfold::delivery::{Delivery, Step};
use fanfold::ids::ItemId;
use fanfold::notice::{Event, Notice};
use fanfold::policy::Policy;
use fanfold::store::locks::{Leader, Locks};
use fanfold::store::policies::Policies;
use fanfold::tracking::{OpenRequest, Tracking};
use fanfold_ack::Ack;
use fanfold_batch_api::{Answer, MemberAnswer, MemberOutcome};
use fanfold_local::{Engine, Fate, Interceptor, ServiceAnswer, ServiceRequest, Template};
use fanfold_register::Register;
use fanfold_sweep::{Sweep, SweepRequest};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, delivery, done, message, order, policy, world};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

/// A notice of very many failures is sent in parts that fit a message.
#[tokio::test(start_paused = true)]
async fn many_failures_can_be_reported() {
    let api = ScriptedApi::new(|call| {
        let failed = |member: &fanfold_batch_api::CallMember| MemberAnswer {
            error: Some("x".repeat(256)),
            ..MemberAnswer::new(member.id, MemberOutcome::Failed)
        };
        Ok(Answer::Members(call.members.iter().map(failed).collect()))
    });
    let changes = json!({"max_batch": 1000, "notify": {"queue": "notices"}});
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    let tasks = stack.register_orders("117", 0..1000).await;
    stack.drain().await;
    stack.assert_locks_free().await;
    let notices = stack.take(QueueName::Notices).await;
    let mut reported = Vec::new();
    for notice in &notices {
        let notice: Notice = serde_json::from_str(&notice.body).unwrap();
        let Event::TasksFailed(failed) = notice.event else { panic!("{notice:?}") };
        assert_eq!((failed.kind.as_str(), failed.target.as_str()), ("parcel", "117"));
        assert!(failed.failures.iter().all(|failure| failure.error == "x".repeat(256)));
        reported.extend(failed.failures.into_iter().map(|failure| failure.id));
    }
    assert!(notices.len() > 1, "one notice of everything");
    assert_eq!((reported.len(), reported.into_iter().collect::<BTreeSet<_>>()), (1_000, tasks.into_iter().collect()));
}

/// Members of as many item groups take 37 bytes each. Members, outcomes and errors fit a record of 400 KB.
#[tokio::test(start_paused = true)]
async fn the_outcome_of_the_largest_batch_fits_its_record() {
    let api = ScriptedApi::new(|call| {
        let answer = |(n, member): (usize, &fanfold_batch_api::CallMember)| MemberAnswer {
            error: Some(format!("{:0>256}", n % 80)),
            ..MemberAnswer::new(
                member.id,
                if n.is_multiple_of(2) { MemberOutcome::Succeeded } else { MemberOutcome::Failed },
            )
        };
        Ok(Answer::Members(call.members.iter().enumerate().map(answer).collect()))
    });
    let stack = TestStack::new(policy(json!({"max_batch": 10_000})), api, Crash::never()).await;
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
    let calls = stack.api.seen();
    let half: usize = calls.iter().map(|call| call.call.members.len().div_ceil(2)).sum();
    assert_eq!((batches.len(), calls.len(), succeeded), (2, 2, half as u64));
    assert_eq!(calls.iter().map(|call| call.call.members.len()).sum::<usize>(), 10_000);
}

/// Every request takes so long.
#[derive(Debug)]
struct Latency(Duration);

impl Interceptor for Latency {
    fn before<'a>(&'a self, _: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        async move {
            tokio::time::sleep(self.0).await;
            Fate::Pass
        }
        .boxed()
    }
}

/// Over a network.
const FAR: Latency = Latency(Duration::from_millis(5));

/// The same tables and queues, seen at once and by requests that meet something.
async fn near_and_far(function: &str, met: impl Interceptor + 'static) -> (Surroundings, Surroundings) {
    let template = Template::parse(include_str!("../../../template.yaml")).unwrap();
    let engine = Engine::memory().unwrap();
    engine.provision(&template).await.unwrap();
    let (world, _) = world();
    let see = |engine: &Engine| {
        let variables = template.environment(function).unwrap();
        Surroundings::new(engine.dynamodb(), engine.sqs(), world.clone(), move |name| variables.get(name).cloned())
    };
    (see(&engine), see(&engine.with_interceptor(Arc::new(met))))
}

/// An invocation may be full of small fan-outs. It must end in the function's time, or its messages come again for
/// ever.
#[tokio::test(start_paused = true)]
async fn an_invocation_of_ack_ends_in_its_time() {
    let (near, far) = near_and_far("AckFunction", FAR).await;
    let tracking = Tracking::from_environment(&near).unwrap();
    let mut deliveries = Vec::new();
    for number in 0..100 {
        let mut items = Vec::new();
        for _ in 0..30 {
            let request = OpenRequest { items: 1, seal: true, ..OpenRequest::default() };
            let fanout = tracking.open(request, None).await.unwrap().fanout.id;
            items.push(ItemId { fanout, group: fanout, index: 0 });
        }
        deliveries.push(message(number, &done(&items)));
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
    let (near, far) = near_and_far("SweepFunction", FAR).await;
    let locks = Locks::new(near.table("LOCKS_TABLE").unwrap());
    for n in 0..6_000_u128 {
        let (lane, batch) = (format!("parcel:0:{n}").parse().unwrap(), Uuid::from_u128(n));
        locks.acquire(&lane, batch, 1).await.unwrap().done().unwrap();
        locks.resign(&Leader { lane: &lane, batch, epoch: 1 }).await.unwrap();
    }
    let begun = tokio::time::Instant::now();
    let report = Sweep::from_environment(&far).unwrap().sweep(SweepRequest::default()).await.unwrap();
    let took = begun.elapsed();
    assert!(report.retired > 0 && took < Duration::from_secs(20), "{report:?} took {took:?}");
}

/// Three messages of a depot each, any two of which have more tasks than are registered together.
async fn bulk(near: &Surroundings) -> Vec<Delivery> {
    let policy: Policy = serde_json::from_value(policy(json!({}))).unwrap();
    Policies::new(near.table("POLICIES_TABLE").unwrap()).put(&policy).await.unwrap();
    let message = |depot: &str| {
        let task = json!({"kind": "parcel", "content": {"depot": depot}});
        delivery(depot, json!({ "tasks": vec![task; 5_500] }))
    };
    ["a", "b", "c"].map(message).into()
}

/// An invocation may be full of bulk. What there is no time for is left for another delivery, and each delivery gets
/// further. What came most often goes first.
#[tokio::test(start_paused = true)]
async fn bulk_is_registered_in_as_many_deliveries_as_it_takes() {
    let (near, far) = near_and_far("RegisterFunction", Latency(Duration::from_millis(250))).await;
    let mut deliveries = bulk(&near).await;
    deliveries[2].receive_count = 4;
    let register = Register::from_environment(&far).unwrap();
    for left in [&["a", "b"][..], &["b"], &[]] {
        let failed = register.deliver(deliveries.clone()).await;
        assert_eq!(failed, left);
        deliveries.retain(|delivery| failed.contains(&delivery.message_id));
    }
    let mut records = near.dynamodb.scan().table_name("TasksTable").into_paginator().items().send();
    let mut stored = 0;
    while let Some(record) = records.next().await {
        stored += usize::from(record.unwrap().contains_key("content"));
    }
    assert_eq!(stored, 3 * 5_500);
}

/// Each takes some seven seconds.
#[tokio::test(start_paused = true)]
async fn bulk_for_which_there_is_time_is_registered_at_once() {
    let (near, far) = near_and_far("RegisterFunction", Latency(Duration::from_millis(110))).await;
    let deliveries = bulk(&near).await;
    assert!(Register::from_environment(&far).unwrap().deliver(deliveries).await.is_empty());
}

/// Refuses to store anything of a depot.
#[derive(Debug)]
struct Refuses(&'static str);

impl Interceptor for Refuses {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        let stores = call.operation == "BatchExecuteStatement";
        let refuses = stores && String::from_utf8_lossy(&call.body).contains(&format!("parcel:0:{}", self.0));
        let refusal = || Fate::Answered(ServiceAnswer::error(400, "ValidationException", "it is refused"));
        ready(if refuses { refusal() } else { Fate::Pass }).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn bulk_that_cannot_be_stored_fails_alone() {
    let (near, far) = near_and_far("RegisterFunction", Refuses("b")).await;
    let deliveries = bulk(&near).await;
    assert_eq!(Register::from_environment(&far).unwrap().deliver(deliveries.clone()).await, ["b"]);
    assert!(Register::from_environment(&near).unwrap().deliver(deliveries).await.is_empty());
}
