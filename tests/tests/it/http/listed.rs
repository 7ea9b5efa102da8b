//! `GET /fanouts`: all fan-outs, by when they were opened and by how they stand.

use std::collections::BTreeSet;
use std::time::Duration;

use fanfold::limits::{FEW_SHARDS, IDLE_OPEN, LOOKS_PER_SHARD_MAX};
use serde_json::{Value, json};

use super::{Server, ids};

const DAY: Duration = Duration::from_secs(24 * 3_600);

async fn open(server: &Server, body: Value) -> String {
    // No two are opened at one time, so that there is one order.
    server.stack.clock.skip(Duration::from_millis(1));
    server.open(body).await.fanout
}

async fn open_many(server: &Server, count: usize, body: Value) -> Vec<String> {
    let mut opened = Vec::new();
    for _ in 0..count {
        opened.push(open(server, body.clone()).await);
    }
    opened
}

async fn end(server: &Server, fanout: &str, outcome: &str) {
    server.post("/acks", json!({outcome: [format!("{fanout}:{fanout}:0")]})).await.ok(200);
}

async fn list(server: &Server, query: &str) -> Vec<String> {
    ids(server.get(&format!("/fanouts{query}")).await.ok(200)["fanouts"].as_array().unwrap())
}

/// All pages.
async fn all(server: &Server, query: &str) -> Vec<String> {
    ids(&server.pages(&format!("/fanouts{query}"), "fanouts").await.0)
}

/// What a request reads.
async fn read_units(server: &Server, query: &str) -> f64 {
    let before = server.stack.usage().read_units;
    list(server, query).await;
    server.stack.usage().read_units - before
}

fn small() -> Value {
    json!({"items": 1, "seal": true})
}

