//! A fan-out from its opening to its end.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::Method;
use fanfold_client::{
    AckBuffer, ClientError, Count, Entry, Fanout, HttpAcks, Item, ItemsState, ListFanouts, Mode, OpenFanout, State,
};
use fanfold_produce::SourceError;
use fanfold_tests::QueueName;
use futures::TryStreamExt;
use serde_json::{Value, json};

use super::stack;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_fanout_is_opened_added_to_sealed_acked_and_awaited() {
    let (_stack, fanfold) = stack().await;
    let opened =
        fanfold.open(&OpenFanout { user_key: Some("order 4711".into()), ..OpenFanout::default() }).await.unwrap();
    assert_eq!((opened.state, opened.total, opened.has_ended()), (State::Open, 0, false));
    let added = fanfold.add(opened.id, 7_170, Some("page-1")).await.unwrap();
    assert_eq!(added, fanfold.add(opened.id, 7_170, Some("page-1")).await.unwrap());
    let items: Vec<Item> = added.items().collect();
    assert_eq!(items.iter().collect::<BTreeSet<_>>().len(), 7_170);
    let groups: BTreeSet<_> = fanfold.groups(opened.id).try_collect().await.unwrap();
    assert_eq!(groups, added.groups.iter().copied().collect());
    assert!(!fanfold.seal(opened.id).await.unwrap().complete);
    let answer = fanfold.ack(&[Entry::from(items[0])], &[Entry::from(items[1])]).await.unwrap();
    assert_eq!(answer.fanouts[0].user_key.as_deref(), Some("order 4711"));
    let waited = fanfold.wait(opened.id, Duration::from_millis(50)).await;
    assert!(matches!(waited, Err(ClientError::NotEnded(fanout)) if fanout.id == opened.id));
    let acks = AckBuffer::new(HttpAcks(fanfold.clone()));
    for item in &items[2..] {
        acks.succeeded(*item).await.unwrap();
    }
    assert!(acks.flush().await.unwrap()[&opened.id].complete);
    let end = fanfold.wait(opened.id, SOON).await.unwrap();
    assert_eq!((end.state, end.total, end.succeeded, end.failed), (State::Completed, 7_170, 7_169, 1));
}

#[tokio::test]
async fn scattered_acks_are_all_applied_and_items_are_listed() {
    let (_stack, fanfold) = stack().await;
    let opened = fanfold.open(&OpenFanout { items: 20_000, seal: true, ..OpenFanout::default() }).await.unwrap();
    let items: Vec<Item> = opened.items().collect();
    let acks = AckBuffer::with_max_age(HttpAcks(fanfold.clone()), None);
    for item in items.iter().step_by(3) {
        acks.failed(*item).await.unwrap();
    }
    assert!(!acks.flush().await.unwrap()[&opened.id].complete);
    let failed: BTreeSet<Item> = fanfold.items(opened.id, ItemsState::Failed).try_collect().await.unwrap();
    assert_eq!(failed, items.iter().step_by(3).copied().collect());
    for item in &items {
        acks.succeeded(*item).await.unwrap();
    }
    assert!(acks.flush().await.unwrap()[&opened.id].complete);
    let end = fanfold.get(opened.id).await.unwrap();
    assert_eq!((end.failed, end.succeeded), (6_667, 13_333));
}

#[tokio::test]
async fn a_cancelled_fanout_ends() {
    let (_stack, fanfold) = stack().await;
    let opened = fanfold.open(&OpenFanout { items: 10, ..OpenFanout::default() }).await.unwrap();
    for _ in 0..2 {
        assert_eq!(fanfold.cancel(opened.id).await.unwrap().state, State::Cancelled);
    }
    let end = fanfold.wait(opened.id, SOON).await.unwrap();
    assert_eq!((end.state, end.complete, end.missing), (State::Cancelled, false, 10));
}

#[tokio::test]
async fn failed_partitions_of_a_producer_are_resumed() {
    let (stack, fanfold) = stack().await;
    let plain = fanfold.open(&OpenFanout { items: 1, ..OpenFanout::default() }).await.unwrap();
    assert_eq!(fanfold.resume_producer(plain.id).await.unwrap_err().code(), Some("no_producer"));
    stack.sources.answer(|_| Err(SourceError::for_good("the table is gone")));
    let source = json!({"source": {"url": "https://rows.example/"}, "partitions": 2, "key": "content.order"});
    let opened = fanfold.request(Method::POST, "/fanouts", Some(&json!({"producer": source}))).await.unwrap();
    let id = opened["id"].as_str().unwrap().parse().unwrap();
    stack.drain().await;
    let states = |partitions: &[Value]| partitions.iter().map(|it| it["state"].clone()).collect::<Vec<_>>();
    let failed = fanfold.get(id).await.unwrap().raw["producer"]["partitions"].as_array().unwrap().clone();
    assert_eq!(states(&failed), ["failed", "failed"]);
    assert_eq!(states(&fanfold.resume_producer(id).await.unwrap()), ["running", "running"]);
}

#[tokio::test]
async fn users_choose_their_notices() {
    let (stack, fanfold) = stack().await;
    let notify_on = Some(json!({"ends": ["succeeded"], "progress": ["50%"]}));
    let request = OpenFanout { items: 2, seal: true, notify_on, ..OpenFanout::default() };
    let nowhere = fanfold.open(&request).await.unwrap_err();
    assert_eq!(nowhere.code(), Some("invalid_destination"), "{nowhere}");
    let notify = Some(json!({"queue": "notices"}));
    let items: Vec<Item> = fanfold.open(&OpenFanout { notify, ..request }).await.unwrap().items().collect();
    for item in items {
        fanfold.ack(&[Entry::from(item)], &[]).await.unwrap();
        while stack.deliver(QueueName::Notify).await > 0 {}
    }
    let notices = stack.take(QueueName::Notices).await;
    assert_eq!(notices.len(), 2);
    assert!(
        notices[0].body.contains("\"fanout.progress\"") && notices[1].body.contains("\"fanout.succeeded\""),
        "{notices:?}"
    );
}

