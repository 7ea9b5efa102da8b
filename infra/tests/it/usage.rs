//! Usage is counted as AWS meters it.

use std::sync::Arc;

use aws_sdk_dynamodb::types::{
    BatchStatementRequest, KeysAndAttributes, Put, ReturnConsumedCapacity, TransactWriteItem,
};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use fanfold_local::{Engine, Interceptor, Usage};

use crate::stack::{TABLE, engine, item, pending, put, s, url};

/// Write and read units, and requests to DynamoDB, since `before`.
fn since(engine: &Engine, before: &Usage) -> (f64, f64, u64) {
    let now = engine.usage();
    (
        now.write_units - before.write_units,
        now.read_units - before.read_units,
        now.dynamodb_requests - before.dynamodb_requests,
    )
}

#[tokio::test]
async fn a_write_costs_a_unit_a_kilobyte_for_the_table_and_one_for_its_index() {
    let engine = engine().await;
    let db = engine.dynamodb();
    assert_eq!(engine.usage(), Usage::default());
    put(&db, item([("id", s("plain"))])).await;
    assert_eq!(since(&engine, &Usage::default()), (1.0, 0.0, 1));
    let before = engine.usage();
    put(&db, pending("indexed", "lane", 1)).await;
    assert_eq!(since(&engine, &before), (2.0, 0.0, 1));
    let before = engine.usage();
    let claim = db.update_item().table_name(TABLE).key("id", s("indexed")).update_expression("REMOVE pending");
    claim.send().await.unwrap();
    assert_eq!(since(&engine, &before), (2.0, 0.0, 1));
    let before = engine.usage();
    put(&db, item([("id", s("large")), ("content", s(&"x".repeat(2_500)))])).await;
    assert_eq!(since(&engine, &before), (3.0, 0.0, 1));
    let usage = engine.usage();
    assert_eq!(
        (usage.by_operation["dynamodb.PutItem"].requests, usage.by_operation["dynamodb.PutItem"].units),
        (3, 6.0)
    );
    assert_eq!(usage.by_operation.keys().collect::<Vec<_>>(), ["dynamodb.PutItem", "dynamodb.UpdateItem"]);
}

#[tokio::test]
async fn a_failed_condition_costs_what_the_item_takes() {
    let engine = engine().await;
    let db = engine.dynamodb();
    put(&db, item([("id", s("large")), ("content", s(&"x".repeat(2_500)))])).await;
    let before = engine.usage();
    let again = db.put_item().table_name(TABLE).item("id", s("large")).condition_expression("attribute_not_exists(id)");
    again.send().await.unwrap_err();
    assert_eq!(since(&engine, &before), (3.0, 0.0, 1));
    let before = engine.usage();
    let absent = db.update_item().table_name(TABLE).key("id", s("absent")).update_expression("SET a = :a");
    let absent = absent.condition_expression("attribute_exists(id)").expression_attribute_values(":a", s("a"));
    absent.send().await.unwrap_err();
    assert_eq!(since(&engine, &before), (1.0, 0.0, 1));
}

#[tokio::test]
async fn a_transaction_costs_twice_also_if_it_is_cancelled() {
    let engine = engine().await;
    let db = engine.dynamodb();
    let new = |id: &str| {
        let put = Put::builder().table_name(TABLE).item("id", s(id)).condition_expression("attribute_not_exists(id)");
        TransactWriteItem::builder().put(put.build().unwrap()).build()
    };
    let write = |ids: [&str; 2]| db.transact_write_items().set_transact_items(Some(ids.map(new).into())).send();
    write(["a", "b"]).await.unwrap();
    assert_eq!(since(&engine, &Usage::default()), (4.0, 0.0, 1));
    let before = engine.usage();
    write(["b", "c"]).await.unwrap_err();
    assert_eq!(since(&engine, &before), (4.0, 0.0, 1));
}

