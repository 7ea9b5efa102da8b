//! Estimates by counters.

use super::*;

/// A fan-out that is estimated, by a counter.
async fn estimated(server: &Server, user_key: &str) -> Fanout {
    let opened = server.post("/fanouts", json!({"mode": "estimated", "user_key": user_key})).await.ok(201);
    assert_eq!([&opened["state"], &opened["total"], &opened["complete"]], [&json!("open"), &json!(0), &json!(false)]);
    Fanout { id: opened["id"].as_str().unwrap().to_owned() }
}

/// Counts in several fan-outs at once; the user keys of those that are complete, sorted.
async fn complete_after(server: &Server, counts: &[(&Fanout, &str, u64)]) -> Vec<String> {
    let entry = |(fanout, what, by): &(&Fanout, &str, u64)| json!({"fanout": fanout.id, *what: by});
    let counts: Vec<Value> = counts.iter().map(entry).collect();
    let answer = server.post("/counts", json!({"counts": counts})).await.ok(200);
    assert_eq!(answer["refused"], json!([]));
    let complete = answer["fanouts"].as_array().unwrap().iter().filter(|fanout| fanout["complete"] == true);
    let mut keys: Vec<String> = complete.map(|fanout| fanout["user_key"].as_str().unwrap().to_owned()).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn an_estimate_is_incremented_decremented_and_closed() {
    let server = Server::listening().await;
    let fanout = estimated(&server, "catalog 7").await;
    assert!(complete_after(&server, &[(&fanout, "add", 10)]).await.is_empty());
    assert!(complete_after(&server, &[(&fanout, "succeeded", 10)]).await.is_empty(), "more may come");
    assert!(complete_after(&server, &[(&fanout, "add", 2)]).await.is_empty());
    assert!(!fanout.seal(&server).await, "two are outstanding");
    assert!(complete_after(&server, &[(&fanout, "succeeded", 1)]).await.is_empty());
    assert_eq!(
        complete_after(&server, &[(&fanout, "failed", 1)]).await,
        ["catalog 7"],
        "the last decrement is answered so"
    );
    let shown = fanout.show(&server).await;
    assert_eq!([&shown["state"], &shown["progress"]], [&json!("completed"), &json!("estimated")]);
    assert_eq!([&shown["total"], &shown["succeeded"], &shown["failed"]], [&json!(12), &json!(11), &json!(1)]);
}

#[tokio::test]
async fn closing_an_estimate_that_is_at_zero_completes_it() {
    let server = Server::listening().await;
    assert!(estimated(&server, "empty").await.seal(&server).await);
    let fanout = estimated(&server, "k").await;
    assert!(complete_after(&server, &[(&fanout, "add", 3), (&fanout, "succeeded", 3)]).await.is_empty());
    for _ in 0..2 {
        assert!(fanout.seal(&server).await, "and says so again");
    }
}

/// Every decrement counts, also several of one fan-out.
#[tokio::test]
async fn one_call_decrements_several_estimates() {
    let server = Server::listening().await;
    let fanouts = [estimated(&server, "a").await, estimated(&server, "b").await, estimated(&server, "c").await];
    for fanout in &fanouts {
        complete_after(&server, &[(fanout, "add", 3)]).await;
    }
    for fanout in &fanouts[..2] {
        assert!(!fanout.seal(&server).await);
    }
    let [a, b, c] = &fanouts;
    let counts = [(a, "succeeded", 1), (b, "succeeded", 2), (c, "succeeded", 3), (a, "succeeded", 2)];
    assert_eq!(complete_after(&server, &counts).await, ["a"]);
    assert_eq!(complete_after(&server, &[(b, "succeeded", 1), (a, "succeeded", 0)]).await, ["a", "b"]);
}

/// What makes an estimate of it.
#[tokio::test]
async fn a_decrement_that_comes_twice_counts_twice() {
    let server = Server::listening().await;
    let fanout = estimated(&server, "k").await;
    complete_after(&server, &[(&fanout, "add", 2)]).await;
    assert!(!fanout.seal(&server).await);
    assert!(complete_after(&server, &[(&fanout, "succeeded", 1)]).await.is_empty());
    assert_eq!(complete_after(&server, &[(&fanout, "succeeded", 1)]).await, ["k"], "too early");
    assert_eq!(
        complete_after(&server, &[(&fanout, "succeeded", 1)]).await,
        ["k"],
        "and nothing is below zero after the end"
    );
    assert_eq!(fanout.show(&server).await["done"], 2);
}

#[tokio::test]
async fn abandoned_estimates_are_reaped_too() {
    let server = Server::listening().await;
    let body = json!({"mode": "estimated", "items": 5, "seal": true, "idle_limit": {"sealed": "2h"}});
    let opened = server.post("/fanouts", body).await.ok(201);
    let fanout = Fanout { id: opened["id"].as_str().unwrap().to_owned() };
    complete_after(&server, &[(&fanout, "succeeded", 2)]).await;
    server.stack.clock.skip(Duration::from_secs(3 * 3_600));
    server.stack.sweep_now().await;
    let reaped = fanout.show(&server).await;
    let [state, done, missing] = ["state", "done", "missing"].map(|field| &reaped[field]);
    assert_eq!([state, done, missing], [&json!("expired"), &json!(2), &json!(3)]);
}

#[tokio::test]
async fn unknown_estimates_are_named_and_spoil_no_other() {
    let server = Server::listening().await;
    let fanout = estimated(&server, "k").await;
    let counts = json!([{"fanout": NOBODY, "add": 1}, {"fanout": fanout.id, "add": 1}]);
    let answer = server.post("/counts", json!({"counts": counts})).await.ok(200);
    assert_eq!((&answer["refused"][0]["code"], &answer["fanouts"][0]["total"]), (&json!("unknown_fanout"), &json!(1)));
    server.post("/counts", json!({"counts": [{"fanout": NOBODY, "add": 1}]})).await.problem(422, "invalid_counts");
}
