//! Requests that are lost, and what the SDK makes of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};
use fanfold::clock::World;
use fanfold::config::variables;
use fanfold::store::batches::Batches;
use fanfold_local::{Engine, Fate, Interceptor, Service, ServiceAnswer, ServiceRequest};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::stack::{TABLE, engine, get, item, n, s, url};

/// Gives the next requests these fates, before and after; the others pass.
#[derive(Debug, Default)]
struct Script {
    fates: Mutex<VecDeque<(Fate, Fate)>>,
    now: Mutex<Fate>,
    seen: Mutex<Vec<(Service, String)>>,
}

impl Script {
    fn new(fates: impl IntoIterator<Item = (Fate, Fate)>) -> Arc<Self> {
        Arc::new(Self { fates: Mutex::new(fates.into_iter().collect()), ..Self::default() })
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().iter().map(|(_, operation)| operation.clone()).collect()
    }
}

impl Interceptor for Script {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        self.seen.lock().unwrap().push((call.service, call.operation.clone()));
        let (before, after) = self.fates.lock().unwrap().pop_front().unwrap_or_default();
        *self.now.lock().unwrap() = after;
        async { before }.boxed()
    }

    fn after<'a>(&'a self, _: &'a ServiceRequest, reply: &'a ServiceAnswer) -> BoxFuture<'a, Fate> {
        assert!(!reply.body.is_empty());
        let after = std::mem::take(&mut *self.now.lock().unwrap());
        async { after }.boxed()
    }
}

/// One put of an item that must not be there yet, sent as `script` lets it pass.
async fn put_new(engine: &Engine, script: &Arc<Script>) -> Result<(), PutItemError> {
    let put = engine.with_interceptor(script.clone()).dynamodb().put_item().table_name(TABLE);
    let put = put.item("id", s("a")).item("by", s("me")).condition_expression("attribute_not_exists(id)");
    let put = put.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    put.send().await.map(|_| ()).map_err(|error| error.into_service_error())
}

#[tokio::test(start_paused = true)]
async fn a_request_lost_on_its_way_is_sent_again() {
    let (engine, script) = (engine().await, Script::new([(Fate::Lost, Fate::Pass)]));
    put_new(&engine, &script).await.unwrap();
    assert_eq!(script.seen(), ["PutItem", "PutItem"]);
    assert!(get(&engine.dynamodb(), "a").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_answer_is_lost_is_applied_once_and_then_meets_itself() {
    let (engine, script) = (engine().await, Script::new([(Fate::Pass, Fate::Lost)]));
    let PutItemError::ConditionalCheckFailedException(refused) = put_new(&engine, &script).await.unwrap_err() else {
        panic!("not refused")
    };
    assert_eq!(refused.item.unwrap()["by"], s("me"));
    assert_eq!(script.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_whose_answer_is_lost_is_applied_once() {
    let (engine, script) = (engine().await, Script::new([(Fate::Pass, Fate::Lost)]));
    let add = Update::builder().table_name(TABLE).key("id", s("count")).update_expression("ADD amount :one");
    let add = add.expression_attribute_values(":one", n(1)).build().unwrap();
    let action = TransactWriteItem::builder().update(add).build();
    let faulty = engine.with_interceptor(script.clone());
    faulty.dynamodb().transact_write_items().transact_items(action).send().await.unwrap();
    assert_eq!(script.seen().len(), 2);
    assert_eq!(get(&engine.dynamodb(), "count").await.unwrap()["amount"], n(1));
    assert_eq!((faulty.usage().dynamodb_requests, faulty.usage().write_units), (2, 2.0));
}

#[tokio::test(start_paused = true)]
async fn throttling_is_tried_again_and_a_refusal_is_not() {
    let engine = engine().await;
    let answered = |kind| Fate::Answered(ServiceAnswer::error(400, kind, "says the test"));
    let throttled = Script::new([(answered("ProvisionedThroughputExceededException"), Fate::Pass)]);
    put_new(&engine, &throttled).await.unwrap();
    assert_eq!(throttled.seen().len(), 2);
    let refused = Script::new([(answered("AccessDeniedException"), Fate::Pass)]);
    let error = put_new(&engine, &refused).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (Some("AccessDeniedException"), Some("says the test")));
    assert_eq!(refused.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_replaced_after_the_request_was_applied() {
    let engine = engine().await;
    let refused = Fate::Answered(ServiceAnswer::error(400, "AccessDeniedException", "says the test"));
    put_new(&engine, &Script::new([(Fate::Pass, refused)])).await.unwrap_err();
    assert_eq!(get(&engine.dynamodb(), "a").await, Some(item([("id", s("a")), ("by", s("me"))])));
}

#[tokio::test(start_paused = true)]
async fn a_send_whose_answer_is_lost_sends_twice() {
    let (engine, script) = (engine().await, Script::new([(Fate::Pass, Fate::Lost)]));
    let sqs = engine.with_interceptor(script.clone()).sqs();
    sqs.send_message().queue_url(url("WorkQueue")).message_body("x").send().await.unwrap();
    assert_eq!(engine.backlog(&url("WorkQueue")).await.unwrap().visible, 2);
    let sqs = (Service::Sqs, "SendMessage".to_owned());
    assert_eq!(*script.seen.lock().unwrap(), [sqs.clone(), sqs]);
}

#[tokio::test(start_paused = true)]
async fn faults_of_one_client_do_not_use_up_the_retries_of_another() {
    let engine = engine().await;
    let starved = engine.with_interceptor(Script::new(vec![(Fate::Lost, Fate::Pass); 1_000])).dynamodb();
    for _ in 0..60 {
        starved.get_item().table_name(TABLE).key("id", s("a")).send().await.unwrap_err();
    }
    put_new(&engine, &Script::new([(Fate::Lost, Fate::Pass)])).await.unwrap();
}

#[tokio::test]
async fn an_interceptor_sees_what_steps_ask() {
    let (engine, script) = (engine().await, Script::new([]));
    let seen = |engine: Engine| async move {
        let look_up = |name: &str| (name == variables::BATCHES_TABLE).then(|| TABLE.to_owned());
        let surroundings = engine.surroundings(World::system(), look_up);
        let things = Batches::new(surroundings.table(variables::BATCHES_TABLE).unwrap());
        assert!(things.get_many(&[World::system().uuid()]).await.unwrap().is_empty());
        engine.usage().dynamodb_requests
    };
    let requests = seen(engine.with_interceptor(script.clone())).await;
    assert_eq!((requests, script.seen()), (1, vec!["BatchGetItem".to_owned()]));
    let requests = seen(engine.metered_apart()).await;
    assert_eq!((requests, script.seen().len(), engine.usage().dynamodb_requests), (1, 1, 0));
}
