//! What `template.yaml` must say for nothing to be lost, and for every function to find what it needs. What functions are
//! allowed is compared with what they do in the simulation's tests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use fanfold::clock::World;
use fanfold::config::Surroundings;
use fanfold_local::{Engine, Template};
use fanfold_stack::{Outside, Steps};
use serde_json::{Value, json};

const TEXT: &str = include_str!("../../../template.yaml");

/// The largest batch that Lambda takes from a queue without a batch window.
const BATCH_WITHOUT_WINDOW: usize = 10;

fn template() -> Template {
    Template::parse(TEXT).unwrap()
}

/// The properties of all resources of a type, by logical id.
fn resources(kind: &str) -> BTreeMap<String, Value> {
    let document = Template::document(TEXT).unwrap();
    let all: BTreeMap<String, Value> = serde_json::from_value(document["Resources"].clone()).unwrap();
    let of_kind = all.into_iter().filter(|(_, resource)| resource["Type"] == kind);
    of_kind.map(|(name, resource)| (name, resource["Properties"].clone())).collect()
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

/// Every queue that a function reads has a dead-letter queue of its own, kept as long as SQS keeps anything, and nothing is
/// given up before five deliveries.
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
        if !read.contains(name) {
            assert_eq!(properties["MessageRetentionPeriod"], 1_209_600, "{name}");
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
        "CallsFunctions" | "CallsQueues" | "FetchesSecrets" => "HandleFunction",
        _ if condition.starts_with("Sends") || condition.starts_with("CallsBack") => "NotifyFunction",
        _ => "ProduceFunction",
    }
}

/// Beside what a stack needs for itself, only what parameters name: by default nothing.
#[test]
fn destinations_and_sources_of_the_users_are_reached_only_if_parameters_say_so() {
    let document = Template::document(TEXT).unwrap();
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
    for (condition, parameter) in named {
        let given = json!({"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]});
        assert_eq!(
            (&document["Conditions"][condition], &granted.remove(condition).unwrap()),
            (&given, &json!(parameter))
        );
        assert_eq!(document["Parameters"][parameter]["Default"], "");
    }
    let managed = resources("AWS::Serverless::Function").remove("HandleFunction").unwrap()["Policies"][0].clone();
    assert_eq!(managed, json!({"Fn::If": ["CallsAws", {"Ref": "BatchApiPolicyArn"}, {"Ref": "AWS::NoValue"}]}));
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

/// A dead letter waits for an operator: its queue has an alarm, which goes to the topic that a parameter names.
#[test]
fn every_queue_of_dead_letters_has_an_alarm() {
    let alarms = resources("AWS::CloudWatch::Alarm");
    let queues = resources("AWS::SQS::Queue").into_iter().filter(|(name, _)| name.ends_with("DeadLetterQueue"));
    let queues: Vec<String> = queues.map(|(name, _)| name).collect();
    assert_eq!((queues.len(), alarms.len()), (7, 7));
    for queue in queues {
        let alarm = &alarms[&queue.replace("Queue", "Alarm")];
        let dimension = json!([{"Name": "QueueName", "Value": {"Fn::GetAtt": format!("{queue}.QueueName")}}]);
        assert_eq!((&alarm["Dimensions"], &alarm["Namespace"]), (&dimension, &json!("AWS/SQS")), "{queue}");
        assert_eq!(
            [&alarm["MetricName"], &alarm["ComparisonOperator"], &alarm["Threshold"]],
            [&json!("ApproximateNumberOfMessagesVisible"), &json!("GreaterThanThreshold"), &json!(0)],
            "{queue}"
        );
        let topics = json!({"Fn::If": ["Alarms", [{"Ref": "AlarmTopicArn"}], {"Ref": "AWS::NoValue"}]});
        assert_eq!((&alarm["AlarmActions"], &alarm["OKActions"]), (&topics, &topics), "{queue}");
    }
}

/// Queues are encrypted where they ask for it, tables always are: a change may not turn that into a key that is not there.
#[test]
fn everything_is_encrypted() {
    for (name, properties) in resources("AWS::SQS::Queue") {
        assert_eq!(properties["SqsManagedSseEnabled"], true, "{name}");
    }
    for (name, properties) in resources("AWS::DynamoDB::Table") {
        assert!(properties["SSESpecification"]["SSEEnabled"] != false, "{name}");
        assert_eq!(properties["BillingMode"], "PAY_PER_REQUEST", "{name}");
    }
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
    let webhooks = Arc::new(fanfold_notify::HttpWebhooks::from_environment(&surroundings("NotifyFunction")).unwrap());
    let sources = Arc::new(fanfold_produce::AllSources::from_environment(&surroundings("ProduceFunction")));
    let batch_apis = Arc::new(fanfold_batch_api::Callers::deployed(&surroundings("HandleFunction")));
    let outside = Outside { batch_apis, webhooks, sources, commands: false, call_by_call: false };
    let steps = Steps::new(surroundings, outside).unwrap();
    for function in template.functions() {
        // Those of AWS, which Lambda sets or an emulator has, are not the template's.
        let ours =
            |names: Vec<String>| names.into_iter().filter(|name| !name.starts_with("AWS_")).collect::<BTreeSet<_>>();
        let given = ours(function.environment.keys().cloned().collect());
        let read = read.lock().unwrap()[&function.name].iter().cloned().collect();
        assert_eq!(ours(read), given, "{}", function.name);
        let reads_a_queue = template.event_sources().iter().any(|source| source.function == function.name);
        assert_eq!(steps.behind(&function.name).is_some(), reads_a_queue, "{}", function.name);
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
