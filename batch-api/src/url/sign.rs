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
    /// The headers of a signature. `to`: the method and the URL. `content`: the `Idempotency-Key` and the body.
    pub(super) fn sign(
        &self,
        sign: &Sign,
        secrets: &Map<String, Value>,
        to: (&str, &str),
        headers: &[(String, String)],
        content: (&str, &[u8]),
    ) -> Result<Vec<(String, String)>, CallError> {
        let now = self.world.now();
        // Nothing is wrong with the batch: every call waits until the deployment is mended.
        let missing = |problem: String| CallError::new(Cause::Unreachable, problem);
        match sign {
            Sign::Aws(service) => {
                let headers: Vec<(&str, &str)> =
                    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let unsigned = Unsigned { method: to.0, url: to.1, headers: &headers, body: content.1 };
                self.aws.sign(service, &unsigned, now).map_err(missing)
            }
            Sign::Webhook(name) => {
                let secret = secrets.get(name).and_then(Value::as_str).unwrap_or_default();
                let Some(key) = webhook::Key::parse(secret) else {
                    let problem =
                        format!("the secret `{name}` is no key of Standard Webhooks: `whsec_` and base64 is expected");
                    return Err(missing(problem));
                };
                let seconds = now.0 / 1_000;
                Ok(vec![
                    ("webhook-id".to_owned(), content.0.to_owned()),
                    ("webhook-timestamp".to_owned(), seconds.to_string()),
                    ("webhook-signature".to_owned(), key.sign(content.0, seconds, content.1)),
                ])
            }
        }
    }
}
