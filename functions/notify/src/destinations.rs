//! How a notice is delivered to each destination.

use fanfold::aws::Queue;
use fanfold::limits::NOTICE_TIMEOUT;
use fanfold::notice::{Event, Notice};
use fanfold::policy::{Destination, queue_url};
use fanfold_http_client::aws::{AwsCall, AwsError, Service, percent_encoded};
use serde_json::{Value, json};

use crate::webhooks::receiver;
use crate::{DeliveryError, Notify};

impl Notify {
    /// Delivers a notice.
    pub(crate) async fn deliver_to(&self, destination: &Destination, notice: &Notice) -> Result<(), DeliveryError> {
        match destination {
            Destination::Queue(_) => Ok(self.notices.send(notice).await?),
            Destination::Sqs(queue) => Ok(Queue::new(self.sqs.clone(), queue_url(queue)).send(notice).await?),
            Destination::Url(url) => self.webhooks.post(url, notice, self.world.now()).await,
            Destination::EventBus(bus) => {
                let answer = self.call(put_event(bus, notice)?).await?;
                not_refused(&answer)
            }
            Destination::TaskToken(token) => self.call(end_task(token, notice)?).await.map(drop),
            Destination::DurableCallback(id) => self.call(call_back(id, notice)?).await.map(drop),
        }
    }

    /// The body of the answer to a call of an AWS API.
    async fn call(&self, call: AwsCall) -> Result<Vec<u8>, DeliveryError> {
        let answer = self.aws.send(call, NOTICE_TIMEOUT, self.world.now()).await?;
        Ok(answer.bytes().await.map_err(AwsError::NoAnswer)?.to_vec())
    }
}

/// The receiver whose places a delivery takes, if it may hang: such a receiver holds no more than its share. The stack's own
/// queue does not hang.
pub(crate) fn holds(destination: &Destination) -> Option<String> {
    match destination {
        Destination::Queue(_) => None,
        Destination::Url(url) => Some(receiver(url)),
        Destination::Sqs(queue) => Some(queue_url(queue)),
        Destination::EventBus(_) => Some(Service::EventBridge.name().to_owned()),
        Destination::TaskToken(_) => Some(Service::StepFunctions.name().to_owned()),
        Destination::DurableCallback(_) => Some(Service::Lambda.name().to_owned()),
    }
}

/// The name of a destination in logs and dead letters. A token is not shown, since it lets its holder answer.
pub(crate) fn name(destination: &Destination) -> &str {
    match destination {
        Destination::Queue(_) => "the queue of notices",
        Destination::Url(to) | Destination::Sqs(to) | Destination::EventBus(to) => to,
        Destination::TaskToken(_) => "the Step Functions task",
        Destination::DurableCallback(_) => "the durable function's callback",
    }
}

/// `PutEvents`: the detail is the notice's data, and `notice`, its id, by which repetitions are recognized.
fn put_event(bus: &str, notice: &Notice) -> Result<AwsCall, DeliveryError> {
    let mut event = serde_json::to_value(notice)?;
    let mut detail = event["data"].take();
    detail["notice"] = json!(notice.id);
    let entry = json!({
        "EventBusName": bus, "Source": "fanfold", "DetailType": event["type"], "Detail": detail.to_string(),
        "Resources": [notice.source],
    });
    by_target(Service::EventBridge, "AWSEvents.PutEvents", "application/x-amz-json-1.1", &json!({"Entries": [entry]}))
}

/// The answer of `PutEvents` is a success even if the event was refused.
fn not_refused(answer: &[u8]) -> Result<(), DeliveryError> {
    let answer: Value = serde_json::from_slice(answer)?;
    let entry = &answer["Entries"][0];
    let Some(code) = entry["ErrorCode"].as_str() else { return Ok(()) };
    let message = entry["ErrorMessage"].as_str().unwrap_or_default();
    let service = Service::EventBridge.name();
    Err(DeliveryError::Event { service, code: code.to_owned(), message: message.to_owned() })
}

/// `SendTaskSuccess`, or `SendTaskFailure` if the fan-out ended otherwise than completed.
fn end_task(token: &str, notice: &Notice) -> Result<AwsCall, DeliveryError> {
    let (target, body) = match failed(notice)? {
        None => {
            let output = serde_json::to_string(notice)?;
            ("AWSStepFunctions.SendTaskSuccess", json!({"taskToken": token, "output": output}))
        }
        Some(Failed { error, cause }) => {
            ("AWSStepFunctions.SendTaskFailure", json!({"taskToken": token, "error": error, "cause": cause}))
        }
    };
    by_target(Service::StepFunctions, target, "application/x-amz-json-1.0", &body)
}

/// `SendDurableExecutionCallbackSuccess`, or `…Failure` if the fan-out ended otherwise than completed.
fn call_back(id: &str, notice: &Notice) -> Result<AwsCall, DeliveryError> {
    let text = serde_json::to_string(notice)?;
    let (how, body) = match failed(notice)? {
        None => ("succeed", text.into_bytes()),
        Some(Failed { error, cause }) => {
            let body = json!({"ErrorType": error, "ErrorMessage": cause, "ErrorData": text});
            ("fail", serde_json::to_vec(&body)?)
        }
    };
    let path = format!("/2025-12-01/durable-execution-callbacks/{}/{how}", percent_encoded(id, b""));
    Ok(AwsCall::post(Service::Lambda, path, "application/json", body))
}

fn by_target(service: Service, target: &'static str, media_type: &str, body: &Value) -> Result<AwsCall, DeliveryError> {
    let body = serde_json::to_vec(body)?;
    Ok(AwsCall::post(service, "/", media_type, body).header("x-amz-target", target))
}

/// How a fan-out failed.
struct Failed {
    /// The notice's type.
    error: String,
    cause: String,
}

/// How a fan-out failed; none: it completed.
fn failed(notice: &Notice) -> Result<Option<Failed>, DeliveryError> {
    let well = matches!(notice.event, Event::FanoutCompleted(_) | Event::FanoutSucceeded(_));
    let Some(end) = notice.event.end().filter(|_| !well) else { return Ok(None) };
    let event = serde_json::to_value(&notice.event)?;
    let error = event["type"].as_str().unwrap_or_default().to_owned();
    let cause = format!(
        "of {} items {} succeeded, {} failed, {} were duplicates and {} were not done ({})",
        end.total, end.succeeded, end.failed, end.duplicates, end.missing, notice.source
    );
    Ok(Some(Failed { error, cause }))
}
