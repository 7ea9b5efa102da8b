//! Logging to standard error.

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

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
    let asked = std::env::var("RUST_LOG").ok().and_then(|directives| directives.parse::<Targets>().ok());
    let filter = asked.or_else(|| default.parse().ok()).unwrap_or_default();
    // Nobody may be listening any more.
    let lines = fmt::layer().with_writer(|| say::Above).with_ansi(say::colours()).log_internal_errors(false);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}
