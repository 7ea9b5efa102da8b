//! One statement for many parameters, each of them a conditional write of its own, in as few calls as possible.

use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementError, BatchStatementErrorCodeEnum, BatchStatementRequest,
    ReturnValuesOnConditionCheckFailure,
};
use futures::{StreamExt, stream};

use super::Tasks;
use crate::limits::{CONTENTION_TRIES, STATEMENTS_PER_CALL, STORE_PAUSES};
use crate::store::{Item, StoreError};

/// Calls of BatchExecuteStatement under way at once.
const CONCURRENT_CALLS: usize = 4;

impl Tasks {
    /// The same as [`Self::execute_telling`], without a count.
    pub(super) async fn execute(
        &self,
        what: &'static str,
        statement: &str,
        parameters: Vec<Vec<AttributeValue>>,
    ) -> Result<Vec<(usize, Option<Item>)>, StoreError> {
        self.execute_telling(what, statement, parameters, |_| {}).await
    }

    /// Executes one statement for many parameters, each conditional on its own. Tries again those that were throttled or
    /// met a conflict. Returns positions and old items of those whose condition failed. `applied` gets the number of the
    /// others after each call.
    pub(super) async fn execute_telling(
        &self,
        what: &'static str,
        statement: &str,
        parameters: Vec<Vec<AttributeValue>>,
        applied: impl Fn(u64),
    ) -> Result<Vec<(usize, Option<Item>)>, StoreError> {
        let mut refused = Vec::new();
        let mut open: Vec<usize> = (0..parameters.len()).collect();
        let mut last = String::new();
        for tries in 1..=CONTENTION_TRIES {
            let mut again = Vec::new();
            let chunks: Vec<Vec<usize>> = open.chunks(STATEMENTS_PER_CALL).map(<[usize]>::to_vec).collect();
            let calls = chunks.into_iter().map(|chunk| self.execute_chunk(what, statement, &parameters, chunk));
            let mut answers = stream::iter(calls).buffer_unordered(CONCURRENT_CALLS);
            while let Some(answer) = answers.next().await {
                let answered = answer?;
                applied(answered.applied);
                refused.extend(answered.refused);
                again.extend(answered.again);
                last = answered.reason.unwrap_or(last);
            }
            drop(answers);
            if again.is_empty() {
                return Ok(refused);
            }
            open = again;
            tokio::time::sleep(STORE_PAUSES.after(tries, self.world.random.next())).await;
        }
        let message = format!("{what}: gave up after {CONTENTION_TRIES} tries: {last}");
        Err(self.statement_failure(message.clone(), message.into()))
    }

    /// One call.
    async fn execute_chunk(
        &self,
        what: &'static str,
        statement: &str,
        parameters: &[Vec<AttributeValue>],
        chunk: Vec<usize>,
    ) -> Result<Answered, StoreError> {
        let mut call = self.table.client.batch_execute_statement();
        for at in &chunk {
            call = call.statements(self.statement(statement, parameters[*at].clone())?);
        }
        let answer = call.send().await;
        let answer = answer.map_err(|error| StoreError::service("BatchExecuteStatement", &self.table.name, error))?;
        let responses = answer.responses.unwrap_or_default();
        // Of what is not answered nobody knows whether it was done; every statement can be repeated.
        let again = chunk.get(responses.len()..).unwrap_or_default().to_vec();
        let mut answered = Answered { again, ..Answered::default() };
        for (at, response) in chunk.into_iter().zip(responses) {
            match response.error {
                None => answered.applied += 1,
                Some(error) if is_refused(&error) => answered.refused.push((at, error.item)),
                Some(error) if is_passing(&error) => {
                    answered.again.push(at);
                    answered.reason = Some(reason(&error));
                }
                Some(error) => {
                    let message = format!("{what}: {}", reason(&error));
                    return Err(self.statement_failure(message.clone(), message.into()));
                }
            }
        }
        Ok(answered)
    }

    fn statement(&self, text: &str, parameters: Vec<AttributeValue>) -> Result<BatchStatementRequest, StoreError> {
        BatchStatementRequest::builder()
            .statement(text)
            .set_parameters(Some(parameters))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .map_err(|error| self.statement_failure(error.to_string(), Box::new(error)))
    }

    fn statement_failure(&self, message: String, source: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
        StoreError::Service { operation: "BatchExecuteStatement", table: self.table.name.clone(), message, source }
    }
}

/// What became of the statements of one call.
#[derive(Default)]
struct Answered {
    /// How many were applied.
    applied: u64,
    /// Positions and old items of those whose condition failed.
    refused: Vec<(usize, Option<Item>)>,
    /// Positions of those to be tried again.
    again: Vec<usize>,
    /// Why one of them is.
    reason: Option<String>,
}

/// Code and message of a statement's error.
fn reason(error: &BatchStatementError) -> String {
    let code = error.code.as_ref().map_or("", BatchStatementErrorCodeEnum::as_str);
    format!("{code}: {}", error.message.as_deref().unwrap_or(""))
}

fn is_refused(error: &BatchStatementError) -> bool {
    use BatchStatementErrorCodeEnum as Code;
    matches!(error.code, Some(Code::DuplicateItem | Code::ConditionalCheckFailed))
}

fn is_passing(error: &BatchStatementError) -> bool {
    use BatchStatementErrorCodeEnum as Code;
    matches!(
        error.code,
        Some(
            Code::ThrottlingError
                | Code::RequestLimitExceeded
                | Code::ProvisionedThroughputExceeded
                | Code::InternalServerError
                | Code::TransactionConflict
        )
    )
}
