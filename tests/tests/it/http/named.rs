//! `GET /fanouts?user_key=…` and `?user_key_prefix=…`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Server;

async fn open(server: &Server, user_key: &str) -> String {
    server.open(json!({"items": 1, "user_key": user_key})).await.fanout
}

fn ids(page: &Value) -> Vec<String> {
    super::ids(page["fanouts"].as_array().unwrap())
}

/// All pages.
async fn all(server: &Server, path: &str) -> (Vec<String>, usize) {
    let (found, pages) = server.pages(path, "fanouts").await;
    (super::ids(&found), pages)
}

#[tokio::test(start_paused = true)]
async fn three_hundred_are_paged_newest_first_and_none_twice() {
    let server = Server::start().await;
    let mut opened = Vec::new();
    for _ in 0..300 {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        opened.push(open(&server, "nightly").await);
    }
    open(&server, "nightly 2").await;
    open(&server, "night").await;
    let (found, pages) = all(&server, "/fanouts?user_key=nightly").await;
    assert_eq!(found.iter().collect::<BTreeSet<_>>(), opened.iter().collect());
    assert_eq!((found.len(), pages), (300, 3));
    let shown = server.get("/fanouts?user_key=nightly&limit=100").await.ok(200);
    let times: Vec<u64> =
        shown["fanouts"].as_array().unwrap().iter().map(|it| it["created_at"].as_u64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    assert_eq!(all(&server, "/fanouts?user_key_prefix=nightly&limit=7").await.0.len(), 301);
    assert_eq!(all(&server, "/fanouts?user_key_prefix=night").await.0.len(), 302);
}

#[tokio::test(start_paused = true)]
async fn odd_keys_are_found_exactly() {
    let server = Server::start().await;
    let long = "ü".repeat(512);
    let longer = format!("{}x", "ü".repeat(511));
    let odd = ["", " ", "a&b=c", "a+b", "50%", "größe/…", "a\u{0}b", "a", "a\u{0}", &long, &longer];
    for key in odd {
        let id = open(&server, key).await;
        let path = format!("/fanouts?user_key={}", fanfold_http::encoded(key));
        let page = server.get(&path).await.ok(200);
        assert_eq!((ids(&page), &page["fanouts"][0]["user_key"]), (vec![id], &json!(key)));
    }
    let beginning = async |prefix: &str| {
        all(&server, &format!("/fanouts?user_key_prefix={}&limit=1", fanfold_http::encoded(prefix))).await.0.len()
    };
    assert_eq!(beginning("a").await, 5);
    assert_eq!(beginning("a\u{0}").await, 2);
    assert_eq!(beginning(&"ü".repeat(511)).await, 2);
    assert_eq!(beginning(&long).await, 1);
    assert_eq!(beginning("b").await, 0);
}

#[tokio::test(start_paused = true)]
async fn states_and_times_are_filtered() {
    let server = Server::start().await;
    let first = open(&server, "job").await;
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    let second = open(&server, "job").await;
    server.post(&format!("/fanouts/{first}/seal"), json!({})).await.ok(200);
    let shown = async |query: &str| ids(&server.get(&format!("/fanouts?user_key=job{query}")).await.ok(200));
    assert_eq!(shown("").await, [second.clone(), first.clone()]);
    assert_eq!(shown("&state=sealed").await, std::slice::from_ref(&first));
    assert_eq!(shown("&state=open").await, std::slice::from_ref(&second));
    assert!(shown("&state=expired").await.is_empty());
    let opened = server.get(&format!("/fanouts/{first}")).await.ok(200)["created_at"].as_u64().unwrap();
    assert_eq!(shown(&format!("&opened_after={opened}")).await, std::slice::from_ref(&second));
    assert_eq!(shown(&format!("&opened_before={}", opened + 1)).await, std::slice::from_ref(&first));
    let page = server.get("/fanouts?user_key=job&state=sealed&limit=1").await.ok(200);
    assert!(ids(&page).is_empty(), "the newest is open");
    assert_eq!(ids(&server.get(page["next"].as_str().unwrap()).await.ok(200)), [first]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_asked_is_refused() {
    let server = Server::start().await;
    let long = "x".repeat(1_025);
    for (query, said) in [
        ("?user_key_prefix=a&order=oldest".to_owned(), "`order`: is not allowed with `user_key_prefix`"),
        ("?order=up".to_owned(), "`order`: is `up`, `newest`, `oldest` is allowed"),
        ("?state=open,done".to_owned(), "`state`: is `open,done`, `open`, `sealed`"),
        ("?after=00".to_owned(), "`after`: does not belong to this list"),
        (format!("?opened_before=1&after={}", "ff".repeat(24)), "`after`: does not belong to this list"),
        ("?user_key=a&user_key_prefix=a".to_owned(), "`user_key_prefix`: is not allowed with"),
        ("?user_key=%ff".to_owned(), "`user_key`: is `%ff`"),
        (format!("?user_key={long}"), "at most 1024 bytes"),
        ("?user_key_prefix=".to_owned(), "`user_key_prefix`: is ``"),
        ("?user_key=a&state=done".to_owned(), "`state`: is `done`"),
        ("?user_key=a&opened_after=-1".to_owned(), "`opened_after`: is `-1`"),
        ("?user_key=a&opened_before=soon".to_owned(), "`opened_before`: is `soon`"),
        ("?user_key=a&limit=0".to_owned(), "`limit`: is `0`, 1 to 100 is allowed"),
        ("?user_key=a&after=xy".to_owned(), "`after`: is `xy`"),
        ("?user_key=a&after=6200".to_owned(), "`after`: does not belong to this list"),
        ("?user_key=a&user_key=b".to_owned(), "is given more than once"),
    ] {
        let (detail, _) = server.get(&format!("/fanouts{query}")).await.problem(400, "invalid_parameter");
        assert!(detail.contains(said), "{query}: {detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_key_costs_a_unit_when_it_is_opened_and_no_more() {
    let server = Server::start().await;
    let written = async |user_key: Option<&str>| {
        let units = || server.stack.usage().write_units;
        let start = units();
        let body = json!({"items": 3, "seal": true, "user_key": user_key});
        let fanout = server.post("/fanouts", body).await.ok(201)["id"].as_str().unwrap().to_owned();
        let opened = units();
        server.post("/acks", json!({"items": [format!("{fanout}:{fanout}:0-1")]})).await.ok(200);
        server.post("/acks", json!({"items": [format!("{fanout}:{fanout}:2")]})).await.ok(200);
        (opened - start, units() - opened)
    };
    let ((plain, acks), (named, acks_of_named)) = (written(None).await, written(Some(&"k".repeat(200))).await);
    assert!((named - plain - 1.0).abs() < f64::EPSILON, "{named} {plain}");
    assert!((acks_of_named - acks).abs() < f64::EPSILON, "{acks_of_named} {acks}");
}

#[tokio::test(start_paused = true)]
async fn a_page_reads_the_headers_and_one_partition() {
    let server = Server::start().await;
    for _ in 0..100 {
        open(&server, "nightly").await;
    }
    let before = server.stack.usage().read_units;
    assert_eq!(ids(&server.get("/fanouts?user_key=nightly").await.ok(200)).len(), 100);
    let read = server.stack.usage().read_units - before;
    assert!((100.0..=105.0).contains(&read), "{read} read units");
}
