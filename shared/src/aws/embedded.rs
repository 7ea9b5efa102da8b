//! Tables of an engine in this process: asked by a call, where the SDK writes a request and reads an answer.

use std::collections::HashMap;
use std::fmt;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{Item, Table, Write};

/// Tables of an engine in this process. A method that returns nothing did nothing: the request is unusual, or wrong, and has to
/// be sent by the SDK. A write that is refused shows the item that stands, if there is one.
pub trait Embedded: fmt::Debug + Send + Sync {
    /// Reads the item of a key, which is given by its name and value.
    fn get(&self, table: &str, key: (&str, &str), consistent: bool) -> Option<Option<Item>>;

    /// Reads items of the keys of that name, in no order; absent ones are left out. `attributes`: only these, if there are any.
    fn get_many(
        &self,
        table: &str,
        key: &str,
        values: &[&String],
        attributes: &[&str],
        consistent: bool,
    ) -> Option<Vec<Item>>;

    /// Puts an item on a condition.
    fn put(&self, table: &str, item: &Item, condition: &str) -> Option<Write>;

    /// Updates an item. Returns it as it is then, if that is wanted.
    fn update(&self, update: &EmbeddedUpdate<'_>) -> Option<Write<Option<Item>>>;

    /// Executes a statement for many rows of parameters, each on its own. Returns as many results, in their order. An insert that
    /// is refused shows no item.
    fn execute(&self, statement: &str, rows: &[&[AttributeValue]]) -> Option<Vec<Write>>;
}

/// An update of one item, by its expressions.
#[derive(Debug)]
pub struct EmbeddedUpdate<'a> {
    /// The table.
    pub table: &'a str,
    /// Name and value of the key.
    pub key: (&'a str, &'a str),
    /// `UpdateExpression`.
    pub update: Option<&'a str>,
    /// `ConditionExpression`.
    pub condition: Option<&'a str>,
    /// What the names of attributes stand for.
    pub names: &'a HashMap<String, String>,
    /// What the names of values stand for.
    pub values: &'a HashMap<String, AttributeValue>,
    /// Whether the item is wanted as it is then.
    pub wants_new: bool,
}

impl Table {
    /// The engine in this process, if there is one. It never waits, so a caller in a loop gives way to others here.
    pub(super) async fn embedded(&self) -> Option<&dyn Embedded> {
        let embedded = self.embedded.as_deref()?;
        tokio::task::coop::consume_budget().await;
        Some(embedded)
    }
}
