//! Requests to SQS, signed with the user's credentials.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_credential_types::provider::ProvideCredentials;
use aws_sdk_sqs::config::{Credentials, SharedCredentialsProvider};
use fanfold::clock::World;
use fanfold_http_client::aws::{Aws, AwsCall, AwsError, Service};
use fanfold_http_client::body;
use serde_json::{Map, Value};

use crate::client::connection::Connection;
use crate::failure::Failure;

/// How long a request may take beside what it waits for.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of an answer: ten messages at most.
const ANSWER_BYTES: usize = 16 * 1_024 * 1_024;

/// SQS in the region of a stack.
#[derive(Debug)]
pub(super) struct Sqs {
    credentials: SharedCredentialsProvider,
    region: String,
    world: World,
    /// With the credentials that it signs with, which expire.
    signing: Mutex<Option<(Credentials, Aws)>>,
}

impl Sqs {
    /// `prefix`: what the ARNs of its queues begin with, which names the region.
    pub(super) fn new(connection: &Connection, prefix: &str) -> Result<Self, Failure> {
        let region = prefix.split(':').nth(3).unwrap_or_default().to_owned();
        let credentials = connection.credentials(&format!("SQS in {region}"))?;
        Ok(Self { credentials, region, world: World::system(), signing: Mutex::default() })
    }

    /// Makes a request. `waits`: how long SQS may wait for something to answer.
    pub(super) async fn call(
        &self,
        action: &str,
        parameters: Value,
        waits: Duration,
    ) -> Result<Map<String, Value>, String> {
        let aws = self.signing().await?;
        let bytes = parameters.to_string().into_bytes();
        let call = AwsCall::post(Service::Sqs, "/", "application/x-amz-json-1.0", bytes)
            .header("x-amz-target", format!("AmazonSQS.{action}"));
        let answer = aws.send(call, TIMEOUT + waits, self.world.now()).await;
        let mut answer = answer.map_err(|error| problem(action, &error))?;
        let broken = |why: String| format!("{action}: {why}");
        let body = body(&mut answer, ANSWER_BYTES).await.map_err(|error| broken(error.to_string()))?;
        let body = body.ok_or_else(|| broken(format!("the answer has more than {ANSWER_BYTES} bytes")))?;
        if body.trim_ascii().is_empty() {
            return Ok(Map::new());
        }
        serde_json::from_slice(&body).map_err(|error| broken(error.to_string()))
    }

    /// What signs with credentials that have not expired.
    async fn signing(&self) -> Result<Aws, String> {
        let now = self.credentials.provide_credentials().await.map_err(|error| format!("no credentials: {error}"))?;
        let mut signing = self.signing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, aws)) = signing.as_ref().filter(|(before, _)| *before == now) {
            return Ok(aws.clone());
        }
        let aws = Aws::new(|name| match name {
            "AWS_REGION" => Some(self.region.clone()),
            "AWS_ACCESS_KEY_ID" => Some(now.access_key_id().to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(now.secret_access_key().to_owned()),
            "AWS_SESSION_TOKEN" => now.session_token().map(str::to_owned),
            name => std::env::var(name).ok().filter(|value| !value.is_empty()),
        });
        *signing = Some((now, aws.clone()));
        Ok(aws)
    }
}

/// Why a request failed, in short.
fn problem(action: &str, error: &AwsError) -> String {
    match error {
        AwsError::NoAnswer(cause) => {
            let cause = fanfold_http_client::innermost(cause).unwrap_or_else(|| "no answer in time".to_owned());
            format!("{action}: SQS cannot be reached: {cause}")
        }
        error => format!("{action}: {error}"),
    }
}
