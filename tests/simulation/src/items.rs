//! An item that is done keeps the outcome that came first: looked at on every write that is applied.

use serde_json::Value;

use crate::request::{Record, Request};
use crate::transitions::bits;

/// What is wrong with a write to a record that is as `before`: it gives another outcome to items that were done.
pub(crate) fn changed(request: &Request, record: &Record, before: Option<&Value>) -> Option<String> {
    let outcomes = match record.0.as_str() {
        "FanoutsTable" => ["failed_items", "duplicate_items", "missing_items"],
        "GroupsTable" => ["failed", "duplicates", "missing"],
        _ => return None,
    };
    let before = before?;
    let at = request.writes.iter().position(|written| written == record)?;
    let values = match request.operation.as_str() {
        "TransactWriteItems" => &request.body["TransactItems"][at]["Update"]["ExpressionAttributeValues"],
        _ => &request.body["ExpressionAttributeValues"],
    };
    let pending = bits(before, "pending");
    let late = |name: &&str| {
        let new = bits(values, &format!(":{name}")).minus(&bits(before, name));
        !new.minus(&pending).is_zero()
    };
    let name = outcomes.into_iter().find(late)?;
    let (table, key) = record;
    Some(format!("{table} {key} changes `{name}` of items that were done: it was {before}, the values are {values}"))
}
