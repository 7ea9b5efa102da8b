//! Signatures of requests.

use fanfold::clock::World;
use fanfold::mapping::Sign;
use fanfold_http_client::aws::{Aws, Unsigned};
use fanfold_http_client::webhook;
use serde_json::{Map, Value};

use crate::{CallError, Cause};

/// Signs requests.
#[derive(Clone, Debug)]
pub(super) struct Signer {
    pub(super) aws: Aws,
    pub(super) world: World,
}

impl Signer {
    /// The headers of a signature. `key`: the `Idempotency-Key`.
    pub(super) fn sign(
        &self,
        sign: &Sign,
        secrets: &Map<String, Value>,
        key: &str,
        unsigned: &Unsigned<'_>,
    ) -> Result<Vec<(String, String)>, CallError> {
        let now = self.world.now();
        // Nothing is wrong with the batch: every call waits until the deployment is mended.
        let missing = |problem: String| CallError::new(Cause::Unreachable, problem);
        match sign {
            Sign::Aws(service) => self.aws.sign(service, unsigned, now).map_err(missing),
            Sign::Webhook(name) => {
                let secret = secrets.get(name).and_then(Value::as_str).unwrap_or_default();
                let Some(secret) = webhook::Key::parse(secret) else {
                    let problem = format!(
                        "the secret `{name}` is not a key of Standard Webhooks: `whsec_` and base64 is expected"
                    );
                    return Err(missing(problem));
                };
                let seconds = now.0 / 1_000;
                Ok(vec![
                    ("webhook-id".to_owned(), key.to_owned()),
                    ("webhook-timestamp".to_owned(), seconds.to_string()),
                    ("webhook-signature".to_owned(), secret.sign(key, seconds, unsigned.body)),
                ])
            }
        }
    }
}
