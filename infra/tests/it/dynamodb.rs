//! The operations that the steps use.

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementErrorCodeEnum, BatchStatementRequest, KeysAndAttributes, Put, ReturnValue,
    ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use fanfold::clock::World;

use crate::stack::{TABLE, engine, get, item, n, pending, put, s};

#[tokio::test]
async fn a_refused_update_brings_the_old_item() {
    let db = engine().await.dynamodb();
    put(&db, item([("id", s("a")), ("holder", s("me")), ("epoch", n(3))])).await;
    let update = db.update_item().table_name(TABLE).key("id", s("a"));
    let update =
        update.update_expression("SET holder = :you, epoch = epoch + :one").condition_expression("epoch = :old");
    let update = update.expression_attribute_values(":you", s("you")).expression_attribute_values(":one", n(1));
    let update = update.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    let refused = update.clone().expression_attribute_values(":old", n(2)).send().await.unwrap_err();
    let UpdateItemError::ConditionalCheckFailedException(refused) = refused.into_service_error() else {
        panic!("not refused")
    };
    assert_eq!(refused.item.unwrap()["holder"], s("me"));
    let update = update.expression_attribute_values(":old", n(3)).return_values(ReturnValue::AllNew);
    let updated = update.send().await.unwrap().attributes.unwrap();
    assert_eq!((&updated["holder"], &updated["epoch"]), (&s("you"), &n(4)));
}

#[tokio::test]
async fn a_refused_put_returns_no_item_unless_it_is_asked_for() {
    let db = engine().await.dynamodb();
    put(&db, item([("id", s("a"))])).await;
    let again = db.put_item().table_name(TABLE).item("id", s("a")).condition_expression("attribute_not_exists(id)");
    let refused = again.send().await.unwrap_err().into_service_error();
    assert_eq!(refused.code(), Some("ConditionalCheckFailedException"));
    let aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException(refused) = refused else {
        panic!("another error")
    };
    assert_eq!(refused.item, None);
}

#[tokio::test]
async fn sets_of_ids_grow_shrink_and_are_measured() {
    let db = engine().await.dynamodb();
    let id = |id: u8| AttributeValue::Bs(vec![Blob::new([id; 16])]);
    let update = |expression: &str, value: AttributeValue, limit: u64| {
        let update = db.update_item().table_name(TABLE).key("id", s("lane")).update_expression(expression);
        let update = update.condition_expression("attribute_not_exists(flying) OR size(flying) < :limit");
        update.expression_attribute_values(":id", value).expression_attribute_values(":limit", n(limit)).send()
    };
    update("ADD flying :id", id(1), 2).await.unwrap();
    update("ADD flying :id", id(2), 2).await.unwrap();
    assert!(update("ADD flying :id", id(3), 2).await.is_err());
    update("DELETE flying :id", id(1), 3).await.unwrap();
    assert_eq!(get(&db, "lane").await.unwrap()["flying"], id(2));
    update("DELETE flying :id", id(2), 3).await.unwrap();
    assert!(!get(&db, "lane").await.unwrap().contains_key("flying"), "an empty set is no set");
}

fn new(id: &str) -> TransactWriteItem {
    let put = Put::builder().table_name(TABLE).item("id", s(id)).condition_expression("attribute_not_exists(id)");
    let put = put.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    TransactWriteItem::builder().put(put.build().unwrap()).build()
}

#[tokio::test]
async fn a_cancelled_transaction_names_the_action_and_changes_nothing() {
    let db = engine().await.dynamodb();
    put(&db, item([("id", s("b")), ("note", s("first"))])).await;
    let transaction = db.transact_write_items().set_transact_items(Some(vec![new("a"), new("b")]));
    let error = transaction.send().await.unwrap_err().into_service_error();
    let TransactWriteItemsError::TransactionCanceledException(canceled) = error else { panic!("not cancelled") };
    let reasons = canceled.cancellation_reasons();
    assert_eq!((reasons[0].code(), reasons[1].code()), (Some("None"), Some("ConditionalCheckFailed")));
    assert_eq!(reasons[1].item.as_ref().unwrap()["note"], s("first"));
    assert_eq!(get(&db, "a").await, None);
}

#[tokio::test]
async fn a_transaction_repeated_under_its_token_is_applied_once() {
    let db = engine().await.dynamodb();
    let add = Update::builder().table_name(TABLE).key("id", s("count")).update_expression("ADD amount :one");
    let add = add.expression_attribute_values(":one", n(1)).build().unwrap();
    let action = TransactWriteItem::builder().update(add).build();
    for _ in 0..2 {
        let call = db.transact_write_items().client_request_token("token").transact_items(action.clone());
        call.send().await.unwrap();
    }
    assert_eq!(get(&db, "count").await.unwrap()["amount"], n(1));
    let other = db.transact_write_items().client_request_token("token").transact_items(new("other"));
    let error = other.send().await.unwrap_err().into_service_error();
    assert!(error.is_idempotent_parameter_mismatch_exception(), "{error:?}");
    assert_eq!(get(&db, "other").await, None);
}

fn statement(text: &str, parameters: Vec<AttributeValue>) -> BatchStatementRequest {
    let statement = BatchStatementRequest::builder().statement(text).set_parameters(Some(parameters));
    let all_old = ReturnValuesOnConditionCheckFailure::AllOld;
    statement.return_values_on_condition_check_failure(all_old).build().unwrap()
}

