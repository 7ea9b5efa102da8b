//! Signatures of webhooks by the Standard Webhooks scheme (version 1, symmetric): HMAC-SHA256 over id, time and body.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fanfold::config::{ConfigError, Surroundings, variables};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What a secret begins with, as the scheme writes it.
const PREFIX: &str = "whsec_";

/// Bytes of a secret: what the scheme allows.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The secrets that webhooks are signed with. While a secret is replaced there are two: receivers accept a webhook if one of its
/// signatures is right.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<Hmac<Sha256>>);

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
                BYTES.start(),
                BYTES.end()
            );
            key(text).ok_or(ConfigError::Unusable { variable, value, problem })
        };
        value.split_whitespace().enumerate().map(secret).collect::<Result<_, _>>().map(Self)
    }

    /// The header `webhook-signature`: a signature per secret. None without secrets.
    pub(crate) fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> Option<String> {
        let sign = |key: &Hmac<Sha256>| {
            let mut mac = key.clone();
            mac.update(format!("{id}.{seconds}.").as_bytes());
            mac.update(body);
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        };
        let signatures: Vec<String> = self.0.iter().map(sign).collect();
        (!signatures.is_empty()).then(|| signatures.join(" "))
    }
}

fn key(text: &str) -> Option<Hmac<Sha256>> {
    let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
    BYTES.contains(&bytes.len()).then(|| Hmac::new_from_slice(&bytes).ok()).flatten()
}
