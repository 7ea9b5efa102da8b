//! Logging to standard error.

use tracing_subscriber::EnvFilter;

use crate::say;

/// Logs as much as is asked for by `-v`, or by `RUST_LOG`. A run reports in words of its own that its kind stands still.
pub(crate) fn start(verbose: u8, runs: bool) {
    let default = match verbose {
        // The embedded engines have no connections that could be closed, which the SDK takes for an error.
        0 if runs => "error,fanfold_handle::breaker=off,aws_smithy_runtime::client::http::connection_poisoning=off",
        0 => "error,aws_smithy_runtime::client::http::connection_poisoning=off",
        1 => "info",
        _ => "debug,hyper=info,rustack_sqs_core=info,aws_smithy_runtime=info,aws_smithy_runtime_api=info",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| say::Above);
    // Nobody may be listening any more.
    log.with_ansi(say::colours()).log_internal_errors(false).init();
}
