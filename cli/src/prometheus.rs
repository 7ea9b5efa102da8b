//! `GET /metrics`: what the steps of this process counted and measured, in the text format of Prometheus.

use std::fmt::Write as _;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::{Router, routing};
use fanfold::metrics::{ALL, in_seconds};

use crate::counters::Counters;
use crate::latencies::Latencies;

/// The version of the format.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Upper bounds of the buckets of times, in seconds.
const SECONDS: [f64; 15] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3_600.0];

/// Upper bounds of the buckets of sizes.
const SIZES: [f64; 12] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 10_000.0];

/// The route.
pub(crate) fn router(counters: Counters) -> Router {
    let answer = async move || ([(CONTENT_TYPE, FORMAT)], render(&counters)).into_response();
    Router::new().route("/metrics", routing::get(answer))
}

fn render(counters: &Counters) -> String {
    let mut text = String::new();
    head(&mut text, "fanfold_info", "gauge", "Fanfold's version.");
    line(&mut text, "fanfold_info", &format!("{{version=\"{}\"}}", env!("CARGO_PKG_VERSION")), 1);
    for (name, count) in counters.counted() {
        head(&mut text, &name, "counter", says(&name));
        line(&mut text, &name, "", count);
    }
    for (name, value) in counters.gauged() {
        head(&mut text, &name, "gauge", says(&name));
        line(&mut text, &name, "", value);
    }
    for (name, latencies) in counters.measured() {
        head(&mut text, &name, "histogram", says(&name));
        histogram(&mut text, &name, &latencies);
    }
    text
}

/// What a metric says.
fn says(name: &str) -> &'static str {
    ALL.iter().find(|(other, _)| *other == name).map_or("", |(_, says)| says.trim())
}

fn head(text: &mut String, name: &str, kind: &str, says: &str) {
    // Writing to a text does not fail.
    let _ = writeln!(text, "# HELP {name} {says}\n# TYPE {name} {kind}");
}

fn line(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name}{labels} {value}");
}

fn histogram(text: &mut String, name: &str, latencies: &Latencies) {
    let bounds: &[f64] = if in_seconds(name) { &SECONDS } else { &SIZES };
    let counts = latencies.counts();
    let all: u64 = counts.iter().sum();
    for bound in bounds {
        let below: u64 = counts.iter().take(Latencies::place(*bound) + 1).sum();
        line(text, &format!("{name}_bucket"), &format!("{{le=\"{bound}\"}}"), below);
    }
    line(text, &format!("{name}_bucket"), "{le=\"+Inf\"}", all);
    line(text, &format!("{name}_sum"), "", latencies.sum());
    line(text, &format!("{name}_count"), "", all);
}

#[cfg(test)]
mod tests {
    use fanfold::metrics::{BATCH_SIZE, CALLED_TO_ANSWERED, OLDEST_WAITING, RETRIES};
    use metrics::{HistogramFn, Key, Level, Metadata, Recorder};

    use super::*;

    #[test]
    fn all_sorts_are_rendered_with_what_they_say() {
        let counters = Counters::default();
        counters.add(RETRIES, 3);
        let about = Metadata::new("", Level::INFO, None);
        counters.register_gauge(&Key::from_static_name(OLDEST_WAITING), &about).set(1.5);
        let took = counters.latencies(CALLED_TO_ANSWERED);
        took.record(0.25);
        took.record_many(20.0, 2);
        counters.latencies(BATCH_SIZE).record(10.0);
        let text = render(&counters);
        for expected in [
            "# HELP fanfold_retries Attempts after which another one is due.\n# TYPE fanfold_retries counter\nfanfold_retries 3\n",
            "# TYPE fanfold_oldest_waiting_seconds gauge\nfanfold_oldest_waiting_seconds 1.5\n",
            "fanfold_called_to_answered_seconds_bucket{le=\"0.1\"} 0\n",
            "fanfold_called_to_answered_seconds_bucket{le=\"0.25\"} 1\n",
            "fanfold_called_to_answered_seconds_bucket{le=\"30\"} 3\n",
            "fanfold_called_to_answered_seconds_bucket{le=\"+Inf\"} 3\nfanfold_called_to_answered_seconds_sum 40.25\nfanfold_called_to_answered_seconds_count 3\n",
            "fanfold_batch_size_bucket{le=\"5\"} 0\nfanfold_batch_size_bucket{le=\"10\"} 1\n",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }

    #[test]
    fn each_line_is_one_of_the_format() {
        let counters = Counters::default();
        counters.add(RETRIES, 1);
        counters.latencies(BATCH_SIZE).record(7.0);
        for line in render(&counters).lines() {
            let sample = line.rsplit_once(' ').filter(|(name, value)| !name.is_empty() && value.parse::<f64>().is_ok());
            assert!(line.starts_with("# HELP ") || line.starts_with("# TYPE ") || sample.is_some(), "{line}");
        }
    }
}
