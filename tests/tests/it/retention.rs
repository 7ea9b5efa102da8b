//! How long records are kept, as a deployment asks for it.

use std::collections::BTreeMap;

use fanfold::config::{ConfigError, variables};
use fanfold_batch_api::{Answer, Call, CallMember, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, ScriptedApi, TestStack, order, policy};
use serde_json::json;

const DAY: u64 = 24 * 3_600;

/// Tables whose records expire.
const TABLES: [&str; 4] = ["TasksTable", "BatchesTable", "GroupsTable", "FanoutsTable"];

/// Succeeds with a result for each member.
fn returns() -> std::sync::Arc<ScriptedApi> {
    ScriptedApi::new(|call: &Call| {
        let answer = |member: &CallMember| MemberAnswer {
            result: Some(json!({"label": "x".repeat(5_000)}).to_string()),
            ..MemberAnswer::new(member.id, MemberOutcome::Succeeded)
        };
        Ok(Answer::Members(call.members.iter().map(answer).collect()))
    })
}

/// The days until each record of ended work expires, by table.
async fn days(parameters: &[(&str, &str)]) -> BTreeMap<&'static str, Vec<u64>> {
    let policy = policy(json!({"key": "content.order", "keep_results": true, "max_batch": 3}));
    let stack = TestStack::deployed(policy, returns(), Crash::never(), parameters).await;
    // In several groups, and with bundles, keys, duplicates, results and a request's note.
    let (fanout, items) = stack.open(7_200, true).await;
    stack.register_items(&items[..20]).await;
    let again = order(Some(items[20]), "117", 0);
    stack.register.register(vec![again], "a request").await.unwrap();
    stack.drain().await;
    stack.ack(&serde_json::from_value(json!({"items": items[20..]})).unwrap()).await;
    stack.drain().await;
    assert!(stack.header(fanout).await.ended_at.is_some());
    let now = stack.world.now().seconds();
    let mut found = BTreeMap::new();
    for table in TABLES {
        let records = stack.scan(table).await;
        let left = |ttl: &str| (ttl.parse::<u64>().unwrap() - now + DAY / 2) / DAY;
        let mut days = Vec::new();
        for item in &records {
            let ttl = item.get("ttl").unwrap_or_else(|| panic!("kept for ever in {table}: {item:?}"));
            days.push(left(ttl.as_n().unwrap()));
        }
        assert!(!days.is_empty(), "{table}");
        days.sort_unstable();
        found.insert(table, days);
    }
    stack.sweep().await;
    let locks = stack.scan("LocksTable").await;
    let lock = locks.iter().find(|item| item["lane"].as_s().unwrap() == "parcel:0:117").unwrap();
    assert!(lock.contains_key("ttl"), "that of an idle lane: {lock:?}");
    found
}

#[tokio::test(start_paused = true)]
async fn every_record_is_kept_for_the_same_time_longer() {
    let least = days(&[]).await;
    assert_eq!(least["FanoutsTable"], [14]);
    assert_eq!(days(&[(variables::RETENTION_DAYS, "14")]).await, least, "the default of the template is the code's");
    let longer = days(&[(variables::RETENTION_DAYS, "90")]).await;
    let added = least.iter().map(|(table, days)| (*table, days.iter().map(|days| days + 76).collect())).collect();
    assert_eq!(longer, added);
}

#[tokio::test(start_paused = true)]
async fn keys_cannot_be_remembered_for_shorter_than_promised() {
    let stack = TestStack::deployed(
        policy(json!({})),
        ScriptedApi::always_succeeds(),
        Crash::never(),
        &[(variables::RETENTION_DAYS, "30")],
    )
    .await;
    let surroundings = stack.surroundings().clone();
    for (value, problem) in
        [("13", "14 to 365 days are allowed"), ("366", "14 to 365"), ("a while", "a whole number"), ("-1", "a whole")]
    {
        let plain = surroundings.clone();
        let lookup = move |name: &str| {
            if name == variables::RETENTION_DAYS { Some(value.to_owned()) } else { plain.named(name) }
        };
        let changed = fanfold::config::Surroundings::new(
            surroundings.dynamodb.clone(),
            surroundings.sqs.clone(),
            surroundings.world.clone(),
            lookup,
        );
        let error = changed.table(variables::TASKS_TABLE).unwrap_err();
        assert!(matches!(&error, ConfigError::Unusable { variable, .. } if *variable == variables::RETENTION_DAYS));
        assert!(error.to_string().contains(problem), "{error}");
    }
}
