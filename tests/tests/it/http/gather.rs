//! Gathering: fan-outs are opened with tasks of several kinds, and a task that follows is told what became of each, over HTTP.

mod crashes;
mod late;
mod reissued;
mod repeated;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fanfold_batch_api::{Answer, Call, CallMember, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, policy};
use serde_json::{Value, json};

use super::Server;

/// What reports were made of, by the task that made them: once per call.
type Reports = BTreeMap<String, Vec<Value>>;

fn content(member: &CallMember) -> Value {
    serde_json::from_str(member.content.get()).unwrap()
}

/// Two services and the printer of reports. While it is broken, the service of invoices refuses customer 2, and the printer customer 9.
fn company(broken: &AtomicBool, call: &Call) -> Answer {
    let answer = |member: &CallMember| {
        let customer = content(member)["customer"].clone();
        let bad = [("invoices", json!(2)), ("report", json!(9))].contains(&(call.kind.as_str(), customer.clone()));
        let refused = bad && broken.load(Ordering::Relaxed);
        let outcome = if refused { MemberOutcome::Failed } else { MemberOutcome::Succeeded };
        let (error, code) = match refused {
            true => (Some("no invoices of customer 2".to_owned()), Some("missing".to_owned())),
            false => (None, None),
        };
        let result = Some(json!({"kind": call.kind, "of": customer}).to_string()).filter(|_| !refused);
        MemberAnswer { error, code, result, ..MemberAnswer::new(member.id, outcome) }
    };
    Answer::Members(call.members.iter().map(answer).collect())
}

/// A server over a stack with policies for orders, invoices and reports.
async fn server(crash: Crash) -> (Server, Arc<AtomicBool>) {
    let broken = Arc::new(AtomicBool::new(true));
    let breaks = Arc::clone(&broken);
    let api = ScriptedApi::new(move |call: &Call| Ok(company(&breaks, call)));
    let of = |kind: &str| policy(json!({"kind": kind, "target": "'all'", "keep_results": true, "max_attempts": 1}));
    let stack = TestStack::new(of("orders"), api, crash).await;
    stack.put_policy(of("invoices")).await;
    stack.put_policy(of("report")).await;
    (Server::over(stack), broken)
}

/// What a customer's report is gathered from.
fn gather(customer: u32) -> Value {
    let part = |kind: &str| json!({"kind": kind, "content": {"customer": customer}});
    let then = json!({"kind": "report", "content": {"customer": customer}, "results": true});
    json!({"user_key": format!("customer {customer}"), "tasks": [part("orders"), part("invoices")], "then": then})
}

async fn rest(server: &Server) {
    server.stack.drain().await;
    for _ in 0..3 {
        server.stack.pass_time(fanfold::limits::HINT_LOST_AFTER).await;
        server.stack.sweep().await;
        server.stack.drain().await;
    }
}

/// The reports that were called for.
fn reports(server: &Server) -> Reports {
    let mut reports = Reports::new();
    for seen in server.stack.api.seen().iter().filter(|seen| seen.call.kind == "report") {
        for member in &seen.call.members {
            reports.entry(member.id.to_string()).or_default().push(content(member));
        }
    }
    reports
}

/// How often the services were called for each customer.
fn fetched(server: &Server) -> BTreeMap<(String, u64), usize> {
    let mut fetched = BTreeMap::new();
    for seen in server.stack.api.seen().iter().filter(|seen| seen.call.kind != "report") {
        for member in &seen.call.members {
            *fetched.entry((seen.call.kind.clone(), content(member)["customer"].as_u64().unwrap())).or_default() += 1;
        }
    }
    fetched
}

