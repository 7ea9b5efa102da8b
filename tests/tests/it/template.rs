//! What `template.yaml` must say for nothing to be lost, and for every function to find what it needs. What functions are
//! allowed is compared with what they do in the simulation's tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use fanfold::clock::World;
use fanfold::config::{Surroundings, variables};
use fanfold_http_client::Guard;
use fanfold_local::{Engine, Template};
use fanfold_stack::{Outside, Steps};
use serde_json::{Value, json};

pub(crate) const TEXT: &str = include_str!("../../../template.yaml");

/// The largest batch that Lambda takes from a queue without a batch window.
const BATCH_WITHOUT_WINDOW: usize = 10;

fn template() -> Template {
    Template::parse(TEXT).unwrap()
}

/// The properties of all resources of a type, by logical id.
pub(crate) fn resources(kind: &str) -> BTreeMap<String, Value> {
    let document = Template::document(TEXT).unwrap();
    let all: BTreeMap<String, Value> = serde_json::from_value(document["Resources"].clone()).unwrap();
    let of_kind = all.into_iter().filter(|(_, resource)| resource["Type"] == kind);
    let found: BTreeMap<_, _> = of_kind.map(|(name, resource)| (name, resource["Properties"].clone())).collect();
    assert!(!found.is_empty(), "there is no {kind}");
    found
}

/// AWS asks for six times the function's time-out and the batch window on top, so that messages that wait for a free worker do
/// not come again meanwhile.
#[test]
fn messages_are_hidden_six_times_as_long_as_their_function_may_take() {
    let template = template();
    assert_eq!(template.event_sources().len(), 7);
    for source in template.event_sources() {
        let queue = template.queue(&source.queue).unwrap();
        let least = 6 * source.timeout + source.window;
        let hidden = std::time::Duration::from_secs(queue.visibility_timeout.into());
        assert!(hidden >= least, "{} hides messages for {hidden:?}, not {least:?}", queue.name);
    }
}

#[test]
fn large_batches_have_a_window_and_every_source_reports_failures() {
    let template = template();
    for source in template.event_sources() {
        let windowed = source.batch_size <= BATCH_WITHOUT_WINDOW || !source.window.is_zero();
        assert!(windowed, "{}: batches of {} without a window", source.function, source.batch_size);
        assert!(source.reports_failures, "{}: one bad message would repeat all", source.function);
        assert!(source.maximum_concurrency.is_some_and(|most| most >= 2), "{} has no bound", source.function);
    }
}

/// What is in no table is kept as long as SQS keeps anything: dead letters, notices, and what users have sent.
const KEPT: u32 = 1_209_600;

/// Every queue that a function reads has a dead-letter queue of its own, and nothing is given up before five deliveries.
#[test]
fn every_queue_that_is_read_has_a_dead_letter_queue() {
    let template = template();
    let mut dead = BTreeSet::new();
    for source in template.event_sources() {
        let redrive = template.queue(&source.queue).unwrap().redrive.clone().unwrap();
        assert!(redrive.max_receive_count >= 5, "{}", source.queue);
        assert!(dead.insert(redrive.queue.clone()), "{} is shared", redrive.queue);
    }
    let kept = resources("AWS::SQS::Queue");
    let read: BTreeSet<String> = template.event_sources().iter().map(|source| source.queue.clone()).collect();
    for (name, properties) in &kept {
        if !read.contains(name) || ["RegisterQueue", "AckQueue"].contains(&name.as_str()) {
            assert_eq!(properties["MessageRetentionPeriod"], KEPT, "{name}");
        }
        assert!(read.contains(name) || dead.contains(name) || name == "NoticesQueue", "{name} belongs to no step");
    }
}

/// SAM lets a queue's function receive and delete the messages of every queue there is; each denies itself the others'.
#[test]
fn a_function_reads_no_queue_but_its_own() {
    let functions = resources("AWS::Serverless::Function");
    for source in template().event_sources() {
        let policies = functions[&source.function]["Policies"].as_array().unwrap();
        let mut statements = policies.iter().filter_map(|policy| policy["Statement"].as_array()).flatten();
        let denied = json!({
            "Effect": "Deny",
            "Action": ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"],
            "NotResource": {"Fn::GetAtt": format!("{}.Arn", source.queue)},
        });
        assert!(statements.any(|statement| *statement == denied), "{} may read other queues", source.function);
    }
}

