//! `/policies/{kind}/dev`.

use std::sync::Arc;
use std::time::Duration;

use fanfold::config::Surroundings;
use fanfold::limits::DEV_LEASE;
use fanfold_api::Api;
use fanfold_tests::DEV_QUEUES;
use futures::future::join_all;
use serde_json::{Value, json};

use super::{Server, routes};

const ANNA: &str = "01890000-0000-7000-8000-00000000000a";
const BEN: &str = "01890000-0000-7000-8000-00000000000b";
const PATH: &str = "/policies/parcel/dev";

pub(super) fn session(id: &str) -> Value {
    json!({"session": id, "queue": format!("{DEV_QUEUES}parcel-1")})
}

fn back(id: &str) -> String {
    format!("{PATH}?session={id}")
}

#[tokio::test(start_paused = true)]
async fn one_session_has_the_calls_until_it_gives_them_back_or_is_silent() {
    let server = Server::start().await;
    let nobody = json!({"allowed": true, "queues": DEV_QUEUES});
    assert_eq!(server.get(PATH).await.ok(200), nobody);
    let taken = server.put(PATH, session(ANNA)).await.ok(200);
    let lease = &taken["lease"];
    assert_eq!((&lease["session"], &lease["answers_within"]), (&json!(ANNA), &json!("5m")));
    assert_eq!(lease["until"], server.stack.world.now().plus(DEV_LEASE).0);
    assert_eq!(server.get(PATH).await.ok(200), taken);
    let (detail, _) = server.put(PATH, session(BEN)).await.problem(409, "dev_session_held");
    assert!(detail.contains(ANNA) && detail.contains(" until 20"), "{detail}");
    server.delete(&back(BEN)).await.problem(409, "dev_session_held");
    tokio::time::sleep(DEV_LEASE - Duration::from_secs(1)).await;
    server.put(PATH, session(ANNA)).await.ok(200);
    tokio::time::sleep(DEV_LEASE - Duration::from_secs(1)).await;
    server.put(PATH, session(BEN)).await.problem(409, "dev_session_held");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(server.get(PATH).await.ok(200), nobody, "it has passed");
    assert_eq!(server.delete(&back(BEN)).await.ok(200), nobody, "nobody has the calls");
    server.put(PATH, session(BEN)).await.ok(200);
    server.put(PATH, session(ANNA)).await.problem(409, "dev_session_held");
    for _ in 0..2 {
        assert_eq!(server.delete(&back(BEN)).await.ok(200), nobody, "and again");
    }
    server.put(PATH, session(ANNA)).await.ok(200);
}

#[tokio::test(start_paused = true)]
async fn of_several_sessions_at_once_one_has_the_calls() {
    let server = Server::start().await;
    let ids: Vec<String> = (1..5).map(|n| format!("01890000-0000-7000-8000-00000000000{n}")).collect();
    let mut answers = join_all(ids.iter().map(|id| server.put(PATH, session(id)))).await;
    answers.retain(|answer| answer.status != 409);
    assert_eq!(answers.len(), 1);
    assert_eq!(server.get(PATH).await.ok(200), answers.remove(0).ok(200));
}

/// A renewal that comes after the end takes nothing, so an operator can end a session.
#[tokio::test(start_paused = true)]
async fn a_lease_that_was_given_back_is_not_renewed() {
    let server = Server::start().await;
    let renew = |id: &str| {
        let mut body = session(id);
        body["renew"] = json!(true);
        body
    };
    server.put(PATH, renew(ANNA)).await.problem(409, "dev_session_ended");
    server.put(PATH, session(ANNA)).await.ok(200);
    server.put(PATH, renew(ANNA)).await.ok(200);
    server.put(PATH, renew(BEN)).await.problem(409, "dev_session_held");
    tokio::time::sleep(DEV_LEASE * 2).await;
    server.put(PATH, renew(ANNA)).await.ok(200);
    assert_eq!(server.delete(PATH).await.ok(200).get("lease"), None, "an operator ends it");
    let (detail, _) = server.put(PATH, renew(ANNA)).await.problem(409, "dev_session_ended");
    assert!(detail.contains(ANNA), "{detail}");
    server.put(PATH, session(BEN)).await.ok(200);
}

