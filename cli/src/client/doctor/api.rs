//! What the stack itself says.

use fanfold_client::ClientError;
use futures::TryStreamExt;
use serde_json::Value;

use super::{Check, Verdict};
use crate::client::connection::Stack;
use crate::client::scope::named;
use crate::client::view::{moment, shown, word};
use crate::count::count;

/// Asks the API. If it does not answer, nothing else is asked.
pub(super) async fn checks(stack: &Stack) -> Vec<Check> {
    let health = match stack.api.health().await {
        Ok(health) => health,
        Err(error) => return vec![silent(stack, error)],
    };
    let mut checks = vec![version(word(&health["version"]))];
    let findings = health["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    checks.extend(findings.iter().map(finding));
    if findings.is_empty() {
        checks.push(Check::ok("nothing is stale or in error"));
    }
    let more = [policies(stack).await, switches(stack).await];
    for found in more {
        checks.extend(found.unwrap_or_else(|error| vec![silent(stack, error)]));
    }
    checks
}

/// The API does not answer, or refuses.
fn silent(stack: &Stack, error: ClientError) -> Check {
    let mend = match &error {
        ClientError::Api { status: 401 | 403, .. } => {
            "the credentials need the permission execute-api:Invoke for this API; compare --profile and --region, and this machine's clock"
        }
        ClientError::Api { .. } => "see the log of the function `api`",
        _ => "compare the address with the stack's output `Url`; locally, start a stack with `fanfold up`",
    };
    Check::wrong(stack.refusal(error).to_string(), mend)
}

fn version(of_stack: &str) -> Check {
    let own = env!("CARGO_PKG_VERSION");
    if of_stack == own {
        return Check::ok(format!("the API answers: version {of_stack}"));
    }
    Check::warning(
        format!("the stack has version {of_stack}, this command {own}"),
        "deploy the same version, or use the command of that version",
    )
}

/// What the API has found.
fn finding(finding: &Value) -> Check {
    let since = finding["since"].as_u64().map(|since| format!(" (since {})", moment(since))).unwrap_or_default();
    let about: Vec<String> =
        finding["about"].as_array().into_iter().flatten().map(|about| shown(word(&about["name"]))).collect();
    let about = if about.is_empty() { String::new() } else { format!(": {}", about.join(", ")) };
    let check = Check::wrong(format!("{}{about}{since}", shown(word(&finding["says"]))), word(&finding["mend"]));
    let verdict = if finding["level"] == "error" { Verdict::Wrong } else { Verdict::Warning };
    Check { verdict, ..check }
}

async fn policies(stack: &Stack) -> Result<Vec<Check>, ClientError> {
    let policies = stack.api.policies().await?.len();
    Ok(vec![if policies == 0 {
        Check::warning("there is no policy, so no task can be registered", "fanfold policy apply -f policy.yaml")
    } else {
        Check::ok(format!("there are policies for {}", count(policies as u64, "kind", "kinds")))
    }])
}

/// Somebody has paused something, and may have forgotten it.
async fn switches(stack: &Stack) -> Result<Vec<Check>, ClientError> {
    let switches: Vec<Value> = stack.api.switches().try_collect().await?;
    let paused = switches.iter().filter(|switch| switch["state"] == "paused");
    let check = |switch: &Value| {
        let since = moment(switch["since"].as_u64().unwrap_or_default());
        Check::warning(
            format!("{} is paused since {since}", named(switch)),
            "`fanfold resume`, when its calls may go on",
        )
    };
    Ok(paused.map(check).collect())
}
