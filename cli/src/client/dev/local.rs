//! The batch API on this machine, called as the policy says: only the address is another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanfold::clock::World;
use fanfold::mapping::{RequestMapping, Sign};
use fanfold::policy::{BatchApi, Policy, Refusals, Way};
use fanfold_batch_api::{Call, Caller, Request, Secrets};
use fanfold_http_client::aws::Aws;

use super::verdict::{Rules, Verdict};
use crate::batch_api;
use crate::failure::Failure;
use crate::fault::Fault;

/// The batch API on this machine.
pub(super) struct Local {
    caller: Arc<dyn Caller>,
    batch_api: BatchApi,
    rules: Rules,
    world: World,
    /// What differs from a call of the deployed stack.
    pub(super) notices: Vec<String>,
}

impl Local {
    /// The batch API of a policy, at another address.
    pub(super) async fn new(policy: &Policy, way: Way) -> Result<Self, Failure> {
        let folder = std::env::current_dir().map_err(|error| Failure::io("the current folder", error))?;
        let (batch_api, notices) = moved(&policy.batch_api, way, &can_be_had());
        match &batch_api.way {
            Way::Command(_) => {
                let there = batch_api::check(&batch_api, &folder).await;
                there.map_err(|problem| Fault::new("COMMAND", problem))?;
            }
            _ => {
                let moved = Policy { batch_api: batch_api.clone(), ..policy.clone() };
                moved.check().map_err(|error| Fault::new("--call", error))?;
            }
        }
        let rules = Rules { max_attempts: policy.max_attempts, waits: policy.refusals == Refusals::Wait };
        Ok(Self { caller: batch_api::local(folder), batch_api, rules, world: World::system(), notices })
    }

    /// Makes one call, and says what follows.
    pub(super) async fn call(&self, call: &Call) -> Verdict {
        let result = match Request::new(&self.batch_api, call) {
            Ok(request) => {
                let unsent = request.unsent();
                let result = self.caller.call(&self.batch_api, request).await;
                result.and_then(|answer| answer.in_mode(self.batch_api.mode, call, &unsent))
            }
            Err(error) => Err(error),
        };
        self.rules.verdict(call, result, self.world.now())
    }
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").field("batch_api", &self.batch_api).finish_non_exhaustive()
    }
}

/// What calls may need of the environment.
struct Had {
    secrets: Secrets,
    credentials: bool,
}

fn can_be_had() -> Had {
    let variable = |name: &str| std::env::var(name).ok();
    let secrets = Secrets::new(variable, Aws::new(|_| None), World::system());
    let credentials = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].iter().all(|name| variable(name).is_some());
    Had { secrets, credentials }
}

/// A batch API at another address, and what is left out of its requests there.
fn moved(given: &BatchApi, way: Way, had: &Had) -> (BatchApi, Vec<String>) {
    if matches!(way, Way::Command(_)) {
        let moved = BatchApi { mode: given.mode, ..BatchApi::new(way, given.timeout) };
        let mapped = given.request.is_some() || given.response.is_some();
        let notice = "the program gets calls as any batch API does, not as the policy's `batch_api` writes them";
        return (moved, mapped.then(|| notice.to_owned()).into_iter().collect());
    }
    let mut notices = Vec::new();
    let request = given.request.clone().map(|request| without_secrets(request, had, &mut notices));
    // The outcomes are in the answer: nothing can be posted to this command.
    (BatchApi { way, request, answers_within: None, ..given.clone() }, notices)
}

/// A request without what this machine has no secrets for.
fn without_secrets(request: RequestMapping, had: &Had, notices: &mut Vec<String>) -> RequestMapping {
    let mut keep = |what: &str, all: BTreeMap<String, String>| -> BTreeMap<String, String> {
        let kept = all.into_iter().filter(|(name, value)| {
            let missing = secrets_in(value).into_iter().find(|secret| !had.secrets.is_there(secret));
            if let Some(secret) = &missing {
                notices.push(format!(
                    "the {what} `{name}` is left out: there is no secret `{secret}` here (FANFOLD_SECRET_{secret})"
                ));
            }
            missing.is_none()
        });
        kept.collect()
    };
    let (headers, query) = (keep("header", request.headers), keep("query parameter", request.query));
    let sign = request.sign.filter(|sign| {
        let (can, what) = match sign {
            Sign::Webhook(secret) => (had.secrets.is_there(secret), format!("no secret `{secret}` here")),
            Sign::Aws(_) => (had.credentials, "no AWS_ACCESS_KEY_ID in the environment".to_owned()),
        };
        if !can {
            notices.push(format!("requests are not signed: there is {what}"));
        }
        can
    });
    RequestMapping { headers, query, sign, ..request }
}

/// The names of the secrets in a text with `${secret.NAME}`.
fn secrets_in(text: &str) -> Vec<String> {
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let named = |rest: &str| rest.chars().take_while(is_name).collect::<String>();
    text.split("secret.").skip(1).map(named).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn had(secret: &'static str) -> Had {
        let variable = move |name: &str| (name == format!("FANFOLD_SECRET_{secret}")).then(|| "x".to_owned());
        Had { secrets: Secrets::new(variable, Aws::new(|_| None), World::system()), credentials: false }
    }

    fn given() -> BatchApi {
        let given = json!({
            "url": "https://example.com/parcels", "timeout": "7s", "answers_within": "1h", "mode": "strict",
            "request": {
                "headers": {"Authorization": "Bearer ${secret.TOKEN}", "X-Kind": "${kind}", "X-Key": "${secret.KEY}"},
                "query": {"key": "${secret.TOKEN}"}, "sign": {"webhook": "TOKEN"}, "body": {"${members}": "${content}"},
            },
            "response": {"match": "none"},
        });
        serde_json::from_value(given).unwrap()
    }

    #[test]
    fn only_the_address_is_another_one() {
        let (moved, notices) = moved(&given(), Way::Url("http://localhost:1/".to_owned()), &had("TOKEN"));
        let request = moved.request.unwrap();
        assert_eq!(request.headers.keys().collect::<Vec<_>>(), ["Authorization", "X-Kind"]);
        assert_eq!(
            (request.query.len(), request.sign.is_some(), request.body),
            (1, true, given().request.unwrap().body)
        );
        assert_eq!(notices, ["the header `X-Key` is left out: there is no secret `KEY` here (FANFOLD_SECRET_KEY)"]);
        assert_eq!((moved.timeout, moved.mode, moved.answers_within), (given().timeout, given().mode, None));
        assert_eq!((moved.way.field(), moved.response), ("url", given().response));
    }

    #[test]
    fn what_there_are_no_secrets_for_is_left_out() {
        let (moved, notices) = moved(&given(), Way::Url("http://localhost:1/".to_owned()), &had("OTHER"));
        let request = moved.request.unwrap();
        assert_eq!((request.headers.len(), request.query.len(), request.sign), (1, 0, None));
        assert_eq!(
            (notices.len(), notices[3].as_str()),
            (4, "requests are not signed: there is no secret `TOKEN` here")
        );
    }

    #[test]
    fn a_program_gets_plain_calls() {
        let (moved, notices) = moved(&given(), Way::Command(vec!["x".to_owned()]), &had("TOKEN"));
        assert!(moved.request.is_none() && moved.response.is_none() && notices.len() == 1);
        assert_eq!((moved.timeout, moved.mode), (given().timeout, given().mode));
    }
}
