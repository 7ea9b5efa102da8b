//! Secrets that policies name. Their values are in the environment, and in no policy, log or error.

use std::fmt;
use std::sync::Arc;

use fanfold::limits::SECRET_HIDDEN_BYTES_MIN;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

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
    all: Map<String, Value>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

impl Secrets {
    /// Secrets in variables that `variables` looks up: `FANFOLD_SECRET_NAME`, or the field `NAME` of the JSON object in
    /// `BATCH_API_SECRETS`.
    pub fn new(variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let all = variables(ALL).and_then(|all| serde_json::from_str(&all).ok()).unwrap_or_default();
        Self { variables: Arc::new(variables), all }
    }

    fn get(&self, name: &str) -> Option<String> {
        let own = (self.variables)(&format!("{PREFIX}{name}"));
        own.or_else(|| self.all.get(name)?.as_str().map(str::to_owned)).filter(|value| !value.is_empty())
    }

    /// The values of these secrets.
    ///
    /// # Errors
    /// One is not there, or has a control character, which no header may have. No call can be made until it is, so this counts as a batch API that cannot be reached.
    pub(crate) fn values(&self, names: &[String]) -> Result<Map<String, Value>, CallError> {
        let value = |name: &String| match self.get(name) {
            Some(value) if value.chars().any(char::is_control) => {
                let message =
                    format!("the secret `{name}` has a line break or another control character, which is not allowed");
                Err(CallError::new(Cause::Unreachable, message))
            }
            Some(value) => Ok((name.clone(), Value::String(value))),
            None => {
                let message = format!(
                    "there is no secret `{name}`: neither a variable {PREFIX}{name}, nor the field {name} in {ALL}"
                );
                Err(CallError::new(Cause::Unreachable, message))
            }
        };
        names.iter().map(value).collect()
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
    use serde_json::json;

    #[test]
    fn only_variables_that_hold_secrets_are_read() {
        let secrets = Secrets::new(|name| match name {
            "FANFOLD_SECRET_TOKEN" => Some("t-0123".to_owned()),
            "BATCH_API_SECRETS" => Some(r#"{"KEY": "k", "TOKEN": "other", "NONE": 7}"#.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some("a".to_owned()),
            _ => None,
        });
        let values = secrets.values(&["TOKEN".to_owned(), "KEY".to_owned()]).unwrap();
        assert_eq!(Value::Object(values), json!({"TOKEN": "t-0123", "KEY": "k"}));
        for name in ["AWS_SECRET_ACCESS_KEY", "NONE"] {
            let error = secrets.values(&[name.to_owned()]).unwrap_err();
            assert!(error.retriable && error.cause.concerns_every_batch(), "the kind waits until it is there");
            assert!(error.message.contains(&format!("there is no secret `{name}`")), "{}", error.message);
        }
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
        let secrets = Secrets::new(|_| Some("token\n".to_owned()));
        let error = secrets.values(&["TOKEN".to_owned()]).unwrap_err();
        assert!(error.retriable && error.cause.concerns_every_batch());
        assert!(error.message.contains("control character") && !error.message.contains("token"), "{}", error.message);
    }
}
