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
    pub(super) runs: Vec<Run>,
}

/// The values of one statement.
pub(super) struct Run {
    pub(super) values: Vec<AttributeValue>,
    /// Whether its sender asked for the item that a condition failed on.
    pub(super) wants_old: bool,
}

impl Batch {
    /// Reads a request; none if its statements differ, or if anything about it is for the engine to judge.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let Request { statements } = serde_json::from_slice(body).ok()?;
        let first = &statements.first()?.statement;
        let fits = statements.len() <= STATEMENTS_MAX && first.len() <= STATEMENT_BYTES_MAX;
        if !fits || statements.iter().any(|one| one.statement != *first) {
            return None;
        }
        let plan = Plan::of(first).filter(names_each_once)?;
        let count = plan.parameters();
        let run = |one: Statement| {
            let wants_old = matches!(one.return_values_on_condition_check_failure, Some(Old::AllOld));
            let values: Option<Vec<AttributeValue>> = one.parameters.into_iter().map(value).collect();
            Some(Run { values: values.filter(|values| values.len() == count)?, wants_old })
        };
        let runs: Option<Vec<Run>> = statements.into_iter().map(run).collect();
        Some(Self { plan, runs: runs? })
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
