//! What the `main.rs` of all Lambda functions share: clients from the environment, and adapters between Lambda's events and the
//! steps.

mod emf;
mod http;
mod https;
mod logs;
mod queue;
mod schedule;

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, IdentityCache, Region, SharedCredentialsProvider};
use aws_types::SdkConfig;
use fanfold::clock::World;
use fanfold::config::Surroundings;

pub use http::{http, queue_or_http};
pub use lambda_runtime::Error;
pub use queue::queue;
pub use schedule::schedule;

/// Starts logging, and makes clients from what Lambda sets: region, credentials, and `AWS_ENDPOINT_URL` for an emulator. Other
/// sources (profiles, instances' metadata, roles to be assumed) do not exist in a function, and are not built in. Nothing is
/// connected, and no certificate is read, before the first request.
#[must_use]
pub fn start() -> Surroundings {
    logs::start();
    let config = sdk_config();
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

/// The configuration of AWS's SDK that [`start`] makes its clients with.
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

/// The name of this function, which has its stack's name in it.
fn function() -> String {
    std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default()
}
