//! Reading SAM templates.

use std::time::Duration;

use fanfold_local::{EventSource, Index, Key, Projection, Route, Schedule, TableResource, Template};

const SMALL: &str = r#"
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  Stage: {Type: String, Default: dev}
  Concurrency: {Type: Number, Default: 7}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
  IsDev: !Not [!Condition IsProd]
  Never: !And [!Condition IsProd, !Condition IsDev]
  Always: !Or [!Condition IsProd, !Condition IsDev]
Globals:
  Function:
    Timeout: 20
    Environment:
      Variables: {STAGE: !Ref Stage, LEVEL: info}
Resources:
  On:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions:
        - {AttributeName: id, AttributeType: S}
        - {AttributeName: at, AttributeType: "N"}
      KeySchema: [{AttributeName: id, KeyType: HASH}, {AttributeName: at, KeyType: RANGE}]
      GlobalSecondaryIndexes:
        - IndexName: by-at
          KeySchema: [{AttributeName: at, KeyType: HASH}]
          Projection: {ProjectionType: KEYS_ONLY}
      TimeToLiveSpecification: {AttributeName: ttl, Enabled: true}
  Work:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: !If [IsProd, 600, 120]
      DelaySeconds: !If [IsProd, 5, !Ref "AWS::NoValue"]
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: "5"}
  Dead:
    Type: AWS::SQS::Queue
  OnlyInProd:
    Type: AWS::SQS::Queue
    Condition: IsProd
  Impossible:
    Type: AWS::SQS::Queue
    Condition: Never
  Worker:
    Type: AWS::Serverless::Function
    Condition: Always
    Properties:
      Environment:
        Variables:
          LEVEL: debug
          TABLE: !Ref On
          QUEUE_URL: !Ref Work
          QUEUE_NAME: !GetAtt Work.QueueName
          TEXT: !Sub "${Stage}/${Dead.Arn}/${!literal}/${AWS::Region}"
          OTHER: !Sub ["${a}-${b}", {a: !Ref Stage, b: 1}]
          JOINED: !Join ["|", [a, !Ref Concurrency, !Ref On]]
          FLAG: true
      Events:
        Queue:
          Type: SQS
          Properties:
            Queue: !GetAtt Work.Arn
            BatchSize: 500
            MaximumBatchingWindowInSeconds: 3
            FunctionResponseTypes: [ReportBatchItemFailures]
            ScalingConfig: {MaximumConcurrency: !Ref Concurrency}
        Other: {Type: SQS, Properties: {Queue: !GetAtt Dead.Arn, Enabled: false}}
        Minute: {Type: Schedule, Properties: {Schedule: rate(1 minute)}}
        Hour: {Type: ScheduleV2, Properties: {ScheduleExpression: rate(1 hour), State: DISABLED}}
        Get: {Type: HttpApi, Properties: {Method: get, Path: "/things/{id}"}}
  Slow:
    Type: AWS::Serverless::Function
    Properties: {Timeout: 900}
  Api:
    Type: AWS::Serverless::HttpApi
"#;

#[test]
fn tables_queues_and_functions_are_read() {
    let template = Template::parse(SMALL).unwrap();
    let table = TableResource {
        name: "On".to_owned(),
        key: Key { hash: "id".to_owned(), range: Some("at".to_owned()) },
        indexes: vec![Index {
            name: "by-at".to_owned(),
            key: Key { hash: "at".to_owned(), range: None },
            projection: Projection::KeysOnly,
        }],
        attributes: vec![("at".to_owned(), "N".to_owned()), ("id".to_owned(), "S".to_owned())],
        ttl: Some("ttl".to_owned()),
    };
    assert_eq!(template.tables().collect::<Vec<_>>(), [&table]);
    let names: Vec<&str> = template.queues().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["Dead", "Work"]);
    let work = template.queue("Work").unwrap();
    assert_eq!((work.visibility_timeout, work.delay), (120, 0));
    let redrive = work.redrive.as_ref().unwrap();
    assert_eq!((redrive.queue.as_str(), redrive.max_receive_count), ("Dead", 5));
    assert_eq!(template.queue("Dead").unwrap().visibility_timeout, 30);
    assert_eq!(template.queue("OnlyInProd"), None);
    let timeouts: Vec<_> = template.functions().map(|it| (it.name.as_str(), it.timeout.as_secs())).collect();
    assert_eq!(timeouts, [("Slow", 900), ("Worker", 20)]);
}

