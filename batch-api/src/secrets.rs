//! Secrets that policies name. Their values are in the environment, or AWS keeps them, and they are in no policy, log or error.

mod reference;
mod vault;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fanfold::clock::World;
use fanfold::limits::SECRET_HIDDEN_BYTES_MIN;
use fanfold_http_client::aws::Aws;
use futures::future::join_all;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use self::reference::Reference;
use self::vault::Vault;
use crate::{CallError, Cause};

/// What a variable with a secret begins with: other variables cannot be read by policies.
const PREFIX: &str = "FANFOLD_SECRET_";

/// The variable with all secrets, as a JSON object of texts.
const ALL: &str = "BATCH_API_SECRETS";

/// What stands for a secret where its value must not be shown.
const HIDDEN: &str = "[secret]";

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Looks secrets up.
#[derive(Clone)]
pub struct Secrets {
    variables: Arc<Lookup>,
    /// The object with all secrets, or what is wrong with it.
    all: Result<Map<String, Value>, String>,
    vault: Vault,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    /// Secrets in variables that `variables` looks up: `FANFOLD_SECRET_NAME`, or the field `NAME` of the JSON object in
    /// `BATCH_API_SECRETS`. A value may be a reference to a secret that AWS keeps.
    pub fn new(variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static, aws: Aws, world: World) -> Self {
        let all = variables(ALL).filter(|all| !all.trim().is_empty()).map_or_else(|| Ok(Map::new()), |all| read(&all));
        if let Err(problem) = &all {
            tracing::error!("{problem}");
        }
        Self { variables: Arc::new(variables), all, vault: Vault::new(aws, world) }
    }

    /// Whether the environment gives a secret, or a reference to one.
    #[must_use]
    pub fn is_there(&self, name: &str) -> bool {
        self.given(name).is_ok()
    }

    /// What the environment gives for a secret: its value, or a reference.
    fn given(&self, name: &str) -> Result<String, String> {
        if let Some(own) = (self.variables)(&format!("{PREFIX}{name}")).filter(|own| !own.is_empty()) {
            return Ok(own);
        }
        match self.all.as_ref()?.get(name) {
            Some(Value::String(value)) if !value.is_empty() => Ok(value.clone()),
            Some(Value::String(_)) | None => Err(format!(
                "there is no secret `{name}`: neither a variable {PREFIX}{name}, nor the field {name} in {ALL}"
            )),
            Some(_) => Err(format!("there is no secret `{name}`: the field {name} in {ALL} is not a text")),
        }
    }

    /// The values of these secrets. `most`: how long that may take. `ahead`: for how long at least they are to be used without
    /// being fetched again.
    ///
    /// # Errors
    /// One is not there, cannot be fetched, or has a control character, which no header may have. No call can be made until that is
    /// mended, so this counts as a batch API that cannot be reached.
    pub(crate) async fn values(
        &self,
        names: &BTreeSet<String>,
        most: Duration,
        ahead: Duration,
    ) -> Result<Map<String, Value>, CallError> {
        let values = join_all(names.iter().map(|name| self.value(name, most, ahead))).await;
        let values: Result<_, String> =
            values.into_iter().zip(names).map(|(value, name)| Ok((name.clone(), value?.into()))).collect();
        values.map_err(|problem| CallError::new(Cause::Unreachable, problem))
    }

    async fn value(&self, name: &str, most: Duration, ahead: Duration) -> Result<String, String> {
        let given = self.given(name)?;
        let value = match Reference::parse(&given) {
            None => given,
            Some(reference) => {
                let fetched = self.vault.get(&reference, most, ahead).await;
                fetched.map_err(|problem| format!("the secret `{name}` cannot be fetched ({reference}): {problem}"))?
            }
        };
        if value.is_empty() {
            return Err(format!("the secret `{name}` is empty"));
        }
        if value.chars().any(char::is_control) {
            let problem = "has a line break or another control character, which is not allowed";
            return Err(format!("the secret `{name}` {problem}"));
        }
        Ok(value)
    }

    /// A call with these secrets was refused: those that AWS keeps may have changed.
    pub(crate) fn doubt<'a>(&self, names: impl Iterator<Item = &'a String>) {
        for reference in names.filter_map(|name| Reference::parse(&self.given(name).ok()?)) {
            self.vault.doubt(&reference);
        }
    }
}

/// Reads the object with all secrets. The problem shows nothing of it.
fn read(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(all)) => Ok(all),
        Ok(_) => Err(format!("{ALL} is not a JSON object: an object of texts such as {{\"NAME\": \"…\"}} is expected")),
        Err(error) => Err(format!(
            "{ALL} is not JSON (line {}, column {}): an object of texts such as {{\"NAME\": \"…\"}} is expected",
            error.line(),
            error.column()
        )),
    }
}

