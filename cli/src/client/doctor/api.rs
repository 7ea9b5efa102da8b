//! What the stack itself says.

use fanfold_client::ClientError;
use futures::TryStreamExt;
use serde_json::Value;

use super::{Check, Verdict};
use crate::client::connection::Stack;
use crate::client::dev::dev_session;
use crate::client::scope::{named, options};
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
    let standing = health["standing_still"].as_array().map(Vec::as_slice).unwrap_or_default();
    // Each kind that stands still is a check of its own, which says more than the finding.
    let shown = |finding: &&Value| finding["what"] != "kind_stands_still" || standing.is_empty();
    checks.extend(standing.iter().map(stands_still));
    checks.extend(findings.iter().filter(shown).map(finding));
    if findings.is_empty() {
        checks.push(Check::ok("nothing is stale or in error"));
    }
    let (kinds, found) = match policies(stack).await {
        Ok((kinds, check)) => (kinds, Ok(vec![check])),
        Err(error) => (Vec::new(), Err(error)),
    };
    for found in [found, switches(stack).await, dev_sessions(stack, &kinds).await] {
        checks.extend(found.unwrap_or_else(|error| vec![silent(stack, error)]));
    }
    checks
}

/// The API does not answer, or refuses.
fn silent(stack: &Stack, error: ClientError) -> Check {
    let fix = match &error {
        ClientError::Api { status: 401 | 403, .. } => {
            "the credentials need the permission execute-api:Invoke for this API; compare --profile and --region, and this machine's clock"
        }
        ClientError::Api { .. } => "see the log of the function `api`",
        _ => "compare the address with the stack's output `Url`; locally, start a stack with `fanfold up`",
    };
    Check::wrong(stack.refusal(error).to_string(), fix)
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
    let named = |about: &Value| {
        let error = about["error"].as_str().map(|error| format!(" ({})", shown(error)));
        format!("{}{}", shown(word(&about["name"])), error.unwrap_or_default())
    };
    let about: Vec<String> = finding["about"].as_array().into_iter().flatten().map(named).collect();
    let about = if about.is_empty() { String::new() } else { format!(": {}", about.join(", ")) };
    let check = Check::wrong(format!("{}{about}{since}", shown(word(&finding["says"]))), word(&finding["fix"]));
    let verdict = if finding["level"] == "error" { Verdict::Wrong } else { Verdict::Warning };
    Check { verdict, ..check }
}

/// A kind whose batch API refuses every call.
fn stands_still(kind: &Value) -> Check {
    let at = |name: &str| moment(kind[name].as_u64().unwrap_or_default());
    let (name, answer) = (shown(word(&kind["kind"])), shown(word(&kind["answer"])));
    Check::wrong(
        format!("kind {name} stands still since {}: {answer}", at("since")),
        format!(
            "fix the batch API, or the policy's URL and credentials; the next probe is due at {}",
            at("next_probe")
        ),
    )
}

/// The kinds that have policies.
async fn policies(stack: &Stack) -> Result<(Vec<String>, Check), ClientError> {
    let policies = stack.api.policies().await?;
    let kinds: Vec<String> = policies.iter().map(|policy| word(&policy["kind"]).to_owned()).collect();
    let check = match kinds.len() {
        0 => Check::warning("there is no policy, so no task can be registered", "fanfold policy apply -f policy.yaml"),
        number => Check::ok(format!("there are policies for {}", count(number as u64, "kind", "kinds"))),
    };
    Ok((kinds, check))
}

/// Somebody has paused something, and may have forgotten it.
async fn switches(stack: &Stack) -> Result<Vec<Check>, ClientError> {
    let switches: Vec<Value> = stack.api.switches().try_collect().await?;
    let paused = switches.iter().filter(|switch| switch["state"] == "paused");
    let check = |switch: &Value| {
        let since = moment(switch["since"].as_u64().unwrap_or_default());
        let resume = stack.command(&format!("resume {}", options(switch)));
        Check::warning(format!("{} is paused since {since}", named(switch)), resume)
    };
    Ok(paused.map(check).collect())
}

/// Kinds whose calls are made on a developer's machine. A stack that allows no sessions is asked once.
async fn dev_sessions(stack: &Stack, kinds: &[String]) -> Result<Vec<Check>, ClientError> {
    let mut checks = Vec::new();
    for kind in kinds {
        let state = dev_session(&stack.api, kind).await?;
        if state["allowed"] != true {
            break;
        }
        if let Some(queue) = state["lease"]["queue"].as_str() {
            let queue = shown(queue.rsplit(':').next().unwrap_or_default());
            let says = format!("a dev session has the calls of kind {kind}, by its queue {queue}");
            checks.push(Check::warning(says, stack.command(&format!("dev --end --kind {kind}"))));
        }
    }
    Ok(checks)
}
