//! Reads and writes of single items, which a run makes most: prepared SQL, one read per write, expressions parsed once per text,
//! answers made of what is stored. The rows are the engine's own. What differs from the usual forms in any way is left to the
//! engine, and so is all that it would refuse.

mod condition;
mod path;
mod plan;
pub(super) mod reads;
pub(super) mod rows;
pub(super) mod schema;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod text;
mod update;
pub(super) mod value;
pub(super) mod writes;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use dynoxide::errors::DynoxideError;
use dynoxide::storage::Storage;

use self::plan::{Expressions, Plan};
use self::schema::Schema;
use super::database::{Database, DatabaseResult};
use crate::usage::Units;

/// The most expressions that are kept parsed. A run has less than a hundred.
const PLANS_MAX: usize = 4_096;

/// An answer, or the failure of a condition, with what it cost.
pub(super) struct Direct {
    pub(super) operation: &'static str,
    pub(super) result: Result<Bytes, DynoxideError>,
    pub(super) units: Units,
}

/// What is known of tables and expressions.
#[derive(Default)]
pub(super) struct Known {
    schemas: HashMap<String, Option<Arc<Schema>>>,
    plans: HashMap<String, Option<Arc<Plan>>>,
}

impl Known {
    /// The schema of a table; none if there is no such table, or it has anything unusual.
    pub(super) fn schema(&mut self, storage: &Storage, table: &str) -> DatabaseResult<Option<Arc<Schema>>> {
        if let Some(schema) = self.schemas.get(table) {
            return Ok(schema.clone());
        }
        let Some(found) = storage.get_table_metadata(table)? else { return Ok(None) };
        let schema = Schema::of(&found).map(Arc::new);
        self.schemas.insert(table.to_owned(), schema.clone());
        Ok(schema)
    }

    /// Tables were made or deleted.
    pub(super) fn forget_tables(&mut self) {
        self.schemas.clear();
    }

    /// The plan of expressions that the engine has taken before.
    fn plan(&self, expressions: Expressions<'_>) -> Option<Arc<Plan>> {
        if expressions.are_none() {
            return Some(Arc::default());
        }
        self.plans.get(&expressions.text()).cloned().flatten()
    }

    fn learn(&mut self, expressions: Expressions<'_>) {
        let text = expressions.text();
        if self.plans.len() < PLANS_MAX && !self.plans.contains_key(&text) {
            self.plans.insert(text, Plan::of(expressions).map(Arc::new));
        }
    }
}

/// Answers a request; none if the engine has to.
pub(super) fn answer(database: &Database, operation: &str, body: &[u8]) -> Option<Direct> {
    match operation {
        "UpdateItem" => writes::answer_update(database, body),
        "PutItem" => writes::answer_put(database, body),
        "GetItem" => reads::answer_get(database, body),
        "BatchGetItem" => reads::answer_get_many(database, body),
        _ => None,
    }
}

/// Notes that the engine took the expressions of a request, with whichever result: they have no mistakes.
pub(super) fn learn(database: &Database, operation: &str, body: &[u8]) {
    if matches!(operation, "UpdateItem" | "PutItem")
        && let Some(expressions) = Expressions::read(body)
    {
        database.with_known(|known| known.learn(expressions));
    }
}
