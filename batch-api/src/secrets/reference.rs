//! References to secrets that AWS keeps: `secretsmanager:NAME` or `ssm:NAME`, and `#FIELD` if the value is a JSON object.

use fanfold::limits::ENTRY_BYTES_MAX;
use fanfold::text::beginning;
use fanfold_http_client::aws::{AwsCall, Service};
use serde_json::{Value, json};

/// Where the value of a secret is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reference {
    service: Service,
    /// The name or ARN of the secret, or of the parameter.
    name: String,
    /// The field of its value that is meant.
    field: Option<String>,
}

/// What references begin with.
const SERVICES: [(&str, Service); 2] = [("secretsmanager:", Service::SecretsManager), ("ssm:", Service::Ssm)];

impl Reference {
    /// The reference in a text. None: the text is the secret itself.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let of = |(prefix, service): &(&str, Service)| Some((*service, text.strip_prefix(*prefix)?));
        let (service, rest) = SERVICES.iter().find_map(of)?;
        let (name, field) = rest.split_once('#').map_or((rest, None), |(name, field)| (name, Some(field)));
        Some(Self { service, name: name.trim().to_owned(), field: field.map(str::to_owned) })
    }

    /// The name of the service.
    pub(super) fn service(&self) -> &'static str {
        if self.service == Service::Ssm { "SSM" } else { "Secrets Manager" }
    }

    /// The call that fetches the value.
    pub(super) fn call(&self) -> AwsCall {
        let (target, body) = match self.service {
            Service::Ssm => ("AmazonSSM.GetParameter", json!({"Name": self.name, "WithDecryption": true})),
            _ => ("secretsmanager.GetSecretValue", json!({"SecretId": self.name})),
        };
        let call = AwsCall::post(self.service, "/", "application/x-amz-json-1.1", body.to_string().into_bytes());
        call.header("x-amz-target", target)
    }

    /// The value in the answer to the call. The problem shows nothing of it.
    pub(super) fn value(&self, answer: &[u8]) -> Result<String, String> {
        let document: Value = serde_json::from_slice(answer).map_err(|_| "the answer is not JSON".to_owned())?;
        let text = match self.service {
            Service::Ssm => document["Parameter"]["Value"].as_str(),
            _ => document["SecretString"].as_str(),
        };
        let text = text.ok_or("its value is not a text")?;
        let Some(field) = &self.field else { return Ok(text.to_owned()) };
        let fields: Value = serde_json::from_str(text).map_err(|_| "its value is not JSON, so it has no fields")?;
        let missing =
            || format!("its value has no text in the field `{}`", beginning(field.as_bytes(), ENTRY_BYTES_MAX));
        fields.get(field).and_then(Value::as_str).map(str::to_owned).ok_or_else(missing)
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let prefix = if self.service == Service::Ssm { "ssm:" } else { "secretsmanager:" };
        let field = self.field.iter().map(|field| format!("#{field}")).collect::<String>();
        write!(f, "{}", beginning(format!("{prefix}{}{field}", self.name).as_bytes(), ENTRY_BYTES_MAX))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_names_a_service_and_perhaps_a_field() {
        for (text, service, name, field) in [
            ("secretsmanager:shop/search", Service::SecretsManager, "shop/search", None),
            ("secretsmanager:shop/search#key", Service::SecretsManager, "shop/search", Some("key")),
            (
                "secretsmanager:arn:aws:secretsmanager:eu-west-1:123456789012:secret:s-AbCdEf#a#b",
                Service::SecretsManager,
                "arn:aws:secretsmanager:eu-west-1:123456789012:secret:s-AbCdEf",
                Some("a#b"),
            ),
            ("ssm:/shop/search", Service::Ssm, "/shop/search", None),
        ] {
            let reference = Reference::parse(text).unwrap();
            assert_eq!(
                (reference.service, reference.name.as_str(), reference.field.as_deref()),
                (service, name, field)
            );
            assert_eq!(reference.to_string(), text);
        }
        for text in ["s3cret", "", "Secretsmanager:x", "https://x"] {
            assert_eq!(Reference::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_is_read_and_problems_do_not_show_it() {
        let value =
            |reference: &str, answer: Value| Reference::parse(reference).unwrap().value(answer.to_string().as_bytes());
        assert_eq!(value("secretsmanager:s", json!({"SecretString": "v"})), Ok("v".to_owned()));
        assert_eq!(value("secretsmanager:s#k", json!({"SecretString": "{\"k\": \"v\"}"})), Ok("v".to_owned()));
        assert_eq!(value("ssm:/p", json!({"Parameter": {"Value": "v"}})), Ok("v".to_owned()));
        for (reference, answer) in [
            ("secretsmanager:s", json!({"SecretBinary": "dmFsdWU="})),
            ("secretsmanager:s#k", json!({"SecretString": "t0p-value"})),
            ("secretsmanager:s#k", json!({"SecretString": "{\"other\": \"t0p-value\"}"})),
            ("secretsmanager:s#k", json!({"SecretString": "{\"k\": {\"x\": \"t0p-value\"}}"})),
            ("ssm:/p", json!({"SecretString": "t0p-value"})),
        ] {
            let problem = value(reference, answer).unwrap_err();
            assert!(problem.starts_with("its value") && !problem.contains("t0p"), "{problem}");
        }
    }
}
