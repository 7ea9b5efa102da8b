//! What the dashboard plots of a deployed stack: its metrics in CloudWatch, as `GET /metrics` of a local stack shows them.
//!
//! CloudWatch knows sums of minutes, and knows them some time after each. So what is shown lies a few minutes back, and grows evenly over
//! each minute: then a page that compares two readings sees the rate of that minute.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_smithy_types::date_time::{DateTime, Format};
use fanfold::clock::{Timestamp, World};
use fanfold::metrics::{BATCH_SIZE, ITEMS_ACKED, REGISTERED_TO_CALLED};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::aws_cli::{AwsCli, AwsCliError};

/// The namespace of the metrics of all stacks.
const NAMESPACE: &str = "Fanfold";

/// How far back a reading lies. Metrics that come with logs take a minute or two.
const BEHIND: Duration = Duration::from_secs(3 * 60);

/// Minutes before the first reading that are asked for.
const BEFORE: u64 = 2;

/// How often CloudWatch is asked. Each metric that it is asked for costs 0.00001 dollars.
const EVERY: Duration = Duration::from_secs(60);

const MINUTE: u64 = 60_000;

/// What is asked for: the name that a reading has, the metric, and the statistic.
const SERIES: [(&str, &str, &str); 5] = [
    ("", ITEMS_ACKED, "Sum"),
    ("_sum", BATCH_SIZE, "Sum"),
    ("_count", BATCH_SIZE, "SampleCount"),
    ("_sum", REGISTERED_TO_CALLED, "Sum"),
    ("_count", REGISTERED_TO_CALLED, "SampleCount"),
];

/// A value of each series.
type Values = [f64; SERIES.len()];

/// The metrics of a stack.
#[derive(Debug)]
pub(super) struct Plotted {
    stack: String,
    cli: AwsCli,
    known: Mutex<Known>,
}

/// What is known, and what came of asking last.
#[derive(Debug, Default)]
struct Known {
    minutes: Minutes,
    asked: Option<Timestamp>,
    refused: Option<String>,
}

/// What is said instead of metrics.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) String);

impl Plotted {
    pub(super) fn new(stack: String, cli: AwsCli) -> Self {
        Self { stack, cli, known: Mutex::default() }
    }

    /// A reading, in the text format of Prometheus.
    pub(super) async fn text(&self) -> Result<String, Refused> {
        let mut known = self.known.lock().await;
        let now = World::system().now();
        if known.asked.is_none_or(|asked| now.since(asked) >= EVERY) {
            known.asked = Some(now);
            let (cli, command) = (self.cli.clone(), command(&self.stack, now));
            let asked =
                tokio::task::spawn_blocking(move || cli.json(&command.iter().map(String::as_str).collect::<Vec<_>>()));
            known.refused = match asked.await {
                Ok(Ok(answer)) => {
                    known.minutes.add(&answer, now);
                    None
                }
                Ok(Err(error)) => Some(said(&error)),
                Err(error) => Some(error.to_string()),
            };
        }
        match &known.refused {
            Some(refused) => Err(Refused(refused.clone())),
            None => Ok(text(&known.minutes.reading(now))),
        }
    }
}

/// Why there is nothing to plot, and what a person can do about it.
fn said(error: &AwsCliError) -> String {
    match error {
        AwsCliError::Failed { said, .. } if said.contains("AccessDenied") => {
            "Plots need the permission `cloudwatch:GetMetricData`, which these credentials do not have.".to_owned()
        }
        AwsCliError::Failed { said, .. } => {
            format!("CloudWatch was not read: {}", said.lines().next_back().unwrap_or_default())
        }
        error => format!("CloudWatch was not read: {error}"),
    }
}

/// The command that asks for the minutes up to now.
fn command(stack: &str, now: Timestamp) -> Vec<String> {
    let query = |(at, (_, metric, statistic)): (usize, &(&str, &str, &str))| {
        let metric =
            json!({"Namespace": NAMESPACE, "MetricName": metric, "Dimensions": [{"Name": "stack", "Value": stack}]});
        json!({"Id": format!("m{at}"), "MetricStat": {"Metric": metric, "Period": 60, "Stat": statistic}})
    };
    let queries: Vec<Value> = SERIES.iter().enumerate().map(query).collect();
    let began = Timestamp(played(now).saturating_sub(BEFORE) * MINUTE);
    let words = ["cloudwatch", "get-metric-data", "--metric-data-queries", &Value::from(queries).to_string()];
    let times = ["--start-time", &began.rfc3339_seconds(), "--end-time", &now.rfc3339_seconds()];
    words.into_iter().chain(times).map(str::to_owned).collect()
}

/// The minute that a reading now is in, counted from 1970.
fn played(now: Timestamp) -> u64 {
    now.minus(BEHIND).0 / MINUTE
}

/// Sums of minutes.
#[derive(Debug, Default)]
struct Minutes {
    /// The minute that was shown last.
    shown: Option<u64>,
    /// Of all minutes that are over.
    before: Values,
    later: BTreeMap<u64, Values>,
}

