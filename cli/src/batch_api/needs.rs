//! What calls need of the environment. It does not change while a run goes on, so it is asked for before the first task is registered.

use fanfold::clock::World;
use fanfold::mapping::Sign;
use fanfold::policy::{BatchApi, Way};
use fanfold_batch_api::{Call, Request, Secrets};
use fanfold_http_client::aws::Aws;

/// Checks that the environment, in which `variables` looks variables up, has what calls of a batch API need. The error names what is
/// missing.
pub(super) fn check(
    batch_api: &BatchApi,
    variables: impl Fn(&str) -> Option<String> + Clone + Send + Sync + 'static,
) -> Result<(), String> {
    let call = Call::of_nobody();
    let mapping = Request::new(batch_api, &call).ok().and_then(|request| request.mapping);
    let mut secrets = mapping.as_ref().map(|mapping| mapping.secrets()).unwrap_or_default();
    secrets.extend(mapping.as_ref().and_then(|mapping| mapping.signing_secret()).map(str::to_owned));
    let there = Secrets::new(variables.clone(), Aws::new(|_| None), World::system());
    if let Some(missing) = secrets.iter().find(|name| !there.is_there(name)) {
        return Err(format!(
            "`batch_api`: there is no secret `{missing}`: set the variable FANFOLD_SECRET_{missing}, or the field {missing} of the \
             JSON object in BATCH_API_SECRETS"
        ));
    }
    let mut needed = vec!["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"];
    let what = match &batch_api.way {
        Way::Lambda(_) => "calls of a Lambda function",
        way if mapping.is_some_and(|mapping| matches!(mapping.sign, Some(Sign::Aws(_)))) => {
            // The host of an API of AWS names its region.
            needed.truncate(if matches!(way, Way::Url(url) if url.contains(".amazonaws.com")) { 2 } else { 3 });
            "signatures of AWS"
        }
        _ => return Ok(()),
    };
    match needed.into_iter().find(|name| variables(name).is_none_or(|value| value.is_empty())) {
        Some(missing) => Err(format!("`batch_api`: the environment has no {missing}, which {what} need")),
        None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What is missing where these variables are set.
    fn missing(batch_api: Value, set: &'static [&'static str]) -> Option<String> {
        let batch_api: BatchApi = serde_json::from_value(batch_api).unwrap();
        check(&batch_api, |name| set.contains(&name).then(|| "x".to_owned())).err()
    }

    #[test]
    fn secrets_of_requests_are_needed() {
        let request = json!({"headers": {"Authorization": "Bearer ${secret.TOKEN}"}, "sign": {"webhook": "KEY"}});
        let batch_api = json!({"url": "https://example.com/", "request": request});
        let of = |set| missing(batch_api.clone(), set);
        assert!(of(&[]).unwrap().contains("FANFOLD_SECRET_TOKEN"));
        assert!(of(&["FANFOLD_SECRET_TOKEN"]).unwrap().contains("FANFOLD_SECRET_KEY"));
        assert_eq!(of(&["FANFOLD_SECRET_TOKEN", "FANFOLD_SECRET_KEY"]), None);
        assert_eq!(missing(json!({"url": "https://example.com/"}), &[]), None);
        assert_eq!(missing(json!({"command": ["true"]}), &[]), None);
    }

    #[test]
    fn functions_and_signatures_need_credentials() {
        let credentials: &[&str] = &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
        let all: &[&str] = &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"];
        let lambda = json!({"lambda": "book"});
        assert!(missing(lambda.clone(), &[]).unwrap().contains("AWS_ACCESS_KEY_ID"));
        assert!(missing(lambda.clone(), credentials).unwrap().contains("AWS_REGION"));
        assert_eq!(missing(lambda, all), None);
        let signed = |url: &str| json!({"url": url, "request": {"sign": {"aws": "execute-api"}}});
        let [here, there] = [signed("http://localhost:1/"), signed("https://x.execute-api.eu-west-1.amazonaws.com/")];
        assert!(missing(here.clone(), &["AWS_ACCESS_KEY_ID"]).unwrap().contains("AWS_SECRET_ACCESS_KEY"));
        assert!(missing(here.clone(), credentials).unwrap().contains("AWS_REGION"));
        assert_eq!([missing(here, all), missing(there, credentials)], [None, None]);
    }
}
