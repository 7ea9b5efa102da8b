//! Answers of a batch API that are odd, or unclear: every member has one outcome in the end.

use fanfold::limits::ERROR_BYTES_MAX;
use fanfold::store::batches::Batch;
use fanfold_batch_api::{Answer, Call};
use fanfold_tests::{Crash, ScriptedApi, TestStack, policy};
use serde_json::json;
use uuid::Uuid;

use super::assert_unharmed;

/// One batch of three whose first answer is hostile, and whose second answer is that all succeeded.
async fn first_answer(answer: Script) -> Batch {
    let api = ScriptedApi::new(move |call: &Call| {
        let ids: Vec<String> = call.members.iter().map(|member| member.id.to_string()).collect();
        if call.attempt > 1 {
            return Ok(Answer::AllSucceeded);
        }
        fanfold_batch_api::Answer::read(answer([&ids[0], &ids[1], &ids[2]]).as_bytes(), call)
    });
    let stack = TestStack::new(policy(json!({})), api, Crash::never()).await;
    let (_, ids) = stack.open(3, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.drain().await;
    let batch = stack.all_batches().await.remove(0);
    assert_unharmed(&stack, &tasks, batch.failed.count()).await;
    batch
}

/// An answer to a call for three members.
type Script = fn([&str; 3]) -> String;

fn members(members: serde_json::Value) -> String {
    json!({ "members": members }).to_string()
}

fn failures(entries: serde_json::Value) -> String {
    json!({ "batchItemFailures": entries }).to_string()
}

/// Answers without an outcome for any member: all three wait for the next one.
fn unclear() -> Vec<(&'static str, Script)> {
    vec![
        ("no members", |_| members(json!([]))),
        ("no field", |_| json!({}).to_string()),
        ("the field twice", |[a, ..]| {
            format!("{{\"members\": [{{\"id\": \"{a}\", \"outcome\": \"failed\"}}], \"members\": []}}")
        }),
        ("unknown members", |_| members(json!([{"id": Uuid::max(), "outcome": "failed"}]))),
        ("an id that is none", |_| members(json!([{"id": "x", "outcome": "failed"}]))),
        ("an index beyond", |[a, ..]| {
            let group = a.rsplit_once(':').unwrap().0;
            members(json!([{"id": format!("{group}:7168"), "outcome": "failed"}]))
        }),
        ("another outcome", |[a, ..]| members(json!([{"id": a, "outcome": "FAILED"}]))),
        ("no outcome", |[a, ..]| members(json!([{"id": a}]))),
        ("an outcome of another type", |[a, ..]| members(json!([{"id": a, "outcome": 1}]))),
        ("a status that is none", |ids| members(json!(ids.map(|id| json!({"id": id, "status": 99}))))),
        ("failures that name nobody", |[a, ..]| failures(json!([{"itemIdentifier": a}, {"itemIdentifier": ""}]))),
        ("failures that name a stranger", |_| failures(json!([{"itemIdentifier": Uuid::max()}]))),
        ("failures under another name", |[a, ..]| failures(json!([{"itemIdentifer": a}]))),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_clear_counts_for_no_member() {
    for (name, script) in unclear() {
        let batch = first_answer(script).await;
        assert_eq!((batch.attempts, batch.succeeded.count(), batch.failed.count()), (2, 3, 0), "{name}");
    }
}

/// Each member has the outcome that is given for it, if that is one; the others wait for the next answer.
#[tokio::test(start_paused = true)]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
async fn odd_answers_count_where_they_are_clear() {
    // The answer, how many attempts it takes, and which slots fail.
    let answers: [(&str, Script, u32, &[usize]); 11] = [
        (
            "one failed, one missing",
            |[a, b, _]| members(json!([{"id": a, "outcome": "failed"}, {"id": b, "outcome": "succeeded"}])),
            2,
            &[0],
        ),
        (
            "an id that is none",
            |[a, ..]| members(json!([{"id": a, "outcome": "failed"}, {"id": "x", "outcome": "failed"}])),
            2,
            &[0],
        ),
        (
            "an outcome that is none",
            |[a, b, c]| {
                let entries = [(a, "FAILED"), (b, "failed"), (c, "succeeded")];
                members(json!(entries.map(|(id, outcome)| json!({"id": id, "outcome": outcome}))))
            },
            2,
            &[1],
        ),
        (
            "ids in upper case",
            |ids| members(json!(ids.map(|id| json!({"id": id.to_uppercase(), "outcome": "failed"})))),
            1,
            &[0, 1, 2],
        ),
        (
            "statuses",
            |[a, b, c]| {
                members(json!([{"id": a, "status": 422}, {"id": b, "status": "201"}, {"id": c, "status": 503}]))
            },
            2,
            &[0],
        ),
        ("a failure as SQS knows it", |[a, ..]| failures(json!([{"itemIdentifier": a}])), 2, &[]),
        ("no failure as SQS knows it", |_| failures(json!(null)), 1, &[]),
        (
            "an error that is no text",
            |[a, ..]| members(json!([{"id": a, "outcome": "failed", "error": {"code": 1}}])),
            2,
            &[0],
        ),
        (
            "each twice, and two of them with different outcomes",
            |ids| {
                let entries =
                    |id: &str, outcomes: [&str; 2]| outcomes.map(|outcome| json!({"id": id, "outcome": outcome}));
                let [a, b, c] = ids;
                members(json!(
                    [
                        entries(a, ["failed", "succeeded"]),
                        entries(b, ["succeeded", "retry"]),
                        entries(c, ["succeeded"; 2])
                    ]
                    .concat()
                ))
            },
            2,
            &[],
        ),
        (
            "deep results",
            |ids| {
                let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
                let member = |id: &str| format!("{{\"id\": \"{id}\", \"outcome\": \"failed\", \"result\": {deep}}}");
                format!("{{\"members\": [{}]}}", ids.map(member).join(","))
            },
            1,
            &[0, 1, 2],
        ),
        (
            "huge and odd errors",
            |ids| {
                let errors = [json!("\u{0}\u{ffff}é".repeat(100_000)), json!(" \t"), json!(null)];
                let entries = |at: usize| json!({"id": ids[at], "outcome": "failed", "error": errors[at]});
                members(json!([entries(0), entries(1), entries(2)]))
            },
            1,
            &[0, 1, 2],
        ),
    ];
    for (name, script, attempts, failed) in answers {
        let batch = first_answer(script).await;
        assert_eq!((batch.attempts, batch.failed.iter().collect::<Vec<_>>()), (attempts, failed.to_vec()), "{name}");
        assert!(
            failed.iter().all(|slot| batch.error(*slot).is_some_and(|error| error.len() <= ERROR_BYTES_MAX)),
            "{name}"
        );
    }
}