impl Minutes {
    /// Takes over what CloudWatch answered. What it adds to minutes that were shown is left out: it would look like a jump.
    fn add(&mut self, answer: &Value, now: Timestamp) {
        let from = self.shown.map_or(played(now), |shown| shown + 1);
        for result in answer["MetricDataResults"].as_array().into_iter().flatten() {
            let at = result["Id"].as_str().and_then(|id| id.strip_prefix('m')?.parse::<usize>().ok());
            let Some(at) = at.filter(|at| *at < SERIES.len()) else { continue };
            let times = result["Timestamps"].as_array().into_iter().flatten().map(minute);
            let values = result["Values"].as_array().into_iter().flatten().map(Value::as_f64);
            for (minute, value) in times.zip(values) {
                if let (Some(minute), Some(value)) = (minute.filter(|minute| *minute >= from), value) {
                    self.later.entry(minute).or_default()[at] = value;
                }
            }
        }
    }

    /// What was counted until the moment that a reading now shows.
    fn reading(&mut self, now: Timestamp) -> Values {
        let at = now.minus(BEHIND).0;
        self.pass(at / MINUTE);
        self.shown = Some(at / MINUTE);
        let over = (at % MINUTE) as f64 / MINUTE as f64;
        let part = self.later.get(&(at / MINUTE)).copied().unwrap_or_default();
        std::array::from_fn(|series| self.before[series] + over * part[series])
    }

    /// Adds up the minutes before this one.
    fn pass(&mut self, minute: u64) {
        let left = self.later.split_off(&minute);
        for values in std::mem::replace(&mut self.later, left).into_values() {
            self.before = std::array::from_fn(|series| self.before[series] + values[series]);
        }
    }
}

/// The minute of a time as the AWS CLI prints it.
fn minute(time: &Value) -> Option<u64> {
    let time = DateTime::from_str(time.as_str()?, Format::DateTimeWithOffset).ok()?;
    u64::try_from(time.secs()).ok().map(|seconds| seconds / 60)
}

fn text(values: &Values) -> String {
    let line = |((suffix, metric, _), value): (&(&str, &str, &str), &f64)| format!("{metric}{suffix} {value}\n");
    SERIES.iter().zip(values).map(line).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// 2026-11-26T04:00:00Z.
    const NOW: Timestamp = Timestamp(1_795_665_600_000);

    fn after(seconds: u64) -> Timestamp {
        NOW.plus(Duration::from_secs(seconds))
    }

    /// As the AWS CLI prints it; minutes without values are left out.
    fn answer() -> Value {
        let result = |id: &str, times: &[&str], values: &[f64]| json!({"Id": id, "Label": "x", "Timestamps": times, "Values": values, "StatusCode": "Complete"});
        let (third, second, first) =
            ("2026-11-26T03:59:00+00:00", "2026-11-26T03:58:00+00:00", "2026-11-26T03:57:00+00:00");
        json!({"MetricDataResults": [
            result("m0", &[third, second, first], &[60.0, 120.0, 600.0]),
            result("m1", &[second], &[40.0]),
            result("m2", &[second], &[4.0]),
            result("m3", &[], &[]),
            result("m4", &[], &[]),
        ], "Messages": []})
    }

    #[test]
    fn what_a_minute_counted_is_shown_evenly_over_a_minute() {
        let mut minutes = Minutes::default();
        minutes.add(&answer(), NOW);
        assert_eq!(minutes.reading(NOW), Values::default());
        assert_eq!(minutes.reading(after(30)), [300.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(minutes.reading(after(90)), [660.0, 20.0, 2.0, 0.0, 0.0]);
        assert_eq!(minutes.reading(after(120)), [720.0, 40.0, 4.0, 0.0, 0.0]);
        assert_eq!(minutes.reading(after(150)), [750.0, 40.0, 4.0, 0.0, 0.0]);
        assert_eq!(minutes.reading(after(600)), [780.0, 40.0, 4.0, 0.0, 0.0]);
    }

    #[test]
    fn what_comes_late_for_a_minute_that_was_shown_is_no_jump() {
        let mut minutes = Minutes::default();
        minutes.add(&answer(), NOW);
        let before = minutes.reading(after(179));
        minutes.add(&answer(), after(179));
        assert_eq!(minutes.reading(after(179)), before);
    }

    #[test]
    fn a_missing_permission_is_named() {
        assert!(
            said_of("An error occurred (AccessDeniedException) when calling …").contains("`cloudwatch:GetMetricData`")
        );
        assert_eq!(said_of("\nno such region"), "CloudWatch was not read: no such region");
    }

    fn said_of(said: &str) -> String {
        super::said(&AwsCliError::Failed { command: "cloudwatch get-metric-data".to_owned(), said: said.to_owned() })
    }

    #[test]
    fn a_reading_has_the_names_of_a_local_stack() {
        let names: Vec<String> =
            text(&Values::default()).lines().map(|line| line.trim_end_matches(" 0").to_owned()).collect();
        let expected = [
            "fanfold_items_acked",
            "fanfold_batch_size_sum",
            "fanfold_batch_size_count",
            "fanfold_registered_to_called_seconds_sum",
            "fanfold_registered_to_called_seconds_count",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn the_minutes_around_what_is_shown_are_asked_for() {
        let words = command("shop", NOW);
        assert_eq!(words[..3], ["cloudwatch", "get-metric-data", "--metric-data-queries"]);
        assert_eq!(words[4..], ["--start-time", "2026-11-26T03:55:00Z", "--end-time", "2026-11-26T04:00:00Z"]);
        let queries: Value = serde_json::from_str(&words[3]).unwrap();
        assert_eq!(queries[4]["MetricStat"]["Stat"], "SampleCount");
        assert_eq!(queries[4]["MetricStat"]["Metric"]["Dimensions"][0]["Value"], "shop");
    }
}