/// The lease is no part of the policy, and a policy that is stored or deleted meanwhile does not change it.
#[tokio::test(start_paused = true)]
async fn a_policy_and_its_lease_leave_each_other_as_they_are() {
    let server = Server::start().await;
    let policy = json!({"target": "kind", "batch_api": {"url": "https://example.com/"}});
    let policy = server.put("/policies/parcel", policy).await.ok(200);
    let taken = server.put(PATH, session(ANNA)).await.ok(200);
    assert_eq!(server.get("/policies/parcel").await.ok(200), policy);
    assert_eq!(server.get("/policies").await.ok(200)["policies"][0], policy);
    server.put("/policies/parcel", policy.clone()).await.ok(200);
    assert_eq!(server.get(PATH).await.ok(200), taken);
    server.delete("/policies/parcel").await.ok(200);
    server.put(PATH, session(ANNA)).await.problem(404, "unknown_policy");
    server.put("/policies/parcel", policy).await.ok(200);
    assert_eq!(server.get(PATH).await.ok(200), taken);
    server.delete("/policies/parcel").await.ok(200);
    server.delete(&back(ANNA)).await.ok(200);
    server.get(PATH).await.problem(404, "unknown_policy");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_used_is_named() {
    let server = Server::start().await;
    let with = |field: &str, value: Value| {
        let mut body = session(ANNA);
        body[field] = value;
        body
    };
    for queue in [
        "",
        "x",
        "arn:aws:sqs:local:000000000000:AckQueue",
        "arn:aws:sqs:local:000000000000:other-dev-parcel",
        DEV_QUEUES,
    ] {
        let (detail, fields) = server.put(PATH, with("queue", queue.into())).await.problem(422, "invalid_dev_session");
        assert!(fields == ["queue"] && detail.contains(DEV_QUEUES), "{detail}");
    }
    for within in ["0s", "61m"] {
        let body = with("answers_within", within.into());
        let (detail, fields) = server.put(PATH, body).await.problem(422, "invalid_dev_session");
        assert!(fields == ["answers_within"] && detail.contains("1s to 1h is allowed"), "{detail}");
    }
    for body in [
        with("session", "me".into()),
        with("until", 7.into()),
        json!({"session": ANNA}),
        with("answers_within", "soon".into()),
    ] {
        server.put(PATH, body).await.problem(422, "invalid_body");
    }
    server.put("/policies/letter/dev", session(ANNA)).await.problem(404, "unknown_policy");
    server.get("/policies/letter/dev").await.problem(404, "unknown_policy");
    server.delete(&format!("/policies/letter/dev?session={ANNA}")).await.problem(404, "unknown_policy");
    for query in ["?session=", "?session=me"] {
        let (detail, _) = server.delete(&format!("{PATH}{query}")).await.problem(400, "invalid_parameter");
        assert!(detail.contains("`session`"), "{detail}");
    }
    assert_eq!(server.get(PATH).await.ok(200).get("lease"), None, "nothing was taken");
}

/// The same stack, but it allows no dev sessions.
pub(super) fn without_sessions(server: Server) -> Server {
    let allowed = server.stack.surroundings().clone();
    let without =
        Surroundings::new(allowed.dynamodb.clone(), allowed.sqs.clone(), allowed.world.clone(), move |name| {
            allowed.named(name).filter(|_| name != "DEV_QUEUES")
        });
    let router = routes(&server.stack, Arc::new(Api::from_environment(&without).unwrap()));
    Server { router, ..server }
}

#[tokio::test(start_paused = true)]
async fn a_stack_allows_no_sessions_unless_it_is_told_to() {
    let server = Server::start().await;
    server.put(PATH, session(ANNA)).await.ok(200);
    let server = without_sessions(server);
    assert_eq!(server.get(PATH).await.ok(200), json!({"allowed": false}), "no call goes to the session any more");
    let (detail, _) = server.put(PATH, session(ANNA)).await.problem(409, "dev_sessions_off");
    assert!(detail.contains("DevSessions=yes"), "{detail}");
    server.delete(&back(ANNA)).await.ok(200);
}
