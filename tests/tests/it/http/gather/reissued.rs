//! A part that failed is fetched again alone, and the task that follows is told of all parts; or only that task is run again.

use super::*;
use crate::reissues::cut_short::one_page;

/// A customer whose invoices cannot be fetched: the fan-out as it ended.
async fn failed(server: &Server) -> Value {
    let opened = server.post("/fanouts", gather(2)).await.ok(201);
    rest(server).await;
    server.get(&format!("/fanouts/{}", id(&opened))).await.ok(200)
}

/// Reissues a fan-out; how the new one ended.
async fn reissue(server: &Server, of: &Value, body: Value) -> Value {
    let new = server.post(&format!("/fanouts/{}/reissue", id(of)), body).await.ok(201);
    rest(server).await;
    server.get(&format!("/fanouts/{}", id(&new))).await.ok(200)
}

/// What the task that follows a fan-out was told of its parts.
fn told(server: &Server, fanout: &Value) -> Value {
    let reports = reports(server);
    let contents = &reports[fanout["then"]["id"].as_str().unwrap()];
    assert_eq!(contents.len(), 1, "{contents:?}");
    contents[0].clone()
}

#[tokio::test(start_paused = true)]
async fn the_task_of_a_reissue_is_told_of_all_parts() {
    let (server, broken) = server(Crash::never()).await;
    let old = failed(&server).await;
    // It fails again, then it does not.
    let second = reissue(&server, &old, json!({})).await;
    let before = told(&server, &second);
    assert_eq!(
        (&before["results"][0]["outcome"], &before["results"][1]["outcome"]),
        (&json!("succeeded"), &json!("failed"))
    );
    broken.store(false, Ordering::Relaxed);
    let third = reissue(&server, &second, json!({})).await;
    assert_eq!((&third["total"], &third["succeeded"]), (&json!(1), &json!(1)));
    let content = told(&server, &third);
    assert_eq!(content["customer"], 2);
    let results = content["results"].as_array().unwrap();
    let kinds: Vec<&Value> = results.iter().map(|part| &part["kind"]).collect();
    assert_eq!(kinds, [&json!("orders"), &json!("invoices")]);
    assert!(results.iter().all(|part| part["outcome"] == "succeeded" && part["result"]["of"] == 2), "{results:?}");
    assert!(results[0]["id"].as_str().unwrap().starts_with(id(&old)));
    assert!(results[1]["id"].as_str().unwrap().starts_with(id(&third)));
    let fetched = fetched(&server);
    assert_eq!((fetched[&("orders".to_owned(), 2)], fetched[&("invoices".to_owned(), 2)]), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn each_part_keeps_its_place_whichever_failed() {
    let (server, broken) = server(Crash::never()).await;
    // The third, fifth and sixth of seven parts fail.
    let parts = [
        ("orders", 2),
        ("invoices", 1),
        ("invoices", 2),
        ("orders", 1),
        ("invoices", 2),
        ("invoices", 2),
        ("orders", 3),
    ];
    let task = |(kind, customer): &(&str, u32)| json!({"kind": kind, "content": {"customer": customer}});
    let body = fanfold_tests::changed(gather(2), json!({"tasks": parts.iter().map(task).collect::<Vec<_>>()}));
    let opened = server.post("/fanouts", body).await.ok(201);
    rest(&server).await;
    let old = server.get(&format!("/fanouts/{}", id(&opened))).await.ok(200);
    assert_eq!(old["failed"], 3);
    broken.store(false, Ordering::Relaxed);
    let item = format!("{}:{}:4", id(&old), id(&old));
    let new = reissue(&server, &old, json!({"contents": [{"id": item, "content": {"customer": 7}}]})).await;
    let content = told(&server, &new);
    let results = content["results"].as_array().unwrap();
    let got: Vec<(&str, u64)> = results
        .iter()
        .map(|part| (part["result"]["kind"].as_str().unwrap(), part["result"]["of"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("orders", 2),
        ("invoices", 1),
        ("invoices", 2),
        ("orders", 1),
        ("invoices", 7),
        ("invoices", 2),
        ("orders", 3),
    ];
    assert_eq!(got, expected);
}

/// The item of another fan-out that the first task was has its outcome, so the reissue's task is one on its own.
#[tokio::test(start_paused = true)]
async fn the_task_of_a_reissue_is_no_item() {
    let (server, broken) = server(Crash::never()).await;
    let all = server.post("/fanouts", json!({"items": 1, "seal": true})).await.ok(201);
    let item = format!("{}:{}:0", id(&all), id(&all));
    let then = fanfold_tests::changed(gather(2)["then"].clone(), json!({"id": item}));
    let opened = server.post("/fanouts", fanfold_tests::changed(gather(2), json!({"then": then}))).await.ok(201);
    rest(&server).await;
    assert_eq!(server.get(&format!("/fanouts/{}", id(&all))).await.ok(200)["state"], "completed");
    broken.store(false, Ordering::Relaxed);
    let new = reissue(&server, &opened, json!({})).await;
    assert_ne!(new["then"]["id"], json!(item));
    assert_eq!(told(&server, &new)["results"][1]["outcome"], "succeeded");
}

#[tokio::test(start_paused = true)]
async fn the_last_phase_is_run_again_without_fetching() {
    let (server, broken) = server(Crash::never()).await;
    let opened = server.post("/fanouts", gather(9)).await.ok(201);
    rest(&server).await;
    broken.store(false, Ordering::Relaxed);
    let fetched_before = fetched(&server);
    let task = opened["then"]["id"].as_str().unwrap();
    let again = server.post(&format!("/tasks/{task}/reset"), json!({})).await.ok(200);
    rest(&server).await;
    let reports = reports(&server);
    assert_eq!(reports[task], reports[again["id"].as_str().unwrap()], "with the same content");
    assert_eq!(fetched(&server), fetched_before);
}

/// A fan-out that was reissued when an item had no task: which of its parts the reissue's items are is not known.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_told_apart_is_left_out() {
    let (server, _) = server(Crash::never()).await;
    let body = json!({"items": 2, "seal": true, "then": gather(1)["then"]});
    let opened = server.post("/fanouts", body).await.ok(201);
    let item = |index: u32| format!("{}:{}:{index}", id(&opened), id(&opened));
    server.post("/acks", json!({"failed": [item(0)]})).await.ok(200);
    let task = json!({"id": item(1), "kind": "invoices", "content": {"customer": 2}});
    server.post("/tasks", json!({"tasks": [task]})).await.ok(202);
    rest(&server).await;
    let new = reissue(&server, &opened, json!({})).await;
    let content = told(&server, &new);
    let why = content["results_left_out"].as_str().unwrap();
    assert!(why.contains("reissued 1 of 2 items") && content.get("results").is_none(), "{why}");
}

/// A reissue has taken on three of seven parts, which succeed, when it is cancelled. What it left is reissued.
#[tokio::test(start_paused = true)]
async fn what_an_earlier_reissue_took_on_is_not_said_to_have_failed() {
    let (server, broken) = server(Crash::never()).await;
    let stack = &server.stack;
    // So large that three fill a page.
    let part = json!({"kind": "invoices", "content": {"customer": 2, "padding": "x".repeat(110_000)}});
    let body = fanfold_tests::changed(gather(2), json!({"tasks": vec![part; 7]}));
    let opened = server.post("/fanouts", body).await.ok(201);
    rest(&server).await;
    broken.store(false, Ordering::Relaxed);
    let first = server.post(&format!("/fanouts/{}/reissue", id(&opened)), json!({})).await.ok(201);
    one_page(stack, id(&first).parse().unwrap()).await;
    stack.drain().await;
    let path = format!("/fanouts/{}", id(&first));
    server.delete(&path).await.ok(200);
    stack.rest().await;
    stack.minutes(20).await;
    let cut_short = server.get(&path).await.ok(200);
    assert_eq!((&cut_short["ended"], &cut_short["succeeded"]), (&json!(true), &json!(3)));
    let second = reissue(&server, &opened, json!({})).await;
    assert_eq!((&second["total"], &second["succeeded"]), (&json!(4), &json!(4)));
    let content = told(&server, &second);
    let why = content["results_left_out"].as_str().unwrap();
    assert!(why.contains("an earlier reissue, which was cut short") && content.get("results").is_none(), "{why}");
}
