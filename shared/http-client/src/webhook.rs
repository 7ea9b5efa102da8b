//! Signatures of the Standard Webhooks scheme (version 1, symmetric): HMAC-SHA256 over id, time and body.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fanfold::limits::WEBHOOK_SECRET_BYTES;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What a secret begins with, as the scheme writes it.
pub const PREFIX: &str = "whsec_";

/// A secret that webhooks are signed with.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// The secret in a text: `whsec_` and the base64 of 24 to 64 bytes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        WEBHOOK_SECRET_BYTES.contains(&bytes.len()).then(|| Hmac::new_from_slice(&bytes).ok()).flatten().map(Self)
    }

    /// A signature, as the header `webhook-signature` has it.
    #[must_use]
    pub fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        let mut mac = self.0.clone();
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}
