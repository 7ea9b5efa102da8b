//! A small stack to test with.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use fanfold_local::{Engine, Template};

pub(crate) type Item = HashMap<String, AttributeValue>;

/// The name of the table.
pub(crate) const TABLE: &str = "ThingsTable";

const TEMPLATE: &str = "
Resources:
  ThingsTable:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions:
        - {AttributeName: id, AttributeType: S}
        - {AttributeName: pending, AttributeType: S}
        - {AttributeName: created_at, AttributeType: N}
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      GlobalSecondaryIndexes:
        - IndexName: pending
          KeySchema:
            - {AttributeName: pending, KeyType: HASH}
            - {AttributeName: created_at, KeyType: RANGE}
          Projection: {ProjectionType: KEYS_ONLY}
      TimeToLiveSpecification: {AttributeName: ttl, Enabled: true}
  WorkQueue:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 60
      RedrivePolicy: {deadLetterTargetArn: !GetAtt DeadQueue.Arn, maxReceiveCount: 3}
  DeadQueue:
    Type: AWS::SQS::Queue
  WorkFunction:
    Type: AWS::Serverless::Function
    Properties:
      Timeout: 10
      Events:
        Work:
          Type: SQS
          Properties:
            Queue: !GetAtt WorkQueue.Arn
            FunctionResponseTypes: [ReportBatchItemFailures]
";

pub(crate) fn template() -> Template {
    Template::parse(TEMPLATE).unwrap()
}

/// An engine with the stack in it.
pub(crate) async fn engine() -> Engine {
    let engine = Engine::memory().unwrap();
    engine.provision(&template()).await.unwrap();
    engine
}

/// The URL of one of the stack's queues.
pub(crate) fn url(queue: &str) -> String {
    template().queue(queue).unwrap().url()
}

pub(crate) fn s(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

pub(crate) fn n(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(crate) fn item<const N: usize>(attributes: [(&str, AttributeValue); N]) -> Item {
    attributes.map(|(name, value)| (name.to_owned(), value)).into()
}

/// A thing nobody has claimed, so it is in the index.
pub(crate) fn pending(id: &str, lane: &str, created_at: u64) -> Item {
    item([("id", s(id)), ("status", s("created")), ("pending", s(lane)), ("created_at", n(created_at))])
}

/// Stores an item.
pub(crate) async fn put(db: &aws_sdk_dynamodb::Client, item: Item) {
    db.put_item().table_name(TABLE).set_item(Some(item)).send().await.unwrap();
}

/// Reads an item, strongly consistent.
pub(crate) async fn get(db: &aws_sdk_dynamodb::Client, id: &str) -> Option<Item> {
    let get = db.get_item().table_name(TABLE).key("id", s(id)).consistent_read(true);
    get.send().await.unwrap().item
}
