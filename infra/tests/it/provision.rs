//! Making the tables and queues of a template.

use fanfold_local::{Engine, EngineError, Template};

use crate::stack::{get, item, put, s, template};

fn parse(properties: &str) -> Template {
    let head = "Resources:\n  ThingsTable:\n    Type: AWS::DynamoDB::Table\n    Properties:\n";
    Template::parse(&format!("{head}{properties}")).unwrap()
}

const PLAIN: &str = "
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}, {AttributeName: lane, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      GlobalSecondaryIndexes:
        - IndexName: by-lane
          KeySchema: [{AttributeName: lane, KeyType: HASH}]
          Projection: {ProjectionType: INCLUDE, NonKeyAttributes: [b, a]}
";

#[tokio::test]
async fn what_is_there_already_stays() {
    let engine = Engine::memory().unwrap();
    engine.provision(&template()).await.unwrap();
    put(&engine.dynamodb(), item([("id", s("a"))])).await;
    engine.provision(&template()).await.unwrap();
    assert!(get(&engine.dynamodb(), "a").await.is_some());
    let tables = engine.dynamodb().list_tables().send().await.unwrap().table_names.unwrap();
    assert_eq!(tables, ["ThingsTable"]);
    let queues = engine.sqs().list_queues().send().await.unwrap().queue_urls.unwrap();
    assert_eq!(queues, template().queues().map(|queue| queue.url()).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_same_definition_in_another_order_is_the_same() {
    let engine = Engine::memory().unwrap();
    engine.provision(&parse(PLAIN)).await.unwrap();
    engine.provision(&parse(&PLAIN.replace("[b, a]", "[a, b]"))).await.unwrap();
}

#[tokio::test]
async fn another_definition_is_an_error_that_names_both() {
    let changes = [
        ("KeySchema: [{AttributeName: id", "KeySchema: [{AttributeName: lane", "KeySchema"),
        ("AttributeName: lane, AttributeType: S", "AttributeName: lane, AttributeType: N", "AttributeDefinitions"),
        ("KeySchema: [{AttributeName: lane", "KeySchema: [{AttributeName: id", "GlobalSecondaryIndexes"),
        ("INCLUDE, NonKeyAttributes: [b, a]", "ALL", "GlobalSecondaryIndexes"),
        ("IndexName: by-lane", "IndexName: by-other", "GlobalSecondaryIndexes"),
    ];
    for (old, new, part) in changes {
        let engine = Engine::memory().unwrap();
        engine.provision(&parse(PLAIN)).await.unwrap();
        assert!(PLAIN.contains(old), "{old}");
        let error = engine.provision(&parse(&PLAIN.replacen(old, new, 1))).await.unwrap_err();
        assert!(matches!(error, EngineError::Table { .. }), "{error}");
        let text = error.to_string();
        assert!(text.starts_with("table ThingsTable: ") && text.contains(part), "{new}: {text}");
    }
}

#[tokio::test]
async fn a_queue_with_other_settings_is_an_error() {
    let queue = |seconds| {
        let text = format!(
            "Resources: {{WorkQueue: {{Type: 'AWS::SQS::Queue', Properties: {{VisibilityTimeout: {seconds}}}}}}}"
        );
        Template::parse(&text).unwrap()
    };
    let engine = Engine::memory().unwrap();
    engine.provision(&queue(30)).await.unwrap();
    let error = engine.provision(&queue(31)).await.unwrap_err();
    assert!(matches!(error, EngineError::Queue { .. }), "{error}");
    assert!(error.to_string().contains("WorkQueue") && error.to_string().contains("VisibilityTimeout"), "{error}");
}

#[tokio::test]
async fn a_table_the_database_refuses_is_an_error_with_its_name() {
    let text = "
Resources:
  Things:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: other, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
";
    let error = Engine::memory().unwrap().provision(&Template::parse(text).unwrap()).await.unwrap_err();
    assert!(error.to_string().starts_with("table Things: "), "{error}");
}
