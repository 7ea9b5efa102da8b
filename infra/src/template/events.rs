//! What invokes the functions of a template: queues, schedules and HTTP routes.

use std::time::Duration;

use super::TemplateError;
use super::field::Field;
use super::functions::{Declared, Function};
use super::queues::queue_of;
use crate::engine::place;

/// Properties of an SQS event that change nothing on one machine.
const IGNORED: [&str; 2] = ["KmsKeyArn", "MetricsConfig"];

/// A queue that invokes a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSource {
    /// Logical id of the function.
    pub function: String,
    /// Logical id of the queue.
    pub queue: String,
    /// The queue's URL in the embedded SQS.
    pub queue_url: String,
    /// The most messages of one invocation.
    pub batch_size: usize,
    /// How long to wait, from a first message on, for a batch to fill.
    pub window: Duration,
    /// The most invocations at once, if limited.
    pub maximum_concurrency: Option<usize>,
    /// Whether the function names the messages that failed (`ReportBatchItemFailures`).
    pub reports_failures: bool,
    /// Whether messages are taken at all.
    pub enabled: bool,
    /// How long an invocation may run.
    pub timeout: Duration,
    /// MB of memory of the function.
    pub memory: u32,
}

/// A schedule that invokes a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Logical id of the function.
    pub function: String,
    /// When, as in `rate(1 minute)`.
    pub expression: String,
    /// Whether it runs at all.
    pub enabled: bool,
}

/// An HTTP route that invokes a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Logical id of the function.
    pub function: String,
    /// The method in capitals, `ANY` for all.
    pub method: String,
    /// The path, with parameters as in `/fanouts/{id}`.
    pub path: String,
}

/// Reads an event and adds it to its function.
pub(super) fn read(name: &str, event: &Field<'_>, declared: &mut Declared) -> Result<(), TemplateError> {
    let kind = event.require("Type")?;
    let function = declared.function.name.clone();
    match kind.text()?.as_str() {
        "SQS" => {
            let properties = event.require("Properties")?;
            declared.sources.push(read_source(&declared.function, &properties)?);
        }
        "Schedule" => declared.schedules.push(read_schedule(function, "Schedule", &event.require("Properties")?)?),
        "ScheduleV2" => {
            declared.schedules.push(read_schedule(function, "ScheduleExpression", &event.require("Properties")?)?);
        }
        "HttpApi" => {
            let properties = event.require("Properties")?;
            let method = properties.require("Method")?.text()?.to_ascii_uppercase();
            declared.routes.push(Route { function, method, path: properties.require("Path")?.text()? });
        }
        _ => return Err(kind.wrong(&format!("event {name} has a type the local runner does not know"))),
    }
    Ok(())
}

fn read_source(function: &Function, properties: &Field<'_>) -> Result<EventSource, TemplateError> {
    let mut source = EventSource {
        function: function.name.clone(),
        queue: queue_of(&properties.require("Queue")?)?,
        queue_url: String::new(),
        batch_size: 10,
        window: Duration::ZERO,
        maximum_concurrency: None,
        reports_failures: false,
        enabled: true,
        timeout: function.timeout,
        memory: function.memory,
    };
    source.queue_url = place::queue_url(&source.queue);
    for (name, field) in properties.entries()? {
        match name.as_str() {
            "Queue" => {}
            "BatchSize" => source.batch_size = field.number(1..=10_000)? as usize,
            "MaximumBatchingWindowInSeconds" => {
                source.window = Duration::from_secs(field.number(0..=300)?.into());
            }
            "ScalingConfig" => {
                if let Some(most) = field.get("MaximumConcurrency")? {
                    source.maximum_concurrency = Some(most.number(2..=1000)? as usize);
                }
            }
            "FunctionResponseTypes" => {
                for kind in field.items()? {
                    if kind.text()? != "ReportBatchItemFailures" {
                        return Err(kind.wrong("must be ReportBatchItemFailures"));
                    }
                    source.reports_failures = true;
                }
            }
            "Enabled" => source.enabled = field.boolean()?,
            other if IGNORED.contains(&other) => {}
            _ => return Err(field.wrong("the local runner does not know this property of an SQS event")),
        }
    }
    if source.batch_size > 10 && source.window.is_zero() {
        return Err(properties.require("BatchSize")?.wrong("more than 10 needs MaximumBatchingWindowInSeconds"));
    }
    Ok(source)
}

fn read_schedule(function: String, when: &str, properties: &Field<'_>) -> Result<Schedule, TemplateError> {
    let expression = properties.require(when)?.text()?;
    let enabled = match (properties.get("Enabled")?, properties.get("State")?) {
        (Some(enabled), _) => enabled.boolean()?,
        (None, Some(state)) => state.text()? == "ENABLED",
        (None, None) => true,
    };
    Ok(Schedule { function, expression, enabled })
}
