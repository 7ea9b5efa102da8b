//! Secrets that are fetched from AWS, and kept for a while.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fanfold::clock::{Timestamp, World};
use fanfold::limits::{SECRET_AGAIN, SECRET_ANSWER_BYTES_MAX, SECRET_DOUBTED, SECRET_FETCH_TIMEOUT, SECRET_KEPT};
use fanfold_http_client::aws::{Aws, AwsError};
use fanfold_http_client::body;

use super::reference::Reference;

/// Fetches secrets.
#[derive(Clone)]
pub(super) struct Vault {
    aws: Aws,
    world: World,
    kept: Arc<Mutex<HashMap<Reference, Kept>>>,
}

/// A value that was fetched.
struct Kept {
    value: String,
    /// When it was fetched.
    at: Timestamp,
    /// When it is fetched again.
    until: Timestamp,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault")
    }
}

impl Vault {
    pub(super) fn new(aws: Aws, world: World) -> Self {
        Self { aws, world, kept: Arc::default() }
    }

    /// The value of a secret: as it was fetched, if it may be used for so long from now on. If it cannot be fetched again, the one
    /// that was fetched before.
    pub(super) async fn get(&self, reference: &Reference, most: Duration, ahead: Duration) -> Result<String, String> {
        let now = self.world.now();
        let kept =
            self.lock().get(reference).filter(|kept| now.plus(ahead) < kept.until).map(|kept| kept.value.clone());
        if let Some(value) = kept {
            return Ok(value);
        }
        match self.fetch(reference, most).await {
            Ok(value) => {
                let kept = Kept { value: value.clone(), at: now, until: now.plus(SECRET_KEPT) };
                self.lock().insert(reference.clone(), kept);
                Ok(value)
            }
            Err(problem) => {
                let mut all = self.lock();
                let Some(kept) = all.get_mut(reference) else { return Err(problem) };
                tracing::warn!(%reference, problem, "a secret cannot be fetched again; the value from before is used");
                kept.until = now.plus(SECRET_AGAIN);
                Ok(kept.value.clone())
            }
        }
    }

    /// A call with a secret was refused: it may have another value by now, so it is fetched again, unless it was just now.
    pub(super) fn doubt(&self, reference: &Reference) {
        let now = self.world.now();
        if let Some(kept) = self.lock().get_mut(reference).filter(|kept| now.since(kept.at) >= SECRET_DOUBTED) {
            kept.until = kept.until.min(now);
        }
    }

    async fn fetch(&self, reference: &Reference, most: Duration) -> Result<String, String> {
        let timeout = SECRET_FETCH_TIMEOUT.min(most);
        let answer = self.aws.send(reference.call(), timeout, self.world.now()).await;
        let mut answer = answer.map_err(|error| problem(reference.service(), &error))?;
        match body(&mut answer, SECRET_ANSWER_BYTES_MAX).await {
            Ok(Some(answer)) => reference.value(&answer),
            Ok(None) => Err(format!("the answer has more than {SECRET_ANSWER_BYTES_MAX} bytes")),
            Err(_) => Err("the answer broke off".to_owned()),
        }
    }

    /// Nothing can panic while it is locked, and what is in it would be whole even then.
    fn lock(&self) -> MutexGuard<'_, HashMap<Reference, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a secret was not fetched.
fn problem(service: &str, error: &AwsError) -> String {
    match error {
        AwsError::NotMade(why) => why.clone(),
        AwsError::NoAnswer(_) => format!("{service} does not answer"),
        AwsError::Refused(refused) => refused.answered_by(service),
    }
}
