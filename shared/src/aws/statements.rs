//! Many conditional writes in as few calls as possible: statements, each of which is applied or refused on its own.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{
    AttributeValue, BatchStatementError, BatchStatementErrorCodeEnum, BatchStatementRequest,
    ReturnValuesOnConditionCheckFailure,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

use super::{Item, StoreError, Table, Write};
use crate::limits::{STATEMENT_CALLS_AT_ONCE_MAX, STATEMENTS_PER_CALL_MAX, STORE_PAUSES, STORE_WAIT_MAX};
use crate::metrics::CONFLICTS;

/// One statement, to be executed for many rows of parameters.
struct Statement<'a> {
    table: &'a Table,
    /// What it does, for errors.
    what: &'static str,
    text: String,
    rows: Vec<Vec<AttributeValue>>,
    /// Which of the caller's items each row is about.
    items: Vec<usize>,
}

/// Position of an item or an action whose condition failed, and the item as it stands, if it is shown.
pub(crate) type RefusedWrite = (usize, Option<Item>);

impl Table {
    /// Inserts each item, unless there is one with its key. Returns those that were refused, which are not shown. `applied`
    /// gets the number of the others after each call.
    pub(crate) async fn insert_each(
        &self,
        what: &'static str,
        items: Vec<Item>,
        applied: impl Fn(u64) + Sync,
    ) -> Result<Vec<RefusedWrite>, StoreError> {
        let insert = |item: Item| {
            let (names, row): (Vec<String>, Vec<AttributeValue>) = sorted(item).into_iter().unzip();
            let names: Vec<String> = names.iter().map(|name| format!("'{name}': ?")).collect();
            (format!("INSERT INTO \"{}\" VALUE {{{}}}", self.name, names.join(", ")), row)
        };
        self.execute_each(what, items.into_iter().map(insert).collect(), &applied).await
    }

    /// Changes each item from `before` to `after`, if the attributes `when`, the first of which is the key, are still the same.
    /// Attributes that neither names stay as they are.
    pub(crate) async fn change_each(
        &self,
        what: &'static str,
        when: &[&str],
        changes: Vec<(Item, Item)>,
    ) -> Result<Vec<RefusedWrite>, StoreError> {
        let change = |(before, after): (Item, Item)| {
            let gone = sorted(before.clone()).into_iter().filter(|(name, _)| !after.contains_key(name));
            let gone: String = gone.map(|(name, _)| format!(" REMOVE \"{name}\"")).collect();
            let new = sorted(after).into_iter().filter(|(name, value)| before.get(name) != Some(value));
            let (names, mut row): (Vec<String>, Vec<AttributeValue>) = new.unzip();
            let set: String = names.iter().map(|name| format!(" SET \"{name}\" = ?")).collect();
            let same = when.iter().map(|name| match before.get(*name) {
                Some(value) => {
                    row.push(value.clone());
                    format!("\"{name}\" = ?")
                }
                None => format!("\"{name}\" IS MISSING"),
            });
            let same = same.collect::<Vec<_>>().join(" AND ");
            (format!("UPDATE \"{}\"{set}{gone} WHERE {same}", self.name), row)
        };
        self.execute_each(what, changes.into_iter().map(change).collect(), &|_| {}).await
    }

    /// Executes statements, those of one text together.
    fn execute_each<'a>(
        &'a self,
        what: &'static str,
        statements: Vec<(String, Vec<AttributeValue>)>,
        applied: &'a (dyn Fn(u64) + Sync),
    ) -> BoxFuture<'a, Result<Vec<RefusedWrite>, StoreError>> {
        async move {
            let mut by_text: BTreeMap<String, (Vec<usize>, Vec<Vec<AttributeValue>>)> = BTreeMap::new();
            for (at, (text, row)) in statements.into_iter().enumerate() {
                let (items, rows) = by_text.entry(text).or_default();
                items.push(at);
                rows.push(row);
            }
            let mut refused = Vec::new();
            for (text, (items, rows)) in by_text {
                refused.extend(Statement { table: self, what, text, rows, items }.execute(applied).await?);
            }
            Ok(refused)
        }
        .boxed()
    }
}

fn sorted(item: Item) -> BTreeMap<String, AttributeValue> {
    item.into_iter().collect()
}

impl Statement<'_> {
    /// Executes the statement once per row, each conditional on its own. Tries again those that were throttled or met a
    /// conflict. Returns the rows whose condition failed.
    async fn execute(&self, applied: &(dyn Fn(u64) + Sync)) -> Result<Vec<RefusedWrite>, StoreError> {
        let mut refused = Vec::new();
        let mut open: Vec<usize> = (0..self.rows.len()).collect();
        let mut pauses = STORE_PAUSES.within(STORE_WAIT_MAX);
        loop {
            let (mut again, mut last) = (Vec::new(), String::new());
            let chunks: Vec<Vec<usize>> = open.chunks(STATEMENTS_PER_CALL_MAX).map(<[usize]>::to_vec).collect();
            let calls = chunks.into_iter().map(|chunk| self.call(chunk));
            let mut answers = stream::iter(calls).buffer_unordered(STATEMENT_CALLS_AT_ONCE_MAX);
            while let Some(answer) = answers.next().await {
                let answered = answer?;
                applied(answered.applied);
                refused.extend(answered.refused.into_iter().map(|(row, item)| (self.items[row], item)));
                again.extend(answered.again);
                last = answered.reason.unwrap_or(last);
            }
            drop(answers);
            if again.is_empty() {
                metrics::counter!(CONFLICTS).increment(refused.len() as u64);
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
    fn call(&self, chunk: Vec<usize>) -> BoxFuture<'_, Result<Answered, StoreError>> {
        async move {
            if let Some(answered) = self.embedded(&chunk).await {
                return Ok(answered);
            }
            let mut call = self.table.client.batch_execute_statement();
            for at in &chunk {
                let statement = BatchStatementRequest::builder()
                    .statement(&self.text)
                    .set_parameters(Some(self.rows[*at].clone()))
                    .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
                call = call.statements(statement.build().map_err(|error| self.table.unbuilt(&error))?);
            }
            let answer = self.table.patiently(move || call.clone().send()).await;
            let answer =
                answer.map_err(|error| StoreError::service("BatchExecuteStatement", &self.table.name, error))?;
            let responses = answer.responses.unwrap_or_default();
            // Statements without an answer may have been applied; every statement can be repeated.
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

    /// The same by the engine in this process, if there is one and no request need be sent.
    async fn embedded(&self, chunk: &[usize]) -> Option<Answered> {
        let engine = self.table.embedded().await?;
        let rows: Vec<&[AttributeValue]> = chunk.iter().map(|at| self.rows[*at].as_slice()).collect();
        let mut answered = Answered::default();
        for (at, written) in chunk.iter().zip(engine.execute(&self.text, &rows)?) {
            match written {
                Write::Done(()) => answered.applied += 1,
                Write::Refused(item) => answered.refused.push((*at, item)),
            }
        }
        Some(answered)
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
    refused: Vec<RefusedWrite>,
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
