//! Batch APIs that are Lambda functions: the call is the event, the answer what the function returns.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fanfold::clock::World;
use fanfold::limits::{ANSWER_BYTES_MAX, EVENT_BYTES_MAX};
use fanfold_http_client::aws::{Aws, lambda};
use fanfold_http_client::body;
use serde_json::json;

use crate::aws::not_done;
use crate::url::failure;
use crate::{Answer, CallError, Cause, Request};

/// What a function gets beside its event: it finds the key there, as it has no headers.
const CONTEXT: &str = "x-amz-client-context";

/// Invokes Lambda functions.
#[derive(Clone, Debug)]
pub(crate) struct LambdaCaller {
    pub(crate) aws: Aws,
    pub(crate) world: World,
}

impl LambdaCaller {
    /// Makes one call.
    pub(crate) async fn send(&self, function: &str, request: Request<'_>) -> Result<Answer, CallError> {
        let bytes = request.body.len();
        if bytes > EVENT_BYTES_MAX {
            let message = format!(
                "the call has {bytes} bytes, at most {EVENT_BYTES_MAX} are allowed as the event of a Lambda function; it was not \
                 sent: set a smaller `max_batch_bytes`"
            );
            return Err(CallError::new(Cause::NotSent, message));
        }
        let context = json!({"custom": {"idempotency_key": request.key, "attempt": request.call.attempt}});
        let call = lambda::invoke(function, request.body).header(CONTEXT, STANDARD.encode(context.to_string()));
        let answer = self.aws.send(call, request.timeout, self.world.now()).await;
        let mut answer = answer.map_err(|error| not_done("Lambda", &error))?;
        let failed = lambda::has_failed(answer.headers());
        let said = body(&mut answer, ANSWER_BYTES_MAX).await.map_err(|error| failure(&error))?.ok_or_else(|| {
            CallError::new(Cause::BadAnswer, format!("the answer has more than {ANSWER_BYTES_MAX} bytes"))
        })?;
        if failed { Err(unhandled(&said)) } else { read(&said, request.call) }
    }
}

/// Reads what a function returned. A function that returns nothing did all of it.
fn read(said: &[u8], call: &crate::Call) -> Result<Answer, CallError> {
    if said.trim_ascii() == b"null" { Ok(Answer::AllSucceeded) } else { Answer::read(said, call) }
}

/// The error of a function that failed. If its time was over, it may have worked.
fn unhandled(said: &[u8]) -> CallError {
    let cause = if lambda::timed_out(said) { Cause::Silence } else { Cause::Exit };
    CallError::new(cause, format!("the function failed: {}", lambda::why(said)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::RetryAfter;
    use crate::aws::testing::refused;
    use crate::call::testing::call;
    use fanfold_http_client::aws::AwsError;

    const A: &str = "0189abcd-0000-7000-8000-000000000001";

    #[test]
    fn a_function_that_fails_may_be_called_again_and_one_whose_time_is_over_may_have_worked() {
        let error = unhandled(br#"{"errorType": "KeyError", "errorMessage": "'id'", "stackTrace": ["x"]}"#);
        assert_eq!((error.cause, error.retriable), (Cause::Exit, true));
        assert_eq!(error.message, "the function failed: KeyError: 'id'");
        for late in [
            r#"{"errorMessage": "2026-11-25T12:00:00Z 6c Task timed out after 3.00 seconds"}"#,
            r#"{"errorType": "Sandbox.Timedout", "errorMessage": "RequestId: 6c Error: Task timed out after 3.00 seconds"}"#,
        ] {
            assert_eq!(unhandled(late.as_bytes()).cause, Cause::Silence, "{late}");
        }
        assert_eq!(unhandled(b"null").message, "the function failed: null");
    }

    #[test]
    fn nothing_is_a_success_and_an_answer_is_read_as_any() {
        let call = call(&[A]);
        assert_eq!(read(b"null", &call), Ok(Answer::AllSucceeded));
        let failed = format!(r#"{{"batchItemFailures": [{{"itemIdentifier": "{A}"}}]}}"#);
        assert!(matches!(read(failed.as_bytes(), &call), Ok(Answer::Members(members)) if members.len() == 1));
        assert_eq!(read(b"\"done\"", &call).unwrap_err().cause, Cause::BadAnswer);
    }

    #[test]
    fn what_lambda_answers_says_whether_all_batches_wait() {
        let error = |status, code| not_done("Lambda", &refused("lambda", status, code, "why"));
        for (status, code) in [
            (429, "TooManyRequestsException"),
            (404, "ResourceNotFoundException"),
            (403, "AccessDeniedException"),
            (400, "ExpiredTokenException"),
        ] {
            assert!(error(status, code).cause.concerns_every_batch(), "{code}");
        }
        let busy = error(429, "TooManyRequestsException");
        assert_eq!(busy.message, "Lambda answered 429 Too Many Requests: TooManyRequestsException: why");
        assert!(busy.retriable && busy.retry_after == Some(RetryAfter::Delay(std::time::Duration::from_secs(7))));
        assert!(error(413, "RequestEntityTooLargeException").cause.may_be_one_member());
        let missing = not_done("Lambda", &AwsError::NotMade("the environment has no region".to_owned()));
        assert!(missing.cause.concerns_every_batch() && missing.retriable);
    }
}