#[test]
fn the_environment_is_resolved() {
    let template = Template::parse(SMALL).unwrap();
    let environment = template.environment("Worker").unwrap();
    let url = template.queue("Work").unwrap().url();
    let expected = [
        ("FLAG", "true"),
        ("JOINED", "a|7|On"),
        ("LEVEL", "debug"),
        ("OTHER", "dev-1"),
        ("QUEUE_NAME", "Work"),
        ("QUEUE_URL", &url),
        ("STAGE", "dev"),
        ("TABLE", "On"),
        ("TEXT", "dev/arn:aws:sqs:us-east-1:000000000000:Dead/${literal}/us-east-1"),
    ];
    let found: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(found, expected);
    assert_eq!(template.environment("Slow").unwrap().len(), 2);
    assert_eq!(template.environment("NoSuchFunction"), None);
}

#[test]
fn events_are_read() {
    let template = Template::parse(SMALL).unwrap();
    let [other, queue] = template.event_sources() else { panic!("two event sources") };
    let expected = EventSource {
        function: "Worker".to_owned(),
        queue: "Work".to_owned(),
        queue_url: template.queue("Work").unwrap().url(),
        batch_size: 500,
        window: Duration::from_secs(3),
        maximum_concurrency: Some(7),
        reports_failures: true,
        enabled: true,
        timeout: Duration::from_secs(20),
        memory: 128,
    };
    assert_eq!(queue, &expected);
    assert_eq!((other.batch_size, other.enabled, other.reports_failures), (10, false, false));
    assert_eq!((other.maximum_concurrency, other.window), (None, Duration::ZERO));
    let schedule = |expression: &str, enabled| Schedule {
        function: "Worker".to_owned(),
        expression: expression.to_owned(),
        enabled,
    };
    assert_eq!(template.schedules(), [schedule("rate(1 hour)", false), schedule("rate(1 minute)", true)]);
    let route = Route { function: "Worker".to_owned(), method: "GET".to_owned(), path: "/things/{id}".to_owned() };
    assert_eq!(template.routes(), [route]);
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn every_error_names_the_resource_and_the_property() {
    let cases = [
        ("VisibilityTimeout: !If [IsProd, 600, 120]", "VisibilityTimeout: 43201", "Work: VisibilityTimeout: must be"),
        ("maxReceiveCount: \"5\"", "maxReceiveCount: many", "Work: RedrivePolicy.maxReceiveCount: must be"),
        (
            "!GetAtt Dead.Arn, maxReceiveCount: \"5\"",
            "!GetAtt Dead.Arn",
            "Work: RedrivePolicy.maxReceiveCount is missing",
        ),
        (
            "deadLetterTargetArn: !GetAtt Dead.Arn",
            "deadLetterTargetArn: !GetAtt Gone.Arn",
            "Work: RedrivePolicy.deadLetterTargetArn: there is no resource Gone",
        ),
        (
            "deadLetterTargetArn: !GetAtt Dead.Arn",
            "deadLetterTargetArn: dead",
            "Work: RedrivePolicy.deadLetterTargetArn: must be the ARN",
        ),
        ("Queue: !GetAtt Work.Arn", "Queue: arn:aws:sqs:us-east-1:000000000000:Gone", "Worker: queue Gone is missing"),
        ("BatchSize: 500", "BatchSize: 10001", "Worker: Events.Queue.Properties.BatchSize: must be"),
        (
            "MaximumBatchingWindowInSeconds: 3",
            "MaximumBatchingWindowInSeconds: 0",
            "Worker: Events.Queue.Properties.BatchSize: more than 10",
        ),
        ("BatchSize: 500", "BatchSise: 500", "Worker: Events.Queue.Properties.BatchSise: "),
        ("[ReportBatchItemFailures]", "[Report]", "Worker: Events.Queue.Properties.FunctionResponseTypes.0: must be"),
        (
            "{MaximumConcurrency: !Ref Concurrency}",
            "{MaximumConcurrency: 1}",
            "Worker: Events.Queue.Properties.ScalingConfig.MaximumConcurrency: must be",
        ),
        (
            "Type: HttpApi, Properties: {Method: get, ",
            "Type: HttpApi, Properties: {",
            "Worker: Events.Get.Properties.Method is missing",
        ),
        ("{Type: Schedule,", "{Type: Kinesis,", "Worker: Events.Minute.Type: event Minute has a type"),
        (
            "TABLE: !Ref On",
            "TABLE: !Ref Off",
            "Worker: Environment.Variables.TABLE: there is no parameter or resource Off",
        ),
        (
            "!GetAtt Work.QueueName",
            "!GetAtt Work.Size",
            "Worker: Environment.Variables.QUEUE_NAME: the local runner does not know the attribute Size",
        ),
        (
            "!Join [\"|\"",
            "!Split [\"|\"",
            "Worker: Environment.Variables.JOINED: the local runner does not know the function Fn::Split",
        ),
        ("FLAG: true", "FLAG: [true]", "Worker: Environment.Variables.FLAG: must be"),
        ("${Stage}/", "${Stage/", "Worker: Environment.Variables.TEXT: "),
        ("{Timeout: 900}", "{Timeout: 901}", "Slow: Timeout: must be"),
        ("Timeout: 20", "Timeout: 0", "Globals: Function.Timeout: must be"),
        ("Condition: Always", "Condition: Sometimes", "Worker: Condition: there is no condition Sometimes"),
        (
            "ProjectionType: KEYS_ONLY",
            "ProjectionType: SOME",
            "On: GlobalSecondaryIndexes.0.Projection.ProjectionType: must be",
        ),
        ("{AttributeName: id, KeyType: HASH}, ", "", "On: KeySchema: must have a HASH key"),
        ("Enabled: true}", "Enabled: maybe}", "On: TimeToLiveSpecification.Enabled: must be true or false"),
    ];
    for (old, new, expected) in cases {
        assert!(SMALL.contains(old), "{old}");
        let error = Template::parse(&SMALL.replacen(old, new, 1)).unwrap_err().to_string();
        assert!(error.contains(expected), "{new}\n  expected {expected}\n  found    {error}");
    }
}

#[test]
fn what_is_no_template_is_refused() {
    for (text, expected) in [("a: [1", "cannot be read"), ("Resources: [1]", "template: Resources: must be a map")] {
        let error = Template::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let loops = "Conditions: {A: !Condition B, B: !Not [!Condition A]}\n\
                 Resources: {Q: {Type: 'AWS::SQS::Queue', Condition: A}}";
    let error = Template::parse(loops).unwrap_err().to_string();
    assert!(error.contains("Q: Condition: condition A depends on itself"), "{error}");
    let fifo = "Resources: {Q: {Type: 'AWS::SQS::Queue', Properties: {FifoQueue: true}}}";
    assert!(Template::parse(fifo).unwrap_err().to_string().contains("Q: FifoQueue: "));
}

#[test]
fn the_stack_itself_is_read() {
    let template = Template::parse(include_str!("../../../template.yaml")).unwrap();
    let tables: Vec<&str> = template.tables().map(|table| table.name.as_str()).collect();
    let expected =
        ["BatchesTable", "FanoutsTable", "GroupsTable", "LocksTable", "PoliciesTable", "ProducersTable", "TasksTable"];
    assert_eq!(tables, expected);
    let mut steps: Vec<(&str, &str)> =
        template.event_sources().iter().map(|source| (source.function.as_str(), source.queue.as_str())).collect();
    steps.sort_unstable();
    let names = ["Ack", "Elect", "Group", "Handle", "Notify", "Produce", "Register"];
    let expected = names.map(|name| (format!("{name}Function"), format!("{name}Queue")));
    assert_eq!(steps, expected.each_ref().map(|(function, queue)| (function.as_str(), queue.as_str())));
    assert_eq!(template.schedules().iter().map(|it| it.function.as_str()).collect::<Vec<_>>(), ["SweepFunction"]);
    assert!(template.routes().iter().any(|route| route.method == "POST" && route.path == "/fanouts"));
    for source in template.event_sources() {
        assert!(source.reports_failures, "{} would lose what its step could not do", source.function);
        let queue = template.queue(&source.queue).unwrap();
        let least = 6 * source.timeout.as_secs();
        assert!(u64::from(queue.visibility_timeout) >= least, "{} hides messages less than {least} s", queue.name);
        assert!(queue.redrive.as_ref().unwrap().max_receive_count >= 5, "{}", queue.name);
    }
    for function in template.functions() {
        for (name, value) in &function.environment {
            if name.ends_with("_QUEUE_URL") {
                assert!(template.queues().any(|queue| queue.url() == *value), "{}: {name}", function.name);
            }
        }
    }
}
