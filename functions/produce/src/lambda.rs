//! Sources that are Lambda functions: the request is their event, the answer what they return.

use fanfold::clock::Timestamp;
use fanfold::limits::SOURCE_TIMEOUT;
use fanfold_http_client::aws::{Aws, lambda};

use crate::url::read;
use crate::{SourceAnswer, SourceError, SourceRequest};

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
        let answer = self.0.send(lambda::invoke(function, event), SOURCE_TIMEOUT, now).await?;
        let failed = lambda::has_failed(answer.headers());
        let body = read(answer).await?;
        if failed {
            return Err(SourceError::again(format!("the function failed: {}", lambda::why(&body))));
        }
        SourceAnswer::read(&body, ask).map_err(|error| SourceError { for_good: true, ..error })
    }
}
