//! What the example's orders may cost in write units, requests to SQS and invocations. Time is simulated: the counts are the same on
//! every machine, however busy it is.

use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::TaskRequest;
use fanfold_batch_api::{Answer, Call, CallError, Cause, RetryAfter};
use fanfold_tests::{Crash, ScriptedApi, TestStack, changed, policy, until};
use serde_json::{Value, json};

const ORDERS: &str = include_str!("../../../examples/parcels/orders.csv");

/// Orders that the local runner registers together.
const PAGE_ROWS: usize = 25_000;

/// The fields of the example's orders that its policy asks for.
fn orders(items: &[ItemId]) -> Vec<TaskRequest> {
    let task = |(row, item): (&str, &ItemId)| {
        let mut columns = row.split(',');
        let [order, depot, state] = [(); 3].map(|()| columns.next().unwrap().to_owned());
        let content = json!({"order": order, "depot": depot, "state": state});
        TaskRequest { id: Some(TaskId::Item(*item)), kind: "parcel".to_owned(), content }
    };
    ORDERS.lines().skip(1).zip(items).map(task).collect()
}

/// A batch API as fast as the example's. No two calls end together, so that refusals of some are none of all.
fn takes(call: &Call) -> Duration {
    Duration::from_micros(10_000 + (call.batch_id.as_u128() % 20_000) as u64)
}

/// The first call of one batch in 25 is turned away, as the example's batch API does.
fn answer(call: &Call) -> Result<Answer, CallError> {
    if call.attempt == 1 && call.batch_id.as_u128().is_multiple_of(25) {
        let busy = CallError::new(Cause::Status(429), "come again in a second");
        return Err(CallError { retry_after: RetryAfter::parse("1"), ..busy });
    }
    Ok(Answer::AllSucceeded)
}

/// Handles the example's orders. `key`: what their policy says of keys.
async fn assert_costs_at_most(write_units: f64, key: Value) {
    let changes = json!({
        "target": "content.state + \"/\" + content.depot", "max_batch": 60, "linger": 2, "max_in_flight": 2,
        "max_attempts": 8, "backoff": {"base": 1, "max": 30},
    });
    let changes = changed(changes, key);
    let stack = TestStack::new(policy(changes), ScriptedApi::slow(takes, answer), Crash::unseen()).await;
    let count = ORDERS.lines().count() - 1;
    let pumps = stack.pumps();
    let (fanout, items) = stack.open(count as u32, true).await;
    for (n, page) in orders(&items).chunks(PAGE_ROWS).enumerate() {
        stack.register.register(page.to_vec(), &format!("page{n}")).await.unwrap();
    }
    until(async || stack.header(fanout).await.complete()).await;
    let mut invocations = 0;
    for pump in pumps {
        invocations += pump.stop_or(std::future::pending()).await.count;
    }
    let (requests, calls, units) = (stack.sqs_requests(), stack.api.seen().len(), stack.usage().write_units);
    println!(
        "{count} orders, {calls} calls: {units} write units, {requests} requests to SQS, {invocations} invocations"
    );
    assert!(units <= write_units * count as f64, "{units} write units for {count} orders");
    assert!(requests as f64 <= 0.15 * count as f64, "{requests} requests to SQS for {count} orders");
    assert!(invocations as f64 <= 0.05 * count as f64, "{invocations} invocations for {count} orders");
}

#[tokio::test(start_paused = true)]
async fn an_order_of_the_example_costs_2_6_write_units_and_few_requests_and_invocations() {
    assert_costs_at_most(2.6, json!({"key": "content.order"})).await;
}

#[tokio::test(start_paused = true)]
async fn an_order_without_a_key_costs_1_6_write_units() {
    assert_costs_at_most(1.6, json!({})).await;
}
