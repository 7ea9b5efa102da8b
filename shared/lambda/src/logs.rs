//! Logging of functions, as Lambda's logging controls set it.

use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::variable;

/// Logs to the standard output from now on: as JSON if `AWS_LAMBDA_LOG_FORMAT` is `JSON`, otherwise as text.
pub(crate) fn start() {
    let json = variable("AWS_LAMBDA_LOG_FORMAT").is_some_and(|format| format.eq_ignore_ascii_case("json"));
    let lines = fmt::layer().with_target(false).without_time();
    let lines = if json { lines.json().boxed() } else { lines.boxed() };
    tracing_subscriber::registry().with(lines.with_filter(filter(variable))).init();
}

/// The level is that of `AWS_LAMBDA_LOG_LEVEL`, else that of `RUST_LOG` (which may name single targets), else `INFO`.
fn filter(variable: impl Fn(&str) -> Option<String>) -> Targets {
    let targets = match variable("AWS_LAMBDA_LOG_LEVEL") {
        // Lambda knows a level above errors.
        Some(level) if level.eq_ignore_ascii_case("fatal") => Some(Targets::new().with_default(LevelFilter::ERROR)),
        Some(level) => level.parse::<LevelFilter>().ok().map(|level| Targets::new().with_default(level)),
        None => variable("RUST_LOG").and_then(|directives| directives.parse().ok()),
    };
    targets.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn lambdas_level_decides_before_rusts() {
        let filter = |lambda: Option<&str>, rust: Option<&str>| {
            filter(|name| if name == "RUST_LOG" { rust } else { lambda }.map(str::to_owned))
        };
        let logs = |filter: &Targets, level| filter.would_enable("fanfold", &level);
        for (lambda, rust, most) in [
            (None, None, Level::INFO),
            (Some("DEBUG"), Some("error"), Level::DEBUG),
            (Some("FATAL"), None, Level::ERROR),
            (Some("what"), None, Level::INFO),
            (None, Some("warn"), Level::WARN),
            (None, Some("fanfold=loud"), Level::INFO),
        ] {
            let filter = filter(lambda, rust);
            for level in [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE] {
                assert_eq!(logs(&filter, level), level <= most, "{lambda:?} {rust:?} {level}");
            }
        }
        let single = filter(None, Some("fanfold=debug"));
        assert!(logs(&single, Level::DEBUG) && !single.would_enable("hyper", &Level::ERROR));
    }
}
