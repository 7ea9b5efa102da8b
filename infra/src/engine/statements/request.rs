//! A batch of statements as it comes, if all of them can be run at once.

use std::collections::HashSet;

use dynoxide::types::AttributeValue;
use serde::Deserialize;

use super::plan::Plan;
use crate::engine::direct::value::Value;
use crate::engine::direct::writes::Old;

/// The most statements of a batch.
const STATEMENTS_MAX: usize = 25;
/// The most bytes of a statement.
const STATEMENT_BYTES_MAX: usize = 8_192;
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Request {
    statements: Vec<Statement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
struct Statement {
    statement: String,
    parameters: Vec<Value>,
    return_values_on_condition_check_failure: Option<Old>,
}

/// One plan, and what it is to be run with.
pub(super) struct Batch {
    pub(super) plan: Plan,
    pub(super) rows: Vec<Row>,
}

/// The values of one statement.
pub(super) type Row = Vec<AttributeValue>;

/// Reads a request; none if its statements differ, or if anything about it is for the engine to judge. Returns, too, which
/// statements ask for the item that a condition failed on.
pub(super) fn read(body: &[u8]) -> Option<(Batch, Vec<bool>)> {
    let Request { statements } = serde_json::from_slice(body).ok()?;
    let first = statements.first()?.statement.clone();
    if statements.iter().any(|one| one.statement != first) {
        return None;
    }
    let wants_old = |one: &Statement| matches!(one.return_values_on_condition_check_failure, Some(Old::AllOld));
    let wants_old = statements.iter().map(wants_old).collect();
    let rows = statements.into_iter().map(|one| one.parameters).collect();
    Some((Batch::of(&first, rows)?, wants_old))
}

impl Batch {
    /// A statement, and the rows to run it with; none if anything about it is for the engine to judge.
    pub(super) fn of(statement: &str, rows: Vec<Vec<Value>>) -> Option<Self> {
        if !(1..=STATEMENTS_MAX).contains(&rows.len()) || statement.len() > STATEMENT_BYTES_MAX {
            return None;
        }
        let plan = Plan::of(statement).filter(names_each_once)?;
        let count = plan.parameters();
        let row = |row: Vec<Value>| -> Option<Row> {
            let values: Option<Row> = row.into_iter().map(value).collect();
            values.filter(|values| values.len() == count)
        };
        let rows = rows.into_iter().map(row).collect::<Option<Vec<Row>>>()?;
        Some(Self { plan, rows })
    }
}

fn names_each_once(plan: &Plan) -> bool {
    let unique = |names: &[&Vec<String>]| {
        let mut seen = HashSet::new();
        names.iter().flat_map(|names| names.iter()).all(|name| seen.insert(name))
    };
    match plan {
        Plan::Insert { attributes, .. } => unique(&[attributes]),
        Plan::Update { set, remove, conditions, .. } => unique(&[set, remove]) && unique(&[conditions]),
    }
}

/// A value that is no list, map or set.
fn value(parameter: Value) -> Option<AttributeValue> {
    match parameter {
        Value::S(_) | Value::N(_) | Value::B(_) => parameter.stored(),
        _ => None,
    }
}