fn id(fanout: &Value) -> &str {
    fanout["id"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_fanout_with_tasks_gathers_their_results_for_the_task_that_follows() {
    let (server, _) = server(Crash::never()).await;
    let opened = server.post("/fanouts", gather(1)).await.ok(201);
    let fanout = id(&opened);
    assert_eq!((&opened["state"], &opened["total"]), (&json!("sealed"), &json!(2)));
    assert_eq!(opened["groups"], json!([{"id": fanout, "upto": 2}]));
    rest(&server).await;
    let ended = server.get(&format!("/fanouts/{fanout}")).await.ok(200);
    assert_eq!((&ended["state"], &ended["succeeded"]), (&json!("completed"), &json!(2)));
    let reports = reports(&server);
    let content = &reports[ended["then"]["id"].as_str().unwrap()][0];
    let part = |index: usize, kind: &str| {
        let result = json!({"kind": kind, "of": 1});
        json!({"id": format!("{fanout}:{fanout}:{index}"), "kind": kind, "outcome": "succeeded", "result": result})
    };
    assert_eq!(content["results"], json!([part(0, "orders"), part(1, "invoices")]));
    assert_eq!((reports.len(), &content["customer"], &content["fanout"]["fanout"]), (1, &json!(1), &json!(fanout)));
}

#[tokio::test(start_paused = true)]
async fn a_part_that_failed_says_why() {
    let (server, _) = server(Crash::never()).await;
    server.post("/fanouts", gather(2)).await.ok(201);
    rest(&server).await;
    let reports = reports(&server);
    let results = &reports.values().next().unwrap()[0]["results"];
    assert_eq!(results[0]["outcome"], "succeeded");
    let failed = &results[1];
    assert_eq!((&failed["outcome"], &failed["kind"]), (&json!("failed"), &json!("invoices")));
    assert_eq!((&failed["error"], &failed["code"]), (&json!("no invoices of customer 2"), &json!("missing")));
    assert_eq!(failed.get("result"), None);
}

#[tokio::test(start_paused = true)]
async fn several_fanouts_are_opened_at_once_and_their_tasks_share_batches() {
    let (server, _) = server(Crash::never()).await;
    let body = json!({"fanouts": (1..=5).map(gather).collect::<Vec<_>>()});
    let opened = server.post_once("/fanouts/open", "k", body.clone()).await.ok(201);
    let again = server.post_once("/fanouts/open", "k", body).await.ok(201);
    let keys = |opened: &Value| {
        opened["fanouts"].as_array().unwrap().iter().map(|of| of["user_key"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(super::ids(opened["fanouts"].as_array().unwrap()), super::ids(again["fanouts"].as_array().unwrap()));
    assert_eq!(keys(&opened), (1..=5).map(|n| json!(format!("customer {n}"))).collect::<Vec<_>>());
    rest(&server).await;
    assert_eq!(reports(&server).len(), 5);
    let calls = server.stack.api.seen().iter().filter(|seen| seen.call.kind == "orders").count();
    assert_eq!(calls, 1, "one call for the orders of all customers");
    assert!(fetched(&server).values().all(|times| *times == 1));
    // Another request under the key is refused.
    let other = json!({"fanouts": [gather(1), gather(3)]});
    let (detail, _) = server.post_once("/fanouts/open", "k", other).await.problem(422, "idempotency_key_reused");
    assert!(detail.contains("`fanouts` had 5 fan-outs, now 2"), "{detail}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_gathered_is_refused_with_its_field_and_nothing_is_opened() {
    let (server, _) = server(Crash::never()).await;
    let with = |change: Value| fanfold_tests::changed(gather(1), change);
    let then = |change: Value| with(json!({"then": fanfold_tests::changed(gather(1)["then"].clone(), change)}));
    let task = json!({"kind": "orders", "content": {}});
    let noise: Vec<Value> = (0..9).map(|n| json!({"kind": "orders", "content": noise(n)})).collect();
    for (body, code, field, says) in [
        (with(json!({"tasks": []})), "out_of_range", "tasks", "1 to 100"),
        (with(json!({"tasks": vec![task.clone(); 101]})), "out_of_range", "tasks", "POST /tasks"),
        (with(json!({"tasks": noise})), "out_of_range", "tasks", "when compressed"),
        (with(json!({"items": 2})), "out_of_range", "items", "each of its tasks is an item"),
        (with(json!({"mode": "estimated"})), "out_of_range", "mode", "its tasks are items"),
        (with(json!({"producer": {"source": {"url": "https://example.com/"}}})), "out_of_range", "producer", "beside"),
        (
            with(json!({"tasks": [task, {"kind": "nothing", "content": 1}]})),
            "invalid_tasks",
            "tasks[1].kind",
            "no policy",
        ),
        (then(json!({"content": {"results": 1}})), "invalid_follow", "then.content", "has a field `results`"),
        (json!({"items": 101, "then": gather(1)["then"]}), "invalid_follow", "then.results", "101 items"),
        (json!({"mode": "estimated", "then": gather(1)["then"]}), "invalid_follow", "then.results", "no items"),
    ] {
        let (detail, fields) = server.post("/fanouts", body.clone()).await.problem(422, code);
        assert!(fields == [field] && detail.contains(says), "{detail}: {fields:?}");
        let several = json!({"fanouts": [gather(2), body]});
        let (detail, fields) = server.post("/fanouts/open", several).await.problem(422, code);
        assert!(fields == [format!("fanouts[1].{field}")] && detail.contains(says), "{detail}: {fields:?}");
    }
    for body in
        [with(json!({"tasks": [{"id": super::NOBODY, "kind": "orders", "content": 1}]})), then(json!({"results": 1}))]
    {
        server.post("/fanouts", body).await.problem(422, "invalid_body");
    }
    for (many, says) in [(vec![], "1 to 1000"), (vec![json!({"items": 1}); 1_001], "1 to 1000")] {
        let (detail, _) = server.post("/fanouts/open", json!({"fanouts": many})).await.problem(422, "out_of_range");
        assert!(detail.contains(says), "{detail}");
    }
    assert_eq!(server.get("/fanouts").await.ok(200)["fanouts"], json!([]));
}

/// Text that does not become smaller.
fn noise(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..10_000).map(|_| random.alphanumeric()).collect()
}

/// Results that are too large for a task's content are left out, and the text that stands there says where they are.
#[tokio::test(start_paused = true)]
async fn results_that_are_too_large_are_left_out_with_advice() {
    let api = ScriptedApi::new(|call: &Call| {
        let large = Some(json!("x".repeat(60_000)).to_string());
        let answer = |member: &CallMember| MemberAnswer {
            result: large.clone(),
            ..MemberAnswer::new(member.id, MemberOutcome::Succeeded)
        };
        Ok(Answer::Members(call.members.iter().map(answer).collect()))
    });
    let of = |kind: &str| policy(json!({"kind": kind, "target": "'all'", "keep_results": true}));
    let stack = TestStack::new(of("orders"), api, Crash::never()).await;
    stack.put_policy(of("invoices")).await;
    stack.put_policy(of("report")).await;
    let server = Server::over(stack);
    let opened = server.post("/fanouts", gather(1)).await.ok(201);
    rest(&server).await;
    let content = reports(&server).into_values().next().unwrap().remove(0);
    let why = content["results_left_out"].as_str().unwrap();
    assert!(why.contains("bytes as JSON, at most 98304 are passed on"), "{why}");
    assert!(
        why.contains(&format!("GET /fanouts/{}/results", id(&opened))) && content.get("results").is_none(),
        "{why}"
    );
}

/// Items that were added to an open fan-out are gathered, too. Those that users ack have no task.
#[tokio::test(start_paused = true)]
async fn items_that_were_added_are_told_of_and_too_many_are_not() {
    for (items, told) in [(3_u32, true), (101, false)] {
        let (server, _) = server(Crash::never()).await;
        let opened = server.post("/fanouts", json!({"then": gather(1)["then"]})).await.ok(201);
        let path = format!("/fanouts/{}", id(&opened));
        let added = server.post(&format!("{path}/items"), json!({"items": items})).await.ok(201);
        server.post(&format!("{path}/seal"), json!({})).await.ok(200);
        let group = added["groups"][0]["id"].as_str().unwrap();
        let of = |range: String| format!("{}:{group}:{range}", id(&opened));
        let acks = json!({"items": [of(format!("1-{}", items - 1))], "failed": [of("0".to_owned())]});
        server.post("/acks", acks).await.ok(200);
        rest(&server).await;
        let content = reports(&server).into_values().next().unwrap().remove(0);
        let outcomes: Option<Vec<Value>> =
            content["results"].as_array().map(|parts| parts.iter().map(|part| part["outcome"].clone()).collect());
        let expected = told.then(|| vec![json!("failed"), json!("succeeded"), json!("succeeded")]);
        assert_eq!(outcomes, expected);
        assert_eq!(content["results_left_out"].as_str().is_some_and(|why| why.contains("101 items")), !told);
    }
}

/// The same message again, also late, changes nothing: the task was stored with the content that came first.
#[tokio::test(start_paused = true)]
async fn the_task_that_follows_is_the_same_however_often_it_is_asked_for() {
    let (server, _) = server(Crash::never()).await;
    let opened = server.post("/fanouts", gather(1)).await.ok(201);
    let mut messages = Vec::new();
    while messages.is_empty() {
        for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle, QueueName::Ack] {
            server.stack.deliver(queue).await;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        messages = server.stack.take(QueueName::Notify).await;
    }
    for _ in 0..2 {
        // Two workers at once, then late ones.
        tokio::join!(
            server.stack.hand(QueueName::Notify, messages.clone()),
            server.stack.hand(QueueName::Notify, messages.clone()),
        );
        rest(&server).await;
    }
    let ended = server.get(&format!("/fanouts/{}", id(&opened))).await.ok(200);
    let reports = reports(&server);
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[ended["then"]["id"].as_str().unwrap()].len(), 1, "{reports:?}");
}
