//! The groups of a fan-out, page by page, whether they ended or not.

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use uuid::Uuid;

use super::Groups;
use crate::aws::StoreError;
use crate::aws::attributes::{Reader, text};
use crate::ids::ItemGroup;

/// Sorts before every id. DynamoDB takes no empty key.
const BEFORE_ALL: &str = "-";

/// The put of a group that is to be found by its fan-out. The groups that a fan-out was opened with follow from its header, so
/// nothing is written to find them.
pub(crate) fn listed(mut put: Put, fanout: Uuid) -> Put {
    put.item.insert("listed".to_owned(), text(fanout));
    put
}

impl Groups {
    /// The groups that were added to a fan-out after it was opened, in the order of their ids, from the one after `after`: at
    /// most `limit`. The index may lag; a group that it shows never goes before its retention is over.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn listed(&self, fanout: Uuid, after: Option<Uuid>, limit: usize) -> Result<Vec<ItemGroup>, StoreError> {
        let mut groups = Vec::new();
        let mut after = after.map_or_else(|| BEFORE_ALL.to_owned(), |id| id.to_string());
        while groups.len() < limit {
            let request = self
                .table
                .client
                .query()
                .table_name(&self.table.name)
                .index_name("listed")
                .key_condition_expression("listed = :fanout AND id > :after")
                .expression_attribute_values(":fanout", AttributeValue::S(fanout.to_string()))
                .expression_attribute_values(":after", AttributeValue::S(after))
                .limit(i32::try_from(limit - groups.len()).unwrap_or(i32::MAX));
            let answer = request.send().await.map_err(|error| StoreError::service("Query", &self.table.name, error))?;
            for item in answer.items.unwrap_or_default() {
                let reader = Reader::new("groups", "id", &item);
                groups.push(ItemGroup { id: reader.parsed("id")?, upto: reader.small("size")? });
            }
            match (answer.last_evaluated_key, groups.last()) {
                (Some(_), Some(last)) => after = last.id.to_string(),
                _ => break,
            }
        }
        Ok(groups)
    }
}