#[tokio::test]
async fn statements_of_a_batch_are_conditional_each_on_its_own() {
    let db = engine().await.dynamodb();
    let insert = |id: &str| {
        let text = format!("INSERT INTO \"{TABLE}\" VALUE {{'id': ?, 'status': ?, 'pending': ?, 'created_at': ?}}");
        statement(&text, vec![s(id), s("created"), s("lane"), n(1)])
    };
    let inserted = db.batch_execute_statement().statements(insert("a")).statements(insert("b")).send().await.unwrap();
    assert!(inserted.responses().iter().all(|response| response.error.is_none()));
    let inserted = db.batch_execute_statement().statements(insert("b")).statements(insert("c")).send().await.unwrap();
    let codes: Vec<_> = inserted.responses().iter().map(|it| it.error.as_ref()?.code.clone()).collect();
    assert_eq!(codes, [Some(BatchStatementErrorCodeEnum::DuplicateItem), None]);

    let claim = |id: &str, batch: &str| {
        let text = format!(
            "UPDATE \"{TABLE}\" SET \"status\" = ? SET \"batch\" = ? REMOVE \"pending\" WHERE \"id\" = ? AND \"status\" = ?"
        );
        statement(&text, vec![s("batched"), s(batch), s(id), s("created")])
    };
    db.batch_execute_statement().statements(claim("a", "mine")).send().await.unwrap();
    let claims = ["a", "b", "never"].map(|id| claim(id, "yours"));
    let claimed = db.batch_execute_statement().set_statements(Some(claims.into())).send().await.unwrap();
    let errors: Vec<_> = claimed.responses().iter().map(|response| response.error.as_ref()).collect();
    let lost = errors[0].unwrap();
    assert_eq!(lost.code, Some(BatchStatementErrorCodeEnum::ConditionalCheckFailed));
    assert_eq!(lost.item.as_ref().unwrap()["batch"], s("mine"));
    assert!(errors[1].is_none());
    assert_eq!(errors[2].unwrap().code, Some(BatchStatementErrorCodeEnum::ConditionalCheckFailed));
    assert_eq!(get(&db, "never").await, None);
}

#[tokio::test]
async fn a_sparse_index_holds_what_has_its_key_in_order_and_in_pages() {
    let db = engine().await.dynamodb();
    for (id, lane, at) in [("c", "lane", 3), ("a", "lane", 1), ("x", "other", 1), ("b", "lane", 2)] {
        put(&db, pending(id, lane, at)).await;
    }
    put(&db, item([("id", s("claimed")), ("created_at", n(0))])).await;
    let query = db.query().table_name(TABLE).index_name("pending").key_condition_expression("#key = :key");
    let query = query.expression_attribute_names("#key", "pending").expression_attribute_values(":key", s("lane"));
    let (mut ids, mut start, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = query.clone().limit(2).set_exclusive_start_key(start).send().await.unwrap();
        ids.extend(page.items().iter().map(|item| item["id"].as_s().unwrap().clone()));
        pages += 1;
        start = page.last_evaluated_key;
        if start.is_none() {
            break;
        }
    }
    assert_eq!((ids, pages), (vec!["a".to_owned(), "b".to_owned(), "c".to_owned()], 2));
    let scan = db.scan().table_name(TABLE).index_name("pending").segment(0).total_segments(1);
    let scanned = scan.send().await.unwrap();
    assert_eq!(scanned.count, 4);
    assert!(!scanned.items()[0].contains_key("status"), "KEYS_ONLY");
}

#[tokio::test]
async fn many_items_are_read_at_once_without_those_that_are_not_there() {
    let db = engine().await.dynamodb();
    put(&db, item([("id", s("a")), ("status", s("created")), ("content", s("long"))])).await;
    let keys = KeysAndAttributes::builder().projection_expression("#a").expression_attribute_names("#a", "status");
    let keys = keys.consistent_read(true).keys(item([("id", s("a"))])).keys(item([("id", s("b"))])).build().unwrap();
    let answer = db.batch_get_item().request_items(TABLE, keys).send().await.unwrap();
    assert_eq!(answer.responses.unwrap()[TABLE], [item([("status", s("created"))])]);
}

#[tokio::test]
async fn what_the_engine_does_not_know_or_refuses_is_an_error_of_the_sdk() {
    let db = engine().await.dynamodb();
    let unknown = db.list_backups().send().await.unwrap_err().into_service_error();
    assert_eq!(unknown.code(), Some("ValidationException"));
    assert!(unknown.message().unwrap().contains("ListBackups"), "{unknown:?}");
    let no_table = db.get_item().table_name("NoSuchTable").key("id", s("a")).send().await.unwrap_err();
    assert_eq!(no_table.into_service_error().code(), Some("ResourceNotFoundException"));
    let reserved = db.update_item().table_name(TABLE).key("id", s("a")).update_expression("SET status = :s");
    let reserved = reserved.expression_attribute_values(":s", s("x")).send().await.unwrap_err().into_service_error();
    assert!(reserved.message().unwrap().contains("reserved keyword"), "{reserved:?}");
    let empty = db.put_item().table_name(TABLE).item("id", s("")).send().await.unwrap_err().into_service_error();
    assert_eq!(empty.code(), Some("ValidationException"));
}

#[tokio::test]
async fn what_has_expired_is_deleted_on_request() {
    let engine = engine().await;
    let db = engine.dynamodb();
    let now = World::system().now().seconds();
    put(&db, item([("id", s("old")), ("ttl", n(now - 60))])).await;
    put(&db, item([("id", s("new")), ("ttl", n(now + 3_600))])).await;
    assert_eq!(engine.expire_items().unwrap(), 1);
    assert_eq!((get(&db, "old").await.is_some(), get(&db, "new").await.is_some()), (false, true));
}
