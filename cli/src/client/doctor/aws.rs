//! What AWS says of a deployed stack.

use serde_json::Value;

use super::Check;
use crate::client::aws_cli::{AwsCli, AwsCliError};
use crate::client::view::{shown, word};
use crate::count::count;

/// Concurrent executions that are left to other functions of the account, and to the HTTP API.
const SPARE_EXECUTIONS: u64 = 50;

/// The type of an alarm.
const ALARM: &str = "AWS::CloudWatch::Alarm";

/// Asks AWS.
pub(super) fn checks(stack: &str, cli: &AwsCli) -> Vec<Check> {
    let mut checks = answered(state(stack, cli));
    let resources = match resources(stack, cli) {
        Ok(resources) => resources,
        Err(error) => {
            checks.push(unknown(&error));
            return checks;
        }
    };
    checks.extend(answered(event_sources(&resources, cli)));
    checks.extend(answered(alarms(&resources, cli)));
    checks
}

fn answered(checks: Result<Vec<Check>, AwsCliError>) -> Vec<Check> {
    checks.unwrap_or_else(|error| vec![unknown(&error)])
}

fn unknown(error: &AwsCliError) -> Check {
    Check::warning(format!("this cannot be checked: {error}"), "the credentials need the permission to read it")
}

/// Whether its latest change was deployed as a whole.
fn state(stack: &str, cli: &AwsCli) -> Result<Vec<Check>, AwsCliError> {
    let found = cli.json(&["cloudformation", "describe-stacks", "--stack-name", stack])?;
    let found = &found["Stacks"][0];
    let status = word(&found["StackStatus"]);
    let check = if status.ends_with("_IN_PROGRESS") {
        Check::warning(format!("the stack is being changed: {status}"), "look again when that has ended")
    } else if status.contains("FAILED") || status.contains("ROLLBACK") {
        let reason =
            found["StackStatusReason"].as_str().map(|reason| format!(" ({})", shown(reason))).unwrap_or_default();
        Check::wrong(
            format!("the latest change of the stack failed: {status}{reason}"),
            format!("aws cloudformation describe-stack-events --stack-name {stack}"),
        )
    } else {
        Check::ok(format!("the stack is deployed: {status}"))
    };
    Ok(vec![check])
}

/// A resource of the stack.
struct Resource {
    kind: String,
    logical: String,
    physical: String,
}

fn resources(stack: &str, cli: &AwsCli) -> Result<Vec<Resource>, AwsCliError> {
    let found = cli.json(&["cloudformation", "list-stack-resources", "--stack-name", stack])?;
    let resource = |found: &Value| Resource {
        kind: word(&found["ResourceType"]).to_owned(),
        logical: word(&found["LogicalResourceId"]).to_owned(),
        physical: word(&found["PhysicalResourceId"]).to_owned(),
    };
    Ok(found["StackResourceSummaries"].as_array().into_iter().flatten().map(resource).collect())
}

fn of_kind<'a>(resources: &'a [Resource], kind: &str) -> impl Iterator<Item = &'a Resource> {
    resources.iter().filter(move |resource| resource.kind == kind)
}

/// Whether every queue is read, and the account runs as many functions as its readers may ask for.
fn event_sources(resources: &[Resource], cli: &AwsCli) -> Result<Vec<Check>, AwsCliError> {
    let (mut checks, mut sources, mut most) = (Vec::new(), 0, 0);
    for source in of_kind(resources, "AWS::Lambda::EventSourceMapping") {
        let found = cli.json(&["lambda", "get-event-source-mapping", "--uuid", &source.physical])?;
        sources += 1;
        most += found["ScalingConfig"]["MaximumConcurrency"].as_u64().unwrap_or_default();
        let state = word(&found["State"]);
        if !matches!(state, "Enabled" | "Enabling" | "Updating" | "Creating") {
            checks.push(Check::wrong(
                format!("the queue of {} is not read: its event source is {state}", source.logical),
                format!("aws lambda update-event-source-mapping --enabled --uuid {}", source.physical),
            ));
        }
    }
    if checks.is_empty() {
        checks.push(Check::ok(format!("queues are read by {}", count(sources, "event source", "event sources"))));
    }
    let account = cli.json(&["lambda", "get-account-settings"])?;
    let limit = account["AccountLimit"]["UnreservedConcurrentExecutions"].as_u64();
    if let Some(limit) = limit.filter(|limit| *limit < most + SPARE_EXECUTIONS) {
        checks.push(Check::warning(
            format!("the account runs {limit} functions at once, and the stack's event sources may ask for {most}"),
            "raise the quota `Concurrent executions` of Lambda, or lower StepConcurrency and BatchApiConcurrency",
        ));
    }
    Ok(checks)
}

/// Which alarms ring, and whether anybody hears them.
fn alarms(resources: &[Resource], cli: &AwsCli) -> Result<Vec<Check>, AwsCliError> {
    let names: Vec<&str> = of_kind(resources, ALARM).map(|alarm| alarm.physical.as_str()).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let found = cli.json(&[&["cloudwatch", "describe-alarms", "--alarm-names"], names.as_slice()].concat())?;
    let alarms = found["MetricAlarms"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rings = |alarm: &&Value| alarm["StateValue"] == "ALARM";
    let check = |alarm: &Value| {
        // The runbooks have the names of the template.
        let physical = word(&alarm["AlarmName"]);
        let logical = of_kind(resources, ALARM).find(|resource| resource.physical == physical);
        let name = logical.map_or(physical, |resource| resource.logical.as_str());
        Check::wrong(
            format!("{name} rings: {}", shown(word(&alarm["AlarmDescription"]))),
            format!("docs/operations.md has a runbook for {name}"),
        )
    };
    let mut checks: Vec<Check> = alarms.iter().filter(rings).map(check).collect();
    if checks.is_empty() {
        checks.push(Check::ok(format!("no alarm rings, of {}", alarms.len())));
    }
    if alarms.iter().all(|alarm| alarm["AlarmActions"].as_array().is_none_or(Vec::is_empty)) {
        checks.push(Check::warning("nobody hears the alarms", "deploy with AlarmEmail or AlarmTopicArn"));
    }
    Ok(checks)
}
