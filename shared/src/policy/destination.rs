//! Where notices go.

use regex_lite::Regex;
use serde::{Deserialize, Serialize};

use super::PolicyError;
use super::check::Faults;
use super::url::is_callable;
use crate::limits::{CALLBACK_ID_BYTES_MAX, EVENT_BUS_BYTES_MAX, TASK_TOKEN_BYTES_MAX, URL_BYTES_MAX};

/// Where notices go: exactly one of these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Destination {
    /// An HTTPS endpoint.
    Url(#[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::url"))] String),
    /// The stack's own queue of notices.
    Queue(NoticesQueue),
    /// A standard SQS queue in the stack's region, by its URL or ARN.
    Sqs(#[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::queue"))] String),
    /// An EventBridge bus in the stack's region, by its name or ARN.
    EventBus(#[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::event_bus"))] String),
    /// The token of a Step Functions task that waits for the end of a fan-out.
    TaskToken(#[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::task_token"))] String),
    /// The id of a callback of a Lambda durable function that waits for the end of a fan-out.
    DurableCallback(#[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::callback_id"))] String),
}

/// The stack's own queue of notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoticesQueue {
    /// `NoticesQueue` in template.yaml.
    Notices,
}

/// The pattern of the URL or ARN of a queue with one of these names. As for other URLs, `http` is for this very machine only, here
/// also by the names under which emulators show their queues: `….localhost` is reserved for it (RFC 6761), and that of LocalStack
/// is an address of it.
macro_rules! queue_named {
    ($names:literal) => {
        concat!(
            "^((https://[A-Za-z0-9.-]+",
            "|http://(([A-Za-z0-9-]+\\.)*localhost(\\.localstack\\.cloud)?|127\\.0\\.0\\.1|\\[::1\\]))",
            "(:[0-9]{1,5})?/[0-9]{12}/|arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:)",
            $names,
            "$"
        )
    };
}

/// The URL or ARN of a standard queue: the names of others end in `.fifo`.
pub(crate) const QUEUE: &str = queue_named!("[A-Za-z0-9_-]{1,80}");

/// The URL or ARN of any queue: the same, and those with ordered messages.
pub(crate) const ANY_QUEUE: &str = queue_named!("([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\\.fifo)");

/// The name or ARN of a bus (API reference of `PutEvents`).
pub(crate) const EVENT_BUS: &str = "^(arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[/._A-Za-z0-9-]+$";

/// A task token: letters that can be seen.
pub(crate) const TASK_TOKEN: &str = "^[!-~]+$";

/// A callback's id (API reference of `SendDurableExecutionCallbackSuccess`).
pub(crate) const CALLBACK_ID: &str = "^[A-Za-z0-9+/]+={0,2}$";

impl Destination {
    /// Names what is wrong with a destination of notices; `field` is what it is called where it was given.
    ///
    /// # Errors
    /// What it names cannot be used.
    pub fn check(&self, field: &str) -> Result<(), PolicyError> {
        let mut faults = Faults::default();
        self.check_for_fanout(field, &mut faults);
        faults.result()
    }

    fn check_for_fanout(&self, field: &str, faults: &mut Faults) {
        let name = format!("{field}.{}", self.name());
        let (value, pattern, most, allowed) = match self {
            Self::Queue(NoticesQueue::Notices) => return,
            Self::Url(url) => return faults.url(&name, url),
            Self::Sqs(queue) => {
                (queue, QUEUE, queue_bytes_max(queue), format!("{} is", queue_allowed("standard queue")))
            }
            Self::EventBus(bus) => {
                let allowed = format!("the name or ARN of an event bus, at most {EVENT_BUS_BYTES_MAX} bytes, is");
                (bus, EVENT_BUS, EVENT_BUS_BYTES_MAX, allowed)
            }
            Self::TaskToken(token) => {
                let allowed = format!(
                    "a token as Step Functions gives it ($$.Task.Token), at most {TASK_TOKEN_BYTES_MAX} bytes, is"
                );
                (token, TASK_TOKEN, TASK_TOKEN_BYTES_MAX, allowed)
            }
            Self::DurableCallback(id) => {
                let allowed = format!("a callback's id as Lambda gives it, at most {CALLBACK_ID_BYTES_MAX} bytes, is");
                (id, CALLBACK_ID, CALLBACK_ID_BYTES_MAX, allowed)
            }
        };
        if value.len() > most || !Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(value)) {
            faults.add(&name, format!("is `{value}`, {allowed} allowed"));
        }
    }

    /// Its name in a policy or a request.
    fn name(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Queue(_) => "queue",
            Self::Sqs(_) => "sqs",
            Self::EventBus(_) => "event_bus",
            Self::TaskToken(_) => "task_token",
            Self::DurableCallback(_) => "durable_callback",
        }
    }

    /// Who waits for the end of a fan-out, at a destination that takes one notice only.
    #[must_use]
    pub fn waits(&self) -> Option<&'static str> {
        match self {
            Self::TaskToken(_) => Some("a Step Functions task"),
            Self::DurableCallback(_) => Some("a durable function's callback"),
            Self::Url(_) | Self::Queue(_) | Self::Sqs(_) | Self::EventBus(_) => None,
        }
    }

    /// Names what is wrong with the destination of a policy, which gets many notices.
    pub(super) fn check_for_policy(&self, field: &str, faults: &mut Faults) {
        if self.waits().is_none() {
            return self.check_for_fanout(field, faults);
        }
        let problem =
            "takes one notice only, of the end of a fan-out: one of `url`, `queue`, `sqs` and `event_bus` is allowed";
        faults.add(&format!("{field}.{}", self.name()), problem);
    }
}

