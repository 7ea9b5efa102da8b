//! Grouping: leaders, claims and attempts, with messages repeated, reordered, late and lost.

mod attempts;
mod elections;
mod late;
mod leaders;
mod lost;
mod registering;
mod sizes;

use std::time::Duration;

use fanfold::lane::Lane;
use fanfold_tests::TestStack;

fn lane(text: &str) -> Lane {
    text.parse().unwrap()
}

/// A policy that this version cannot read, as after a roll-back.
async fn spoil_policy(stack: &TestStack, kind: &str) {
    let name = stack.surroundings().variable("POLICIES_TABLE").unwrap();
    let put = stack.surroundings().dynamodb.put_item().table_name(name);
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    put.item("kind", text(kind)).item("policy", text("{\"new\": 1}")).send().await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
}
