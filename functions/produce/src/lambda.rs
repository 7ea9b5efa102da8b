//! Sources that are Lambda functions: the request is their event, the answer what they return.

use fanfold::clock::Timestamp;
use fanfold::limits::{EXCERPT_BYTES_MAX, SOURCE_TIMEOUT};
use fanfold::text::beginning;
use fanfold_http_client::aws::{Aws, AwsCall, Service, percent_encoded};
use serde_json::Value;

use crate::url::read;
use crate::{SourceAnswer, SourceError, SourceRequest};

/// Says that an answer is what a function failed with.
const FAILED: &str = "x-amz-function-error";

/// Asks Lambda functions.
#[derive(Debug)]
pub(crate) struct LambdaSource(pub(crate) Aws);

impl LambdaSource {
    /// Asks one of them. What it returns is the same each time, if it is no such answer as is expected, so that is final; a
    /// function that fails may succeed.
    pub(crate) async fn ask(
        &self,
        function: &str,
        ask: &SourceRequest,
        now: Timestamp,
    ) -> Result<SourceAnswer, SourceError> {
        let event = serde_json::to_vec(ask).map_err(SourceError::for_good)?;
        let path = format!("/2015-03-31/functions/{}/invocations", percent_encoded(function, b""));
        let call = AwsCall::post(Service::Lambda, path, "application/json", event);
        let answer = self.0.send(call, SOURCE_TIMEOUT, now).await?;
        let failed = answer.headers().contains_key(FAILED);
        let body = read(answer).await?;
        if failed {
            return Err(SourceError::again(format!("the function failed: {}", why(&body))));
        }
        SourceAnswer::read(&body, ask).map_err(|error| SourceError { for_good: true, ..error })
    }
}

/// What a function failed with.
fn why(body: &[u8]) -> String {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let named = [&document["errorType"], &document["errorMessage"]].map(Value::as_str);
    let named: Vec<&str> = named.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    if named.is_empty() {
        return beginning(body, EXCERPT_BYTES_MAX);
    }
    beginning(named.join(": ").as_bytes(), EXCERPT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_named_as_the_function_names_it() {
        let error = br#"{"errorType": "KeyError", "errorMessage": "'id'", "stackTrace": ["x"]}"#;
        assert_eq!(why(error), "KeyError: 'id'");
        assert_eq!(
            why(br#"{"errorMessage": "Task timed out after 3.00 seconds"}"#),
            "Task timed out after 3.00 seconds"
        );
        assert_eq!(why(b"null"), "null");
    }
}