/// Checks the URL or ARN of a queue that batches are sent to.
///
/// # Errors
/// It is none; what is allowed.
pub(super) fn check_queue(queue: &str) -> Result<(), String> {
    if queue.len() <= queue_bytes_max(queue) && Regex::new(ANY_QUEUE).is_ok_and(|pattern| pattern.is_match(queue)) {
        return Ok(());
    }
    Err(format!("is `{queue}`, {} is allowed", queue_allowed("queue")))
}

/// The most bytes of a queue's URL or ARN: none, if its host cannot be called. Of a host the patterns know the characters only.
fn queue_bytes_max(queue: &str) -> usize {
    if !queue.starts_with("https:") || is_callable(queue) { URL_BYTES_MAX } else { 0 }
}

/// How a queue is given; `what`: which one.
fn queue_allowed(what: &str) -> String {
    format!("the URL (https://sqs.REGION.amazonaws.com/ACCOUNT/NAME, or http:// on localhost) or ARN of a {what}")
}

/// The URL of a queue that is given by its URL or ARN.
#[must_use]
pub fn queue_url(queue: &str) -> String {
    let parts: Vec<&str> = queue.split(':').collect();
    match parts[..] {
        ["arn", partition, "sqs", region, account, name] => {
            format!("https://sqs.{region}.{}/{account}/{name}", domain(partition == "aws-cn"))
        }
        _ => queue.to_owned(),
    }
}

/// The domain of AWS's endpoints, in China or elsewhere.
#[must_use]
pub fn domain(china: bool) -> &'static str {
    if china { "amazonaws.com.cn" } else { "amazonaws.com" }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(destination: &serde_json::Value) -> Vec<String> {
        let destination: Destination = serde_json::from_value(destination.clone()).unwrap();
        let checked = destination.check("notify");
        checked.err().into_iter().flat_map(|error| error.0).map(|fault| fault.field).collect()
    }

    #[test]
    fn only_destinations_that_can_be_reached_are_accepted() {
        for right in [
            json!({"queue": "notices"}),
            json!({"sqs": "https://sqs.eu-west-1.amazonaws.com/123456789012/ends"}),
            json!({"sqs": "http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/a_b-c"}),
            json!({"sqs": "http://localhost:4566/000000000000/ends"}),
            json!({"sqs": "http://127.0.0.1:4566/000000000000/ends"}),
            json!({"sqs": "http://[::1]:4566/000000000000/ends"}),
            json!({"sqs": "http://sqs.localhost:80/000000000000/ends"}),
            json!({"sqs": "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:ends"}),
            json!({"event_bus": "default"}),
            json!({"event_bus": "aws.partner/example.com/x"}),
            json!({"event_bus": "arn:aws:events:us-east-1:123456789012:event-bus/mine"}),
            json!({"task_token": "AAAAKgAAAAIAAAAA+/=".repeat(100)}),
            json!({"durable_callback": "Ab+/09=="}),
        ] {
            assert_eq!(fields(&right), Vec::<String>::new(), "{right}");
        }
        for (name, values) in [
            (
                "sqs",
                vec![
                    String::new(),
                    "ends".to_owned(),
                    "https://sqs.eu-west-1.amazonaws.com/123456789012/ends.fifo".to_owned(),
                    "https://sqs.eu-west-1.amazonaws.com/12/ends".to_owned(),
                    "https://sqs..amazonaws.com/123456789012/ends".to_owned(),
                    "https://sqs.eu-west-1.amazonaws.com:65536/123456789012/ends".to_owned(),
                    "http://sqs.eu-west-1.amazonaws.com/123456789012/ends".to_owned(),
                    "http://localhost.example.com/123456789012/ends".to_owned(),
                    "http://notlocalhost/123456789012/ends".to_owned(),
                    "http://10.0.0.7:4566/123456789012/ends".to_owned(),
                    "arn:aws:sns:us-east-1:123456789012:ends".to_owned(),
                    format!("arn:aws:sqs:us-east-1:123456789012:{}", "x".repeat(81)),
                ],
            ),
            ("event_bus", vec![String::new(), "a b".to_owned(), "x".repeat(EVENT_BUS_BYTES_MAX + 1)]),
            ("task_token", vec![String::new(), "a\nb".to_owned(), "x".repeat(TASK_TOKEN_BYTES_MAX + 1)]),
            ("durable_callback", vec![String::new(), "a-b".to_owned(), "x".repeat(CALLBACK_ID_BYTES_MAX + 1)]),
        ] {
            for value in values {
                assert_eq!(fields(&json!({name: value})), [format!("notify.{name}")], "{value}");
            }
        }
    }

    #[test]
    fn an_arn_of_a_queue_has_its_url() {
        for (queue, url) in [
            ("arn:aws:sqs:eu-west-1:123456789012:ends", "https://sqs.eu-west-1.amazonaws.com/123456789012/ends"),
            ("arn:aws-cn:sqs:cn-north-1:123456789012:e", "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/e"),
            ("http://sqs.localhost:80/000000000000/e", "http://sqs.localhost:80/000000000000/e"),
        ] {
            assert_eq!(queue_url(queue), url);
        }
    }
}
