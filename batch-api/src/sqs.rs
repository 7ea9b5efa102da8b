//! Batch APIs that are workers behind an SQS queue: the call is a message, and its outcomes are posted later.

use fanfold::aws::sendable;
use fanfold::clock::World;
use fanfold::headers;
use fanfold::limits::{ANSWER_BYTES_MAX, EXCERPT_BYTES_MAX, SENT_BYTES_MAX};
use fanfold::policy::queue_url;
use fanfold::text::beginning;
use fanfold_http_client::aws::{Aws, AwsCall, AwsError, Service};
use fanfold_http_client::body;
use serde_json::{Map, Value, json};

use crate::aws::not_done;
use crate::url::failure;
use crate::{Accepted, Answer, CallError, Cause, Request};

/// How the names of queues end that keep the order of messages.
const ORDERED: &str = ".fifo";

/// Sends calls to SQS queues.
#[derive(Clone, Debug)]
pub(crate) struct SqsCaller {
    pub(crate) aws: Aws,
    pub(crate) world: World,
}

impl SqsCaller {
    /// Sends one call as a message.
    pub(crate) async fn send(&self, queue: &str, request: Request<'_>) -> Result<Answer, CallError> {
        let message = message(queue, &request)?;
        let call = AwsCall::post(Service::Sqs, "/", "application/x-amz-json-1.0", message.to_string().into_bytes())
            .header("x-amz-target", "AmazonSQS.SendMessage");
        let answer = self.aws.send(call, request.timeout, self.world.now()).await;
        let mut answer = answer.map_err(|error| not_sent(&error))?;
        let said = body(&mut answer, ANSWER_BYTES_MAX).await.map_err(|error| failure(&error))?.unwrap_or_default();
        let document: Value = serde_json::from_slice(&said).unwrap_or_default();
        if document["MessageId"].is_string() {
            return Ok(Answer::Later(Accepted::default()));
        }
        let shown = beginning(&said, EXCERPT_BYTES_MAX);
        Err(CallError::new(Cause::BadAnswer, format!("the answer is not SQS's, it has no `MessageId`: {shown}")))
    }
}

/// The parameters of `SendMessage`. Its attributes are what headers are of an HTTP call.
fn message(queue: &str, request: &Request<'_>) -> Result<Value, CallError> {
    let Some(token) = &request.token else {
        return Err(CallError::new(
            Cause::NotMade,
            "a message can only be answered later: `answers_within` is missing",
        ));
    };
    let not_text = |_| CallError::new(Cause::NotMade, "the call is not a text, so it cannot be a message");
    let body = sendable(String::from_utf8(request.body.clone()).map_err(not_text)?);
    let attributes = [
        (headers::BATCH, "String", request.call.batch_id.to_string()),
        (headers::IDEMPOTENCY_KEY, "String", request.key.clone()),
        (headers::ATTEMPT, "Number", request.call.attempt.to_string()),
        (headers::TOKEN, "String", token.clone()),
    ];
    let around: usize = attributes.iter().map(|(name, kind, value)| name.len() + kind.len() + value.len()).sum();
    let (bytes, most) = (body.len() + around, SENT_BYTES_MAX as usize);
    if bytes > most {
        let message = format!(
            "the call has {bytes} bytes, at most {most} are allowed as a message of SQS; it was not sent: set a smaller \
             `max_batch_bytes`"
        );
        return Err(CallError::new(Cause::NotSent, message));
    }
    let attribute =
        |(name, kind, value): (&str, &str, String)| (name.to_owned(), json!({"DataType": kind, "StringValue": value}));
    let attributes: Map<String, Value> = attributes.into_iter().map(attribute).collect();
    let mut message = json!({"QueueUrl": queue_url(queue), "MessageBody": body, "MessageAttributes": attributes});
    if queue.ends_with(ORDERED) {
        message["MessageGroupId"] = request.group.to_string().into();
        // The attempt: SQS would drop a repeated call within five minutes, although a worker asked for it.
        message["MessageDeduplicationId"] = format!("{}-{}", request.key, request.call.attempt).into();
    }
    Ok(message)
}