#[tokio::test]
async fn an_estimate_is_counted_to_its_end() {
    let (_stack, fanfold) = stack().await;
    let estimated = OpenFanout { mode: Some(Mode::Estimated), items: 2, ..OpenFanout::default() };
    let one = fanfold.open(&OpenFanout { seal: true, ..estimated.clone() }).await.unwrap();
    let other = fanfold.open(&estimated).await.unwrap();
    assert_eq!((one.total, one.groups.len()), (2, 0));
    let nobody = Count { failed: 1, ..Count::default() };
    let counts = [
        Count { fanout: one.id, add: 1, succeeded: 1, failed: 0 },
        Count { fanout: other.id, add: 7, ..Count::default() },
        nobody,
    ];
    let answer = fanfold.count(&counts).await.unwrap();
    let counted: BTreeSet<_> = answer.fanouts.iter().map(|fanout| (fanout.id, fanout.total, fanout.done)).collect();
    assert_eq!(counted, BTreeSet::from([(one.id, 3, 1), (other.id, 9, 0)]));
    assert_eq!((answer.refused[0].fanout, answer.refused[0].code.as_str()), (nobody.fanout, "unknown_fanout"));
    let last = Count { fanout: one.id, add: 0, succeeded: 1, failed: 1 };
    let last = fanfold.count(&[last]).await.unwrap().fanouts.remove(0);
    assert_eq!((last.state, last.complete, last.ended, last.failed), (State::Completed, true, true, 1));
    let refused = fanfold.count(&[nobody]).await.unwrap_err();
    assert_eq!(refused.code(), Some("invalid_counts"), "{refused}");
    assert_eq!(fanfold.add(other.id, 1, None).await.unwrap_err().code(), Some("wrong_mode"));
    assert_eq!(fanfold.wait(one.id, SOON).await.unwrap().succeeded, 2);
}

#[tokio::test]
async fn a_problem_has_its_code() {
    let (_stack, fanfold) = stack().await;
    let unknown = fanfold.seal(uuid::Uuid::nil()).await.unwrap_err();
    assert_eq!(unknown.code(), Some("unknown_fanout"), "{unknown}");
    assert!(fanfold_client::Fanfold::new("localhost:8080").is_err());
}

#[tokio::test]
async fn fanouts_are_listed() {
    let (_stack, fanfold) = stack().await;
    let mut opened = Vec::new();
    for n in 0..5 {
        let user_key = Some(format!("list & {}", n % 2));
        opened
            .push(fanfold.open(&OpenFanout { items: 1, seal: true, user_key, ..OpenFanout::default() }).await.unwrap());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    fanfold.ack(&[Entry::from(opened[0].items().next().unwrap())], &[]).await.unwrap();
    let ids: Vec<_> = opened.iter().map(|fanout| fanout.id).collect();
    let listed = async |list: ListFanouts| {
        let found: Vec<Fanout> = fanfold.fanouts(&list).try_collect().await.unwrap();
        found.into_iter().map(|fanout| fanout.id).collect::<Vec<_>>()
    };
    let some = || ListFanouts { page: Some(2), ..ListFanouts::default() };
    let newest: Vec<_> = ids.iter().rev().copied().collect();
    assert_eq!(listed(ListFanouts::default()).await, newest);
    assert_eq!(listed(some()).await, newest);
    assert_eq!(listed(ListFanouts { oldest_first: true, ..some() }).await, ids);
    assert_eq!(listed(ListFanouts { states: vec![State::Open, State::Sealed], ..some() }).await, newest[..4]);
    assert_eq!(listed(ListFanouts { states: vec![State::Completed], ..some() }).await, ids[..1]);
    assert_eq!(listed(ListFanouts { opened_after: Some(opened[2].created_at), ..some() }).await, newest[..2]);
    assert_eq!(listed(ListFanouts { opened_before: Some(opened[2].created_at), ..some() }).await, newest[3..]);
    assert_eq!(listed(ListFanouts { user_key: Some("list & 1".into()), ..some() }).await, [ids[3], ids[1]]);
    assert_eq!(listed(ListFanouts { user_key_prefix: Some("list &".into()), ..some() }).await.len(), 5);
    let first: Vec<Fanout> = fanfold.fanouts(&ListFanouts::default()).try_collect().await.unwrap();
    assert_eq!((first[0].raw["user_key"].as_str(), first[0].created_at), (Some("list & 0"), opened[4].created_at));
}

#[tokio::test]
async fn several_are_opened_in_one_request() {
    let (_stack, fanfold) = stack().await;
    let of = |name: &str| OpenFanout { items: 1, user_key: Some(name.to_owned()), ..OpenFanout::default() };
    let ids = async || {
        let opened = fanfold.open_several(&[of("a"), of("b")], Some("several")).await.unwrap();
        opened.iter().map(|fanout| (fanout.id, fanout.user_key.clone().unwrap())).collect::<Vec<_>>()
    };
    let first = ids().await;
    assert_eq!(first.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(ids().await, first, "a repetition");
    let tasks = Some(vec![json!({"kind": "nothing", "content": 1})]);
    assert!(fanfold.open(&OpenFanout { tasks, ..OpenFanout::default() }).await.is_err());
}
