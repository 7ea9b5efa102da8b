//! Credentials to sign requests with: those of the environment, or those that the AWS CLI has.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, future};
use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};

use super::aws_cli::AwsCli;

/// How long before they expire new ones are asked for.
const EARLY: Duration = Duration::from_secs(60);

/// The credentials of the environment, if it has some.
pub(super) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Option<SharedCredentialsProvider> {
    let (id, secret) = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY"))?;
    let credentials = Credentials::new(id, secret, variable("AWS_SESSION_TOKEN"), None, "environment");
    Some(SharedCredentialsProvider::new(credentials))
}

/// The AWS CLI's credentials, which are asked for again before they expire.
#[derive(Debug)]
pub(super) struct OfAwsCli {
    cli: AwsCli,
    kept: Mutex<Credentials>,
}

impl OfAwsCli {
    /// With the credentials that it has returned.
    pub(super) fn new(cli: AwsCli, credentials: Credentials) -> Self {
        Self { cli, kept: Mutex::new(credentials) }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "credentials expire by the system's clock, and nothing of it is simulated"
    )]
    fn current(&self) -> Result<Credentials, CredentialsError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.expiry().is_some_and(|expiry| expiry < SystemTime::now() + EARLY) {
            *kept = self.cli.credentials().map_err(CredentialsError::provider_error)?;
        }
        Ok(kept.clone())
    }
}

impl ProvideCredentials for OfAwsCli {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(self.current())
    }
}