/// The error of a message that was not sent, or may have been.
fn not_sent(error: &AwsError) -> CallError {
    let mut error = not_done("SQS", error);
    error.cause = match error.cause {
        // A fault of SQS is no member's, and the message may have been sent. It says so itself if it was not (503).
        Cause::Status(status) if status >= 500 && status != 503 => Cause::Silence,
        // The queue's own maximum is lower.
        Cause::Status(400) if error.message.contains("must be shorter than") => Cause::Status(413),
        cause => cause,
    };
    error
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::aws::testing::refused;
    use crate::call::testing::call;

    const A: &str = "0189abcd-0000-7000-8000-000000000001";
    const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:books";

    fn request(call: &crate::Call) -> Request<'_> {
        let batch_api = serde_json::from_value(json!({"sqs": QUEUE, "answers_within": "1h"})).unwrap();
        Request::new(&batch_api, call).unwrap().with_token(Some("1.abc".to_owned()))
    }

    #[test]
    fn a_message_has_the_body_of_a_call_and_its_headers() {
        let call = call(&[A]);
        let request = request(&call);
        let sent = message(QUEUE, &request).unwrap();
        assert_eq!(sent["QueueUrl"], "https://sqs.eu-west-1.amazonaws.com/123456789012/books");
        assert_eq!(sent["MessageBody"].as_str().unwrap().as_bytes(), request.body);
        let attributes = &sent["MessageAttributes"];
        let value = |name: &str| attributes[name]["StringValue"].as_str().unwrap().to_owned();
        assert_eq!(attributes.as_object().unwrap().len(), 4, "SQS takes ten");
        assert_eq!(
            (value("Fanfold-Batch"), value("Idempotency-Key")),
            (call.batch_id.to_string(), request.key.clone())
        );
        assert_eq!((value("Fanfold-Attempt"), value("Fanfold-Token")), ("1".to_owned(), "1.abc".to_owned()));
        assert!(sent.get("MessageGroupId").is_none() && sent.get("MessageDeduplicationId").is_none(), "{sent}");
        let none = Request { token: None, ..request };
        assert_eq!(message(QUEUE, &none).unwrap_err().cause, Cause::NotMade);
    }

    #[test]
    fn a_queue_that_keeps_the_order_gets_the_group_of_the_lane_and_every_attempt() {
        let first = call(&[A]);
        let again = crate::Call { attempt: 2, ..first.clone() };
        let lane = uuid::Uuid::from_u128(7);
        let sent = |call| message(&format!("{QUEUE}.fifo"), &request(call).in_group(lane)).unwrap();
        let (first, again) = (sent(&first), sent(&again));
        assert_eq!((&first["MessageGroupId"], &first["MessageBody"]), (&json!(lane), &again["MessageBody"]));
        assert_ne!(first["MessageDeduplicationId"], again["MessageDeduplicationId"], "a worker may ask for it again");
        assert!(first["MessageDeduplicationId"].as_str().unwrap().len() <= 128);
    }

    #[test]
    fn characters_that_sqs_refuses_are_escaped() {
        let mut call = call(&[A]);
        call.members[0].content = serde_json::value::RawValue::from_string("\"\u{ffff}\"".to_owned()).unwrap();
        let sent = message(QUEUE, &request(&call)).unwrap();
        let body: Value = serde_json::from_str(sent["MessageBody"].as_str().unwrap()).unwrap();
        assert!(!sent["MessageBody"].as_str().unwrap().contains('\u{ffff}'));
        assert_eq!(body["members"][0]["content"], "\u{ffff}");
    }

    #[test]
    fn what_sqs_answers_says_whether_all_batches_wait() {
        let error = |status, code| not_sent(&refused("sqs", status, code, "why"));
        for (status, code) in [
            (400, "ThrottlingException"),
            (400, "RequestThrottled"),
            (400, "QueueDoesNotExist"),
            (403, "AccessDeniedException"),
            (400, "AccessDeniedException"),
            (400, "KmsAccessDenied"),
            (400, "UnrecognizedClientException"),
            (400, "ExpiredTokenException"),
            (503, "ServiceUnavailable"),
        ] {
            assert!(error(status, code).cause.concerns_every_batch(), "{status} {code}");
        }
        assert_eq!(error(400, "QueueDoesNotExist").message, "SQS answered 400 Bad Request: QueueDoesNotExist: why");
        assert_eq!(error(500, "InternalFailure").cause, Cause::Silence, "it may have been sent");
        assert!(error(400, "InvalidMessageContents").cause.may_be_one_member());
        let long = "One or more parameters are invalid. Reason: Message must be shorter than 262144 bytes.";
        assert_eq!(not_sent(&refused("sqs", 400, "InvalidParameterValue", long)).cause, Cause::Status(413));
    }
}
