//! One statement for many parameters, each of them a conditional write of its own, in as few calls as possible.

use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementError, BatchStatementErrorCodeEnum, BatchStatementRequest,
    ReturnValuesOnConditionCheckFailure,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

use super::{Item, StoreError, Table};
use crate::limits::{STATEMENT_CALLS_AT_ONCE_MAX, STATEMENTS_PER_CALL_MAX, STORE_PAUSES, STORE_WAIT_MAX};

/// One statement, to be executed for many rows of parameters.
pub(crate) struct Statement<'a> {
    table: &'a Table,
    /// What it does, for errors.
    what: &'static str,
    text: String,
}

/// Position of a row or an action whose condition failed, and the item as it stands, if there is one.
pub(crate) type Refusal = (usize, Option<Item>);

impl Table {
    /// Inserts items with these attributes, in this order in each row, unless there is an item with the same key.
    pub(crate) fn inserts(&self, what: &'static str, attributes: &[&str]) -> Statement<'_> {
        let attributes: Vec<String> = attributes.iter().map(|name| format!("'{name}': ?")).collect();
        let text = format!("INSERT INTO \"{}\" VALUE {{{}}}", self.name, attributes.join(", "));
        Statement { table: self, what, text }
    }

    /// Updates items; `changes` is what follows the table's name.
    pub(crate) fn updates(&self, what: &'static str, changes: &str) -> Statement<'_> {
        Statement { table: self, what, text: format!("UPDATE \"{}\" {changes}", self.name) }
    }
}

impl Statement<'_> {
    /// The same as [`Self::execute_counting`], without a count.
    pub(crate) async fn execute(&self, rows: Vec<Vec<AttributeValue>>) -> Result<Vec<Refusal>, StoreError> {
        self.execute_counting(rows, |_| {}).await
    }

    /// Executes the statement once per row, each conditional on its own. Tries again those that were throttled or met a
    /// conflict. Returns the rows whose condition failed. `applied` gets the number of the others after each call.
    pub(crate) async fn execute_counting(
        &self,
        rows: Vec<Vec<AttributeValue>>,
        applied: impl Fn(u64),
    ) -> Result<Vec<Refusal>, StoreError> {
        let mut refused = Vec::new();
        let mut open: Vec<usize> = (0..rows.len()).collect();
        let mut pauses = STORE_PAUSES.within(STORE_WAIT_MAX);
        loop {
            let (mut again, mut last) = (Vec::new(), String::new());
            let chunks: Vec<Vec<usize>> = open.chunks(STATEMENTS_PER_CALL_MAX).map(<[usize]>::to_vec).collect();
            let calls = chunks.into_iter().map(|chunk| self.call(&rows, chunk));
            let mut answers = stream::iter(calls).buffer_unordered(STATEMENT_CALLS_AT_ONCE_MAX);
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
            let Some(pause) = pauses.next(self.table.world.random.next()) else {
                return Err(self.failure(format!("gave up: {last}")));
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// One call, for the rows at these positions.
    fn call<'a>(
        &'a self,
        rows: &'a [Vec<AttributeValue>],
        chunk: Vec<usize>,
    ) -> BoxFuture<'a, Result<Answered, StoreError>> {
        async move {
            let mut call = self.table.client.batch_execute_statement();
            for at in &chunk {
                let statement = BatchStatementRequest::builder()
                    .statement(&self.text)
                    .set_parameters(Some(rows[*at].clone()))
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
                call = call.statements(statement.build().map_err(|error| self.table.unbuilt(&error))?);
            }
            let answer = call.send().await;
            let answer =
                answer.map_err(|error| StoreError::service("BatchExecuteStatement", &self.table.name, error))?;
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
                    Some(error) => return Err(self.failure(reason(&error))),
                }
            }
            Ok(answered)
        }
        .boxed()
    }

    fn failure(&self, reason: String) -> StoreError {
        let message = format!("{}: {reason}", self.what);
        let (operation, table) = ("BatchExecuteStatement", self.table.name.clone());
        StoreError::Service { operation, table, message, source: reason.into() }
    }
}

/// What became of the statements of one call.
#[derive(Default)]
struct Answered {
    /// How many were applied.
    applied: u64,
    /// Those whose condition failed.
    refused: Vec<Refusal>,
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
