//! What the `main.rs` of all Lambda functions share: clients from the environment, and adapters between Lambda's events and the
//! steps.

mod emf;
mod http;
mod http_event;
mod https;
mod logs;
mod queue;
mod schedule;

use std::time::Duration;

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, IdentityCache, Region, SharedCredentialsProvider};
use aws_types::SdkConfig;
use fanfold::clock::World;
use fanfold::config::Surroundings;

pub use http::{http, queue_or_http};
pub use lambda_runtime::Error;
pub use queue::queue;
pub use schedule::schedule;

/// How long an answer may take. DynamoDB and SQS answer in milliseconds, and no function polls a queue for longer than a second.
/// A connection that was lost while the function was frozen never answers: the SDK then sends the request again over another one,
/// and the invocation has time left for that.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Starts logging, and makes clients from what Lambda sets: region, credentials, and `AWS_ENDPOINT_URL` for an emulator. Other
/// sources (profiles, instances' metadata, roles to be assumed) do not exist in a function, and are not built in. Nothing is
/// connected, and no certificate is read, before the first request.
#[must_use]
pub fn start() -> Surroundings {
    logs::start();
    let config = impatient(sdk_config(), ANSWER_MAX);
    Surroundings::new(
        aws_sdk_dynamodb::Client::new(&config),
        aws_sdk_sqs::Client::new(&config),
        World::system(),
        variable,
    )
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The configuration of AWS's SDK that [`start`] makes its clients with, but without its limit on how long an answer may take: who
/// polls a queue waits for longer.
#[must_use]
pub fn sdk_config() -> SdkConfig {
    let credentials = variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY"));
    let credentials = credentials
        .map(|(id, secret)| Credentials::new(id, secret, variable("AWS_SESSION_TOKEN"), None, "environment"));
    let mut config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(variable("AWS_REGION").map(Region::new))
        .identity_cache(IdentityCache::lazy().build())
        .http_client(https::Https::default());
    config
        .set_endpoint_url(variable("AWS_ENDPOINT_URL"))
        .set_credentials_provider(credentials.map(SharedCredentialsProvider::new));
    config.build()
}

/// The same, but an answer that takes longer than this is not waited for. Time to connect is limited by the SDK itself.
fn impatient(config: SdkConfig, answers_within: Duration) -> SdkConfig {
    config.into_builder().timeout_config(TimeoutConfig::builder().read_timeout(answers_within).build()).build()
}

/// The name of this function, which has its stack's name in it.
fn function() -> String {
    std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default()
}
