//! Requests that come again when policies have changed.

use super::*;

/// The faults of a fan-out that was opened before are as many as an answer names. They hide no others.
#[tokio::test(start_paused = true)]
async fn tasks_of_fanouts_that_were_opened_before_hide_no_faults_of_others() {
    let (server, _) = server(Crash::never()).await;
    let task = |customer: u32| json!({"kind": "orders", "content": {"customer": customer}});
    let fanout = |customer: u32| json!({"tasks": vec![task(customer); 100]});
    let first = json!({"fanouts": [fanout(1)]});
    let opened = server.post_once("/fanouts/open", "k", first.clone()).await.ok(201);
    server.stack.put_policy(policy(json!({"kind": "orders", "target": "content.other"}))).await;
    let both = json!({"fanouts": [fanout(1), fanout(2)]});
    let (_, fields) = server.post_once("/fanouts/open", "k", both).await.problem(422, "invalid_tasks");
    let faults: Vec<String> = (0..100).map(|at| format!("fanouts[1].tasks[{at}].target")).collect();
    assert_eq!(fields, faults);
    assert_eq!(server.get("/fanouts").await.ok(200)["fanouts"].as_array().unwrap().len(), 1);
    let again = server.post_once("/fanouts/open", "k", first).await.ok(201);
    assert_eq!(again["fanouts"][0]["id"], opened["fanouts"][0]["id"]);
}
