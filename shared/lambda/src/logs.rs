//! Logging of functions, as Lambda's logging controls set it.

use std::panic::PanicHookInfo;

use fanfold::clock::World;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{self, FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::variable;

/// Writes a line of JSON per event: time, level and message, the fields of the event, and those of the spans that it is in, such
/// as batch, lane and fan-out, and the function's name: all functions may share one log. All are on one level, so that a query
/// finds them under one name. Lambda needs time and level.
struct Lines {
    world: World,
    function: String,
}

/// The fields of an event.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut line = Map::new();
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<N>>().and_then(|fields| serde_json::from_str(fields).ok());
            line.extend(fields.unwrap_or_else(Map::new));
        }
        event.record(&mut Fields(&mut line));
        line.insert("function".to_owned(), self.function.as_str().into());
        line.insert("timestamp".to_owned(), self.world.now().rfc3339().into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Logs to the standard output from now on: as JSON if `AWS_LAMBDA_LOG_FORMAT` is `JSON`, otherwise as text.
pub(crate) fn start() {
    let json = variable("AWS_LAMBDA_LOG_FORMAT").is_some_and(|format| format.eq_ignore_ascii_case("json"));
    let lines = if json {
        let lines = Lines { world: World::system(), function: crate::function() };
        fmt::layer().event_format(lines).fmt_fields(JsonFields::new()).boxed()
    } else {
        fmt::layer().with_target(false).without_time().boxed()
    };
    tracing_subscriber::registry().with(lines.with_filter(filter(variable))).init();
    std::panic::set_hook(Box::new(tell));
}

/// Logs a panic as an error, like others. What Rust would write has no level, and Lambda would take it for a line of `INFO`.
fn tell(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(|place| format!(", at {place}")).unwrap_or_default();
    let error = format!("{}{place}", panic.payload_as_str().unwrap_or("it is no text"));
    tracing::error!(error, "the function panicked, which ends its process");
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

    /// A log that can be read again.
    #[derive(Clone, Default)]
    struct Written(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The line that is logged meanwhile.
    fn logged(run: impl FnOnce()) -> Map<String, Value> {
        let written = Written::default();
        let log = written.clone();
        let lines = Lines { world: World::system(), function: "shop-AckFunction-1".to_owned() };
        let lines = fmt::layer().event_format(lines).fmt_fields(JsonFields::new());
        let lines = lines.with_writer(move || log.clone());
        let subscriber =
            tracing_subscriber::registry().with(lines.with_filter(Targets::new().with_default(LevelFilter::WARN)));
        tracing::subscriber::with_default(subscriber, run);
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_panic_is_an_error_in_the_log() {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(tell));
        let line = logged(|| drop(std::panic::catch_unwind(|| panic!("no {}", "way")).unwrap_err()));
        std::panic::set_hook(before);
        assert_eq!((&line["level"], &line["function"]), (&"ERROR".into(), &"shop-AckFunction-1".into()));
        let error = line["error"].as_str().unwrap();
        assert!(error.starts_with("no way, at ") && error.contains("logs.rs:"), "{error}");
    }

    #[test]
    fn a_line_carries_the_fields_of_its_spans_time_and_level() {
        let mut line = logged(|| {
            let outer = tracing::error_span!("batch", batch = "b1", lane = %"parcel:0:NY");
            let _outer = outer.enter();
            let _inner = tracing::error_span!("call", attempt = 2_u32).entered();
            tracing::warn!(error = "a \"quoted\"\nline", members = 3_u64, "the call {}", "failed");
            tracing::info!("not logged");
        });
        let time = line.remove("timestamp").unwrap();
        assert!(time.as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z')), "{time}");
        let wanted = serde_json::json!({
            "level": "WARN", "message": "the call failed", "error": "a \"quoted\"\nline", "members": 3,
            "batch": "b1", "lane": "parcel:0:NY", "attempt": 2, "function": "shop-AckFunction-1",
        });
        assert_eq!(Value::Object(line), wanted);
    }

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
