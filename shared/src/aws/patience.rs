//! Requests that DynamoDB refuses to carry out for now, and that are therefore sent again.

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use tokio::time::Instant;

use super::Table;
use super::error::THROTTLED;
use crate::limits::{STORE_PAUSES, STORE_WAIT_MAX};

/// DynamoDB's code for a write that was not applied because a transaction was about to change its item.
const TRANSACTION_CONFLICT: &str = "TransactionConflictException";

impl Table {
    /// Sends a request, and sends it again while DynamoDB answers that it did not carry it out: it was throttled, or met a
    /// transaction. Nothing was applied then, so a write can be repeated. The SDK's own tries of a throttled request are over
    /// after a second or two, or at once if the process has used up its quota of them; their time counts, too.
    pub(super) async fn patiently<T, E, R, F>(&self, mut send: impl FnMut() -> F) -> Result<T, SdkError<E, R>>
    where
        E: ProvideErrorMetadata,
        F: Future<Output = Result<T, SdkError<E, R>>>,
    {
        let (begun, mut pauses) = (Instant::now(), STORE_PAUSES.within(STORE_WAIT_MAX));
        loop {
            let answer = send().await;
            let not_done = |code| THROTTLED.contains(&code) || code == TRANSACTION_CONFLICT;
            if answer.as_ref().is_err_and(|error| error.code().is_some_and(not_done))
                && begun.elapsed() < STORE_WAIT_MAX
                && let Some(pause) = pauses.next(self.world.random.next())
            {
                tokio::time::sleep(pause).await;
                continue;
            }
            return answer;
        }
    }
}