/// The function that has what a condition allows.
fn function_of(condition: &str) -> &'static str {
    match condition {
        "AllowsDevSessions" | "CallsFunctions" | "CallsQueues" | "FetchesSecrets" => "HandleFunction",
        _ if condition.starts_with("Sends") || condition.starts_with("CallsBack") => "NotifyFunction",
        _ => "ProduceFunction",
    }
}

/// What functions are granted under a condition, by the condition.
fn granted_by_condition() -> BTreeMap<String, Value> {
    let mut granted = BTreeMap::new();
    for (name, function) in resources("AWS::Serverless::Function") {
        let policies = function["Policies"].as_array().cloned().unwrap_or_default();
        for statement in policies.iter().filter_map(|policy| policy["Statement"].as_array()).flatten() {
            let parts = statement["Fn::If"].as_array().map(Vec::as_slice);
            let Some([condition, statement, otherwise]) = parts else { continue };
            let condition = condition.as_str().unwrap();
            let function = function_of(condition);
            assert_eq!((name.as_str(), otherwise), (function, &json!({"Ref": "AWS::NoValue"})));
            let resource = match &statement["Resource"]["Fn::Split"] {
                Value::Null => statement["Resource"].clone(),
                split => split[1]["Ref"].clone(),
            };
            granted.insert(condition.to_owned(), resource);
        }
    }
    granted
}

