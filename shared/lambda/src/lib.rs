//! What the mains of the Lambda functions share: clients from the environment, and adapters between Lambda's events and
//! the steps.

mod emf;
mod http;
mod queue;
mod schedule;

use aws_config::BehaviorVersion;
use aws_smithy_http_client::{Builder, tls};
use fanfold::clock::World;
use fanfold::config::Surroundings;

pub use http::{http, queue_or_http};
pub use lambda_runtime::Error;
pub use queue::queue;
pub use schedule::schedule;

/// Starts logging (as `AWS_LAMBDA_LOG_FORMAT` and `AWS_LAMBDA_LOG_LEVEL` set) and makes clients from the environment: region,
/// credentials, and `AWS_ENDPOINT_URL` for an emulator.
pub async fn start() -> Surroundings {
    lambda_runtime::tracing::init_default_subscriber();
    let tls = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    let client = Builder::new().tls_provider(tls).build_https();
    let config = aws_config::defaults(BehaviorVersion::latest()).http_client(client).load().await;
    Surroundings::new(
        aws_sdk_dynamodb::Client::new(&config),
        aws_sdk_sqs::Client::new(&config),
        World::system(),
        |name| std::env::var(name).ok(),
    )
}

/// The name of this function, which has its stack's name in it.
fn function() -> String {
    std::env::var("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default()
}
