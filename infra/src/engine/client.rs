//! SDK clients over the connector.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, StalledStreamProtectionConfig};
use aws_smithy_async::rt::sleep::TokioSleep;

use super::connector::Connector;
use super::in_process::{Endpoint, Unadorned, Unsigned};
use super::place::REGION;

/// Longer than the longest poll of a queue, 20 s.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// The options of both clients; their builders are different types with the same methods.
macro_rules! configured {
    ($builder:expr, $connector:expr) => {
        $builder
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(REGION))
            .endpoint_resolver(Endpoint::new())
            .push_auth_scheme(Unsigned::new())
            .interceptor(Unadorned)
            .http_client($connector)
            .sleep_impl(TokioSleep::new())
            .retry_config(RetryConfig::standard())
            .retry_partition(partition())
            .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_TIMEOUT).build())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build()
    };
}

pub(super) fn dynamodb(connector: Connector) -> aws_sdk_dynamodb::Client {
    let config = configured!(aws_sdk_dynamodb::Config::builder(), connector);
    aws_sdk_dynamodb::Client::from_conf(config)
}

pub(super) fn sqs(connector: Connector) -> aws_sdk_sqs::Client {
    let config = configured!(aws_sdk_sqs::Config::builder(), connector);
    aws_sdk_sqs::Client::from_conf(config)
}

/// Retry quotas are shared by a whole process unless partitioned: faults given to one client would starve the others.
fn partition() -> RetryPartition {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    RetryPartition::new(format!("embedded-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}
