//! Functions invoked by a schedule.

use crate::emf::Metrics;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

/// Serves a function that ignores its event until Lambda ends the process. Its report is logged; after an error the next
/// invocation starts anew.
///
/// # Errors
/// The runtime API cannot be reached.
pub async fn schedule<R, E>(invoke: impl AsyncFn() -> Result<R, E>) -> Result<(), Error>
where
    R: std::fmt::Debug,
    E: std::error::Error + Send + Sync + 'static,
{
    let (invoke, metrics) = (&invoke, &Metrics::install());
    lambda_runtime::run(service_fn(|_: LambdaEvent<Value>| async move {
        let report = invoke().await;
        metrics.write();
        let report = report?;
        tracing::info!(?report);
        Ok::<_, Error>(())
    }))
    .await
}