fn reversed(ids: &[String]) -> Vec<String> {
    ids.iter().rev().cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn all_are_paged_in_both_orders_and_none_twice() {
    let server = Server::start().await;
    assert!(list(&server, "").await.is_empty());
    let mut opened = Vec::new();
    for n in 0..60 {
        let body = if n % 3 == 0 { json!({"user_key": "a"}) } else { small() };
        opened.push(open(&server, body).await);
        if n % 3 == 1 {
            end(&server, &opened[n], if n % 2 == 0 { "items" } else { "failed" }).await;
        }
    }
    let newest = reversed(&opened);
    assert_eq!(list(&server, "").await, newest);
    assert_eq!(list(&server, "?order=newest&limit=7").await, newest[..7]);
    for limit in [1, 7, 59, 60, 61] {
        assert_eq!(all(&server, &format!("?limit={limit}")).await, newest, "{limit}");
        assert_eq!(all(&server, &format!("?limit={limit}&order=oldest")).await, opened, "{limit}");
    }
    let of_a: Vec<String> = opened.iter().step_by(3).cloned().collect();
    assert_eq!(all(&server, "?user_key=a&order=oldest&limit=3").await, of_a);
    assert_eq!(all(&server, "?user_key=a&limit=3").await, reversed(&of_a));
}

#[tokio::test(start_paused = true)]
async fn each_state_is_listed() {
    let server = Server::start().await;
    let opened = open(&server, json!({"items": 1})).await;
    let watched = open(&server, json!({"items": 1, "idle_limit": {"open": "2h", "sealed": "2h"}})).await;
    let sealed = open(&server, small()).await;
    let empty = open(&server, json!({"seal": true})).await;
    let completed = open(&server, small()).await;
    end(&server, &completed, "items").await;
    let cancelled = open(&server, json!({"items": 1})).await;
    server.send("DELETE", &format!("/fanouts/{cancelled}"), &[], "").await.ok(200);
    let failed = open(&server, json!({"items": 1, "seal": true, "tolerated_failures": 0})).await;
    end(&server, &failed, "failed").await;
    let expired = open(&server, json!({"items": 1, "idle_limit": {"open": "1m", "sealed": "1m"}})).await;
    server.stack.clock.skip(Duration::from_secs(600));
    server.stack.sweep_now().await;
    for (state, expected) in [
        ("open", vec![&watched, &opened]),
        ("sealed", vec![&sealed]),
        ("completed", vec![&completed, &empty]),
        ("cancelled", vec![&cancelled]),
        ("failed", vec![&failed]),
        ("expired", vec![&expired]),
        ("open,sealed", vec![&sealed, &watched, &opened]),
        ("sealed,open,open", vec![&sealed, &watched, &opened]),
        ("failed,expired%2Ccompleted", vec![&expired, &failed, &completed, &empty]),
    ] {
        let expected: Vec<String> = expected.into_iter().cloned().collect();
        assert_eq!(all(&server, &format!("?state={state}&limit=1")).await, expected, "{state}");
        assert_eq!(list(&server, &format!("?state={state}&order=oldest")).await, reversed(&expected), "{state}");
    }
}

/// Where all but some have ended, or completed, the others are read alone.
#[tokio::test(start_paused = true)]
async fn what_ended_is_not_read_to_find_what_has_not() {
    let server = Server::start().await;
    let oldest = open(&server, json!({"items": 1})).await;
    let failed = open(&server, json!({"items": 1, "seal": true, "tolerated_failures": 0})).await;
    end(&server, &failed, "failed").await;
    for fanout in open_many(&server, 200, small()).await {
        end(&server, &fanout, "items").await;
    }
    let newest = open(&server, small()).await;
    assert_eq!(list(&server, "?state=open,sealed&limit=2").await, [newest.clone(), oldest.clone()]);
    assert_eq!(list(&server, "?state=failed&limit=1").await, [failed]);
    // Half a unit for each partition, a unit for each header.
    let partitions = FEW_SHARDS as f64;
    assert!(read_units(&server, "?state=open,sealed&limit=2").await <= partitions + 2.0);
    assert!(read_units(&server, "?state=failed,cancelled,expired&limit=1").await <= partitions / 2.0 + 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_list_begins_at_the_time_that_is_asked_for() {
    let server = Server::start().await;
    let opened = open_many(&server, 100, json!({"user_key": "nightly"})).await;
    let at = async |n: usize| {
        let shown = server.get(&format!("/fanouts/{}", opened[n])).await.ok(200);
        shown["created_at"].as_u64().unwrap()
    };
    let (early, late) = (at(10).await, at(20).await);
    for user_key in ["", "&user_key=nightly"] {
        let between = format!("?opened_after={early}&opened_before={late}{user_key}");
        assert_eq!(all(&server, &format!("{between}&limit=2")).await, reversed(&opened[11..20]));
        assert_eq!(all(&server, &format!("{between}&limit=2&order=oldest")).await, opened[11..20]);
        let first = format!("?opened_before={early}&limit=1{user_key}");
        assert_eq!(list(&server, &first).await, opened[9..10]);
        let partitions = if user_key.is_empty() { 4 * FEW_SHARDS } else { 1 };
        assert!(read_units(&server, &first).await <= partitions as f64 / 2.0 + 1.0, "what is newer is not read");
        let first = format!("?opened_after={late}&limit=1&order=oldest{user_key}");
        assert_eq!(list(&server, &first).await, opened[21..22]);
        assert!(list(&server, &format!("?opened_after={late}&opened_before={early}{user_key}")).await.is_empty());
        assert!(list(&server, &format!("?opened_before=0{user_key}")).await.is_empty());
    }
    let prefixed = format!("?user_key_prefix=night&opened_after={early}&opened_before={late}");
    assert_eq!(list(&server, &prefixed).await, reversed(&opened[11..20]));
}

/// Ends take entries from one partition of the index to another.
#[tokio::test(start_paused = true)]
async fn what_ends_between_two_pages_is_neither_missed_nor_listed_twice() {
    let server = Server::start().await;
    for order in ["newest", "oldest"] {
        let opened = open_many(&server, 30, small()).await;
        let since = server.get(&format!("/fanouts/{}", opened[0])).await.ok(200)["created_at"].as_u64().unwrap() - 1;
        let mut next = Some(format!("/fanouts?limit=4&order={order}&opened_after={since}"));
        let (mut found, mut pages) = (Vec::new(), 0);
        while let Some(path) = next {
            let page = server.get(&path).await.ok(200);
            found.extend(ids(page["fanouts"].as_array().unwrap()));
            next = page["next"].as_str().map(str::to_owned);
            // Some that were listed, and some that were not.
            for fanout in opened.iter().skip(pages).step_by(8) {
                end(&server, fanout, "items").await;
            }
            pages += 1;
        }
        assert_eq!(found.len(), 30, "{order}");
        assert_eq!(found.iter().collect::<BTreeSet<_>>(), opened.iter().collect(), "{order}");
        assert!(pages >= 8);
    }
}

/// A sweep looks at those that are older than the usual idle limit, and from then on at their own time. They are listed as before.
#[tokio::test(start_paused = true)]
async fn those_that_a_sweep_watches_are_listed_like_others() {
    let server = Server::start().await;
    let count = 20;
    let opened = open_many(&server, count, json!({"items": 1, "seal": true})).await;
    server.stack.clock.skip(IDLE_OPEN + DAY);
    let young = open(&server, small()).await;
    let due = async || {
        let mut due = 0;
        for shard in 0..FEW_SHARDS {
            due += server.stack.tracking.fanouts.to_look_at(shard, LOOKS_PER_SHARD_MAX, true).await.unwrap().len();
        }
        due
    };
    assert_eq!(due().await, count);
    server.stack.sweep_now().await;
    assert_eq!(due().await, 0, "sealed ones may be idle for longer, and each was looked at once");
    let expected = [opened.clone(), vec![young.clone()]].concat();
    assert_eq!(all(&server, "?state=open,sealed&order=oldest&limit=6").await, expected);
    for fanout in &opened[..5] {
        end(&server, fanout, "items").await;
    }
    assert_eq!(all(&server, "?state=sealed&order=oldest&limit=6").await, expected[5..]);
    assert_eq!(all(&server, "?state=completed&order=oldest").await, expected[..5]);
    assert_eq!(all(&server, "?order=oldest&limit=6").await, expected);
    server.stack.clock.skip(IDLE_OPEN + DAY);
    assert_eq!(due().await, count - 5 + 1, "those that ended are not looked at");
    server.stack.sweep_now().await;
    assert_eq!(all(&server, "?state=expired&order=oldest").await, opened[5..]);
    assert_eq!(due().await, 0);
}

/// The index costs a unit when a fan-out is opened, and two when its end is decided; what is watched, as it has a limit of its own, one
/// more each time. Nothing else costs anything.
#[tokio::test(start_paused = true)]
async fn an_entry_costs_three_write_units_in_all() {
    let server = Server::start().await;
    let written = async |body: Value| {
        let units = || server.stack.usage().write_units;
        let mut costs = vec![units()];
        let fanout = open(&server, body).await;
        costs.push(units());
        end(&server, &fanout, "items").await;
        costs.push(units());
        server.post("/acks", json!({"items": [format!("{fanout}:{fanout}:1-2")]})).await.ok(200);
        costs.push(units());
        costs.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect::<Vec<_>>()
    };
    assert_eq!(written(json!({"items": 3, "seal": true})).await, [2, 1, 3]);
    let limit = json!({"open": "2h", "sealed": "2h"});
    assert_eq!(written(json!({"items": 3, "seal": true, "idle_limit": limit})).await, [3, 1, 4]);
    let limit = json!({"open": "30d", "sealed": "30d"});
    assert_eq!(written(json!({"items": 3, "seal": true, "idle_limit": limit})).await, [2, 1, 3]);
}