/// The same text without the values of secrets.
pub(crate) fn hide(text: &str, secrets: &Map<String, Value>) -> Option<String> {
    let values = secrets.values().filter_map(Value::as_str).filter(|value| value.len() >= SECRET_HIDDEN_BYTES_MIN);
    let found: Vec<String> = values.flat_map(written).filter(|value| text.contains(value)).collect();
    (!found.is_empty()).then(|| found.iter().fold(text.to_owned(), |text, value| text.replace(value, HIDDEN)))
}

/// A value as it may stand in an answer: as it is, in a URL, in JSON.
fn written(value: &str) -> [String; 3] {
    let json = Value::from(value).to_string();
    let within = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(value);
    [value.to_owned(), utf8_percent_encode(value, NON_ALPHANUMERIC).to_string(), within.to_owned()]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use serde_json::json;

    fn secrets(variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Secrets {
        Secrets::new(variables, Aws::new(|_| None), World::system())
    }

    /// The values of these secrets, which are there at once.
    fn values(secrets: &Secrets, names: &[&str]) -> Result<Map<String, Value>, CallError> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        secrets.values(&names, Duration::from_secs(1), Duration::ZERO).now_or_never().unwrap()
    }

    #[test]
    fn only_variables_that_hold_secrets_are_read() {
        let secrets = secrets(|name| match name {
            "FANFOLD_SECRET_TOKEN" => Some("t-0123".to_owned()),
            "BATCH_API_SECRETS" => Some(r#"{"KEY": "k", "TOKEN": "other", "NONE": 7}"#.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("a".to_owned()),
            _ => None,
        });
        let both = values(&secrets, &["TOKEN", "KEY"]).unwrap();
        assert_eq!(Value::Object(both), json!({"TOKEN": "t-0123", "KEY": "k"}));
        for name in ["AWS_SECRET_ACCESS_KEY", "NONE"] {
            let error = values(&secrets, &[name]).unwrap_err();
            assert!(error.retriable && error.cause.concerns_every_batch(), "the kind waits until it is there");
            assert!(error.message.contains(&format!("there is no secret `{name}`")), "{}", error.message);
        }
    }

    #[test]
    fn an_object_of_secrets_that_cannot_be_read_is_named_and_not_shown() {
        for (text, problem) in [
            (r#"{"TOKEN": "t0p-value""#, "BATCH_API_SECRETS is not JSON (line 1, column 21): an object of texts"),
            ("t0p-value", "BATCH_API_SECRETS is not JSON (line 1, column 2)"),
            (r#"["t0p-value"]"#, "BATCH_API_SECRETS is not a JSON object"),
            (
                r#"{"TOKEN": ["t0p-value"]}"#,
                "there is no secret `TOKEN`: the field TOKEN in BATCH_API_SECRETS is not a text",
            ),
        ] {
            let secrets = secrets(move |name| match name {
                "BATCH_API_SECRETS" => Some(text.to_owned()),
                "FANFOLD_SECRET_OWN" => Some("own".to_owned()),
                _ => None,
            });
            let error = values(&secrets, &["TOKEN"]).unwrap_err();
            assert!(error.message.starts_with(problem) && !error.message.contains("t0p"), "{}", error.message);
            assert!(error.retriable && error.cause.concerns_every_batch(), "the kind waits until it is mended");
            assert!(values(&secrets, &["OWN"]).is_ok(), "it does not concern others");
        }
        assert!(
            values(&secrets(|_| Some(String::new())), &["X"]).unwrap_err().message.starts_with("there is no secret")
        );
    }

    #[test]
    fn a_secret_that_cannot_be_fetched_makes_the_kind_wait() {
        let secrets = secrets(|name| (name == "FANFOLD_SECRET_KEY").then(|| "secretsmanager:shop#key".to_owned()));
        let error = values(&secrets, &["KEY"]).unwrap_err();
        let problem = "the secret `KEY` cannot be fetched (secretsmanager:shop#key): the environment has no AWS_REGION";
        assert!(error.message.starts_with(problem), "{}", error.message);
        assert!(error.retriable && error.cause.concerns_every_batch());
    }

    #[test]
    fn values_are_hidden() {
        let secrets = json!({"A": "s3cret-value", "B": "x"});
        let hidden = hide("Incorrect key s3cret-value; x", secrets.as_object().unwrap());
        assert_eq!(hidden.unwrap(), "Incorrect key [secret]; x");
        assert_eq!(hide("fine", secrets.as_object().unwrap()), None);
        let secrets = json!({"A": "a+b/c=1\"2"});
        let hide = |text: &str| hide(text, secrets.as_object().unwrap()).unwrap();
        assert_eq!(hide("/x?key=a%2Bb%2Fc%3D1%222&n=1"), "/x?key=[secret]&n=1");
        assert_eq!(hide(r#"{"key":"a+b/c=1\"2"}"#), r#"{"key":"[secret]"}"#);
    }

    #[test]
    fn a_secret_that_no_header_may_have_makes_the_kind_wait() {
        let error = values(&secrets(|_| Some("token\n".to_owned())), &["TOKEN"]).unwrap_err();
        assert!(error.retriable && error.cause.concerns_every_batch());
        assert!(error.message.contains("control character") && !error.message.contains("token"), "{}", error.message);
    }
}
