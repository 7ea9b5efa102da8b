//! Signatures of webhooks by the Standard Webhooks scheme (version 1, symmetric): HMAC-SHA256 over id, time and body.

use std::fmt;

use fanfold::config::{ConfigError, Surroundings, variables};
use fanfold::limits::WEBHOOK_SECRET_BYTES;
use fanfold_http_client::webhook::{Key, PREFIX};

/// The secrets that webhooks are signed with. While a secret is replaced there are two: receivers accept a webhook if one of its
/// signatures is right.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<Key>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl Secrets {
    /// The secrets that the environment gives, separated by spaces; none if the variable is empty or not set.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(crate) fn from_environment(surroundings: &Surroundings) -> Result<Self, ConfigError> {
        let variable = variables::WEBHOOK_SECRETS;
        let value = surroundings.optional(variable).unwrap_or_default();
        let secret = |(at, text): (usize, &str)| {
            // The value is secret, so it is not shown.
            let value = format!("… (secret {} of {})", at + 1, value.split_whitespace().count());
            let problem = format!(
                "`{PREFIX}` and the base64 of {} to {} random bytes are expected, several separated by spaces",
                WEBHOOK_SECRET_BYTES.start(),
                WEBHOOK_SECRET_BYTES.end()
            );
            Key::parse(text).ok_or(ConfigError::Unusable { variable, value, problem })
        };
        value.split_whitespace().enumerate().map(secret).collect::<Result<_, _>>().map(Self)
    }

    /// The header `webhook-signature`: a signature per secret. None without secrets.
    pub(crate) fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> Option<String> {
        let signatures: Vec<String> = self.0.iter().map(|key| key.sign(id, seconds, body)).collect();
        (!signatures.is_empty()).then(|| signatures.join(" "))
    }
}