#[tokio::test]
async fn a_batch_of_statements_costs_what_each_of_them_costs() {
    let engine = engine().await;
    let db = engine.dynamodb();
    let insert = async |ids: &[&str]| {
        let before = engine.usage();
        let statements = ids.iter().map(|id| {
            let text = format!("INSERT INTO \"{TABLE}\" VALUE {{'id': ?, 'pending': ?, 'created_at': 1}}");
            BatchStatementRequest::builder().statement(text).parameters(s(id)).parameters(s("lane")).build().unwrap()
        });
        db.batch_execute_statement().set_statements(Some(statements.collect())).send().await.unwrap();
        since(&engine, &before)
    };
    assert_eq!(insert(&["a", "b"]).await, (4.0, 0.0, 1));
    assert_eq!(insert(&["b", "c"]).await, (3.0, 0.0, 1));
    assert_eq!(insert(&["a", "b", "c"]).await, (3.0, 0.0, 1));
}

#[tokio::test]
async fn a_read_costs_a_unit_or_a_half_also_if_there_is_nothing() {
    let engine = engine().await;
    let db = engine.dynamodb();
    put(&db, pending("a", "lane", 1)).await;
    let read = async |consistent: bool| {
        let before = engine.usage();
        let keys = KeysAndAttributes::builder().consistent_read(consistent);
        let keys = keys.keys(item([("id", s("a"))])).keys(item([("id", s("absent"))])).build().unwrap();
        db.batch_get_item().request_items(TABLE, keys).send().await.unwrap();
        since(&engine, &before)
    };
    assert_eq!(read(true).await, (0.0, 2.0, 1));
    assert_eq!(read(false).await, (0.0, 1.0, 1));
    let before = engine.usage();
    db.get_item().table_name(TABLE).key("id", s("absent")).consistent_read(true).send().await.unwrap();
    assert_eq!(since(&engine, &before), (0.0, 1.0, 1));
    let before = engine.usage();
    let query = db.query().table_name(TABLE).index_name("pending").key_condition_expression("pending = :lane");
    query.expression_attribute_values(":lane", s("lane")).send().await.unwrap();
    assert_eq!(since(&engine, &before), (0.0, 0.5, 1));
}

#[tokio::test]
async fn capacity_is_reported_on_request() {
    let db = engine().await.dynamodb();
    let put = db.put_item().table_name(TABLE).item("id", s("a"));
    assert_eq!(put.clone().send().await.unwrap().consumed_capacity, None);
    let reported = put.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await.unwrap();
    assert_eq!(reported.consumed_capacity.unwrap().capacity_units, Some(1.0));
}

#[tokio::test]
async fn sqs_bills_a_request_for_every_64_kilobytes() {
    let engine = engine().await;
    let sqs = engine.sqs();
    let send = async |bytes: usize, count: usize| {
        let entries = (0..count).map(|id| {
            let entry = SendMessageBatchRequestEntry::builder().id(id.to_string());
            entry.message_body("x".repeat(bytes)).build().unwrap()
        });
        let batch = sqs.send_message_batch().queue_url(url("WorkQueue"));
        batch.set_entries(Some(entries.collect())).send().await.unwrap();
        engine.usage().by_operation["sqs.SendMessageBatch"]
    };
    let one = send(100, 10).await;
    assert_eq!((one.requests, one.units), (1, 1.0));
    let two = send(20_000, 10).await;
    assert_eq!((two.requests, two.units), (2, 5.0));
    sqs.receive_message().queue_url(url("DeadQueue")).send().await.unwrap();
    assert_eq!(engine.usage().by_operation["sqs.ReceiveMessage"].units, 1.0);
    assert_eq!((engine.usage().sqs_requests, engine.usage().dynamodb_requests), (3, 0));
    assert_eq!(engine.usage().sqs_billed, 6.0);
}

#[derive(Debug)]
struct Idle;

impl Interceptor for Idle {}

#[tokio::test]
async fn an_engine_with_an_interceptor_counts_for_itself() {
    let engine = engine().await;
    put(&engine.dynamodb(), item([("id", s("a"))])).await;
    let other = engine.with_interceptor(Arc::new(Idle));
    assert_eq!(other.usage(), Usage::default());
    put(&other.dynamodb(), item([("id", s("b"))])).await;
    assert_eq!((engine.usage().write_units, other.usage().write_units), (1.0, 1.0));
}