/// Beside what a stack needs for itself, only what parameters name: by default nothing.
#[test]
fn destinations_and_sources_of_the_users_are_reached_only_if_parameters_say_so() {
    let document = Template::document(TEXT).unwrap();
    let mut granted = granted_by_condition();
    let named = [
        ("AsksFunctions", "SourceFunctionArns"),
        ("ListsBuckets", "SourceBucketArns"),
        ("ReadsObjects", "SourceObjectArns"),
        ("CallsBackDurableFunctions", "NoticeDurableFunctionArns"),
        ("CallsFunctions", "BatchApiFunctionArns"),
        ("CallsQueues", "BatchApiQueueArns"),
        ("FetchesSecrets", "BatchApiSecretArns"),
        ("SendsToEventBuses", "NoticeEventBusArns"),
        ("SendsToQueues", "NoticeQueueArns"),
    ];
    let dev = granted.remove("AllowsDevSessions").unwrap();
    let queues = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-dev-*";
    assert_eq!(dev, json!({ "Fn::Sub": queues }), "queues of dev sessions of this stack");
    let given = json!({"Fn::Equals": [{"Ref": "DevSessions"}, "yes"]});
    assert_eq!(document["Conditions"]["AllowsDevSessions"], given);
    assert_eq!(document["Parameters"]["DevSessions"]["Default"], "no");
    for (condition, parameter) in named {
        let given = json!({"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]});
        assert_eq!(
            (&document["Conditions"][condition], &granted.remove(condition).unwrap()),
            (&given, &json!(parameter))
        );
        assert_eq!(document["Parameters"][parameter]["Default"], "");
    }
    let handle = resources("AWS::Serverless::Function").remove("HandleFunction").unwrap();
    let managed = json!({"Fn::If": ["CallsAws", {"Ref": "BatchApiPolicyArn"}, {"Ref": "AWS::NoValue"}]});
    assert!(handle["Policies"].as_array().unwrap().contains(&managed));
    let given = json!({"Fn::Not": [{"Fn::Equals": [{"Ref": "BatchApiPolicyArn"}, ""]}]});
    assert_eq!(
        (&document["Conditions"]["CallsAws"], &document["Parameters"]["BatchApiPolicyArn"]["Default"]),
        (&given, &json!(""))
    );
    let given = json!({"Fn::Equals": [{"Ref": "NoticeTaskTokens"}, "yes"]});
    assert_eq!(document["Conditions"]["CallsBackTasks"], given);
    assert_eq!(document["Parameters"]["NoticeTaskTokens"]["Default"], "no");
    assert_eq!(granted, BTreeMap::from([("CallsBackTasks".to_owned(), json!("*"))]));
}

/// A dead letter waits for an operator: its queue has an alarm.
#[test]
fn every_queue_of_dead_letters_has_an_alarm() {
    let alarms = resources("AWS::CloudWatch::Alarm");
    let queues = resources("AWS::SQS::Queue").into_iter().filter(|(name, _)| name.ends_with("DeadLetterQueue"));
    let queues: Vec<String> = queues.map(|(name, _)| name).collect();
    assert_eq!(queues.len(), 7);
    for queue in queues {
        let alarm = &alarms[&queue.replace("Queue", "Alarm")];
        let dimension = json!([{"Name": "QueueName", "Value": {"Fn::GetAtt": format!("{queue}.QueueName")}}]);
        assert_eq!((&alarm["Dimensions"], &alarm["Namespace"]), (&dimension, &json!("AWS/SQS")), "{queue}");
        assert_eq!(
            [&alarm["MetricName"], &alarm["ComparisonOperator"], &alarm["Threshold"]],
            [&json!("ApproximateNumberOfMessagesVisible"), &json!("GreaterThanThreshold"), &json!(0)],
            "{queue}"
        );
    }
}

/// Queues and tables are encrypted by keys of AWS, or by the key that a parameter names, which every function may use.
#[test]
fn everything_is_encrypted() {
    let (key, none) = (json!({"Ref": "KmsKeyArn"}), json!({"Ref": "AWS::NoValue"}));
    for (name, properties) in resources("AWS::SQS::Queue") {
        assert_eq!(properties["SqsManagedSseEnabled"], json!({"Fn::If": ["HasKey", none, true]}), "{name}");
        assert_eq!(properties["KmsMasterKeyId"], json!({"Fn::If": ["HasKey", key, none]}), "{name}");
    }
    let by_key = json!({"SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": key});
    for (name, properties) in resources("AWS::DynamoDB::Table") {
        assert_eq!(properties["SSESpecification"], json!({"Fn::If": ["HasKey", by_key, none]}), "{name}");
        assert_eq!(properties["BillingMode"], "PAY_PER_REQUEST", "{name}");
    }
    for (name, function) in resources("AWS::Serverless::Function") {
        let policy = json!({"Fn::If": ["HasKey", {"Ref": "KeyPolicy"}, none]});
        assert!(function["Policies"].as_array().unwrap().contains(&policy), "{name}");
    }
}

/// What is in no other place stays when the stack is deleted.
#[test]
fn data_is_kept() {
    let document = Template::document(TEXT).unwrap();
    let tables = resources("AWS::DynamoDB::Table").into_keys();
    for name in tables.chain(["NoticesQueue".to_owned()]) {
        let resource = &document["Resources"][&name];
        assert_eq!(
            (&resource["DeletionPolicy"], &resource["UpdateReplacePolicy"]),
            (&json!("RetainExceptOnCreate"), &json!("Retain")),
            "{name}"
        );
    }
}

/// The API for tokens sends each request to the function that the signed API sends it to. Outcomes come to the latter, without
/// either.
#[test]
fn both_apis_have_the_same_routes() {
    let routes: BTreeMap<String, String> = resources("AWS::ApiGatewayV2::Route")
        .into_values()
        .map(|route| {
            assert_eq!(
                (&route["AuthorizationType"], &route["AuthorizerId"]),
                (&json!("JWT"), &json!({"Ref": "JwtAuthorizer"}))
            );
            let target = route["Target"]["Fn::Sub"].as_str().unwrap();
            let function = target.trim_start_matches("integrations/${JwtTo").trim_end_matches('}');
            (route["RouteKey"].as_str().unwrap().to_owned(), format!("{function}Function"))
        })
        .collect();
    for route in template().routes().iter().filter(|route| route.function != "HandleFunction") {
        let key = format!("{} {}", route.method, route.path);
        let function = routes.get(&key).unwrap_or(&routes["$default"]);
        assert_eq!(*function, route.function, "{key}");
    }
}

/// SAM lets functions that may be in a VPC use EC2, for Lambda's own requests. Those of their code are denied.
#[test]
fn no_code_may_use_ec2() {
    let code = "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:*";
    let of_code = json!({"ArnLike": {"lambda:SourceFunctionArn": {"Fn::Sub": code}}});
    let denied = json!({"Effect": "Deny", "Action": ["ec2:*"], "Resource": "*", "Condition": of_code});
    let denied = json!({"Statement": [denied]});
    let mut within = Vec::new();
    for (name, function) in resources("AWS::Serverless::Function") {
        if function["VpcConfig"] != Value::Null {
            assert!(function["Policies"].as_array().unwrap().contains(&denied), "{name}");
            within.push(name);
        }
    }
    assert_eq!(within, ["HandleFunction", "NotifyFunction", "ProduceFunction"]);
}

/// Lambda repeats an asynchronous invocation that failed, unless it is told not to: then several sweeps would follow one another.
#[test]
fn a_sweep_that_fails_is_not_repeated() {
    let sweep = resources("AWS::Serverless::Function").remove("SweepFunction").unwrap();
    assert_eq!(sweep["EventInvokeConfig"], json!({"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}));
    assert_eq!(sweep["Events"]["EveryMinute"]["Properties"]["RetryPolicy"], json!({"MaximumRetryAttempts": 0}));
}

/// Lines of each invocation that begins and ends would cost as much as its metrics.
#[test]
fn lambda_logs_only_what_goes_wrong() {
    let document = Template::document(TEXT).unwrap();
    assert_eq!(document["Globals"]["Function"]["LoggingConfig"]["SystemLogLevel"], "WARN");
}

#[tokio::test]
async fn every_variable_that_the_code_reads_is_given_and_no_other() {
    let template = template();
    assert_eq!(template.functions().count(), 9);
    let engine = Engine::memory().unwrap();
    let read = Arc::new(Mutex::new(BTreeMap::<String, BTreeSet<String>>::new()));
    let surroundings = |function: &str| {
        let (function, environment) = (function.to_owned(), template.environment(function).unwrap());
        let seen = Arc::clone(&read);
        let lookup = move |name: &str| {
            seen.lock().unwrap().entry(function.clone()).or_default().insert(name.to_owned());
            environment.get(name).cloned()
        };
        Surroundings::new(engine.dynamodb(), engine.sqs(), World::system(), lookup)
    };
    let of_produce = surroundings("ProduceFunction");
    let guard = Guard::deployed(&of_produce);
    let sources = Arc::new(fanfold_produce::AllSources::from_environment(&of_produce, guard));
    let of_notify = surroundings("NotifyFunction");
    let guard = Guard::deployed(&of_notify);
    let webhooks = Arc::new(fanfold_notify::HttpWebhooks::from_environment(&of_notify, guard).unwrap());
    let batch_apis = Arc::new(fanfold_batch_api::Callers::deployed(&surroundings("HandleFunction")));
    let outside = Outside { batch_apis, webhooks, sources, commands: false, call_by_call: false };
    let stack = Steps::new(surroundings, outside).unwrap();
    let behind = |name: &str| stack.behind(name);
    for function in template.functions() {
        // Those of AWS, which Lambda sets or an emulator has, are not the template's. What the steps count is written down by
        // the mains.
        let steps = |name: &String| !name.starts_with("AWS_") && name != variables::METRICS_STACK;
        let ours = |names: Vec<String>| names.into_iter().filter(steps).collect::<BTreeSet<_>>();
        let given = ours(function.environment.keys().cloned().collect());
        let read = read.lock().unwrap()[&function.name].iter().cloned().collect();
        assert_eq!(ours(read), given, "{}", function.name);
        let reads_a_queue = template.event_sources().iter().any(|source| source.function == function.name);
        assert_eq!(behind(&function.name).is_some(), reads_a_queue, "{}", function.name);
        assert_eq!(function.environment[variables::METRICS_STACK], "fanfold", "{}", function.name);
    }
}

/// The SDK, Lambda's runtime and the log set-up read variables of AWS; nothing of ours reads one beside the configuration. (Build
/// scripts are not part of functions.)
#[test]
fn functions_read_their_environment_in_one_place() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders = vec![root.join("shared"), root.join("functions")];
    let mut places = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("build.rs")
                && std::fs::read_to_string(&path).unwrap().contains("env::var")
            {
                places.push(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    assert_eq!(places, ["shared/lambda/src/lib.rs"]);
}
