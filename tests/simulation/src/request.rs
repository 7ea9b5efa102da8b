//! What a request of the steps asks for, as far as the simulation has to know.

use std::collections::BTreeSet;

use aws_smithy_types::base64;
use serde_json::Value;
use uuid::Uuid;

/// A record: its table and its key.
pub(crate) type Record = (String, String);

/// A request to DynamoDB or SQS.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The operation, such as `UpdateItem`.
    pub(crate) operation: String,
    /// Operation with table, index and sort of statement: what coverage is counted by.
    pub(crate) kind: String,
    /// What it names, for the trace.
    pub(crate) names: String,
    /// The records it may change.
    pub(crate) writes: Vec<Record>,
    /// The body.
    pub(crate) body: Value,
}

/// The name of a table's key.
pub(crate) fn key_name(table: &str) -> &'static str {
    match table {
        "LocksTable" => "lane",
        "PoliciesTable" => "kind",
        _ => "id",
    }
}

/// A string attribute.
pub(crate) fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name]["S"].as_str().unwrap_or("")
}

/// The fan-out of a group.
pub(crate) fn fanout_of(group: &Value) -> Option<Uuid> {
    Uuid::from_slice(&base64::decode(group["fanout"]["B"].as_str()?).ok()?).ok()
}

/// The key of an item, or of a request's `Key`.
pub(crate) fn key_of(table: &str, item: &Value) -> String {
    text(item, key_name(table)).to_owned()
}

/// What tells a read that need not be consistent from one that must be.
fn eventual(consistent: &Value) -> String {
    if consistent.as_bool() == Some(true) { String::new() } else { " eventual".to_owned() }
}

impl Request {
    /// Reads a DynamoDB request.
    pub(crate) fn dynamodb(operation: &str, body: Value) -> Self {
        let mut table = body["TableName"].as_str().unwrap_or("").to_owned();
        let mut sort = String::new();
        let mut writes = Vec::new();
        let mut names = String::new();
        match operation {
            "PutItem" => writes.push((table.clone(), key_of(&table, &body["Item"]))),
            "UpdateItem" | "DeleteItem" => writes.push((table.clone(), key_of(&table, &body["Key"]))),
            "GetItem" => {
                names = key_of(&table, &body["Key"]);
                sort = eventual(&body["ConsistentRead"]);
            }
            "BatchGetItem" => {
                if let Some((name, keys)) = body["RequestItems"].as_object().and_then(|tables| tables.iter().next()) {
                    table.clone_from(name);
                    // Reads have no order, so none may show.
                    let keys = keys["Keys"].as_array().into_iter().flatten().map(|key| key_of(&table, key));
                    names = keys.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(" ");
                }
                sort = eventual(&body["RequestItems"][&table]["ConsistentRead"]);
            }
            "TransactWriteItems" => {
                for action in body["TransactItems"].as_array().into_iter().flatten() {
                    let (put, update) = (&action["Put"], &action["Update"]);
                    let (action, item) = if put.is_null() { (update, &update["Key"]) } else { (put, &put["Item"]) };
                    let table = action["TableName"].as_str().unwrap_or("").to_owned();
                    let key = key_of(&table, item);
                    writes.push((table, key));
                }
            }
            "BatchExecuteStatement" => {
                for statement in body["Statements"].as_array().into_iter().flatten() {
                    let (record, what) = statement_record(statement);
                    table.clone_from(&record.0);
                    sort = format!(" {what}");
                    writes.push(record);
                }
            }
            "Query" | "Scan" => {
                sort = format!(" {}", body["IndexName"].as_str().unwrap_or("-"));
                names = text(&body["ExpressionAttributeValues"], ":key").to_owned();
            }
            _ => {}
        }
        if !writes.is_empty() {
            names = writes.iter().map(|(_, key)| key.as_str()).collect::<Vec<_>>().join(" ");
        }
        let kind = format!("{operation} {}{sort}", table.trim_end_matches("Table")).trim_end().to_owned();
        Self { operation: operation.to_owned(), kind, names, writes, body }
    }

    /// Reads an SQS request.
    pub(crate) fn sqs(operation: &str, body: Value) -> Self {
        let queue = queue_of(&body).to_owned();
        let entries = body["Entries"].as_array().into_iter().flatten();
        let entries = entries.map(|entry| {
            let text = entry["MessageBody"].as_str().unwrap_or("");
            let delay = entry["DelaySeconds"].as_u64().unwrap_or(0);
            if delay > 0 { format!("{text} in {delay}s") } else { text.to_owned() }
        });
        let names = entries.collect::<Vec<_>>().join(" ");
        // Dead-letter queues are all asked alike.
        let asked = if queue.ends_with("DeadLetterQueue") { "DeadLetter" } else { queue.trim_end_matches("Queue") };
        let kind = format!("{operation} {asked}");
        Self { operation: operation.to_owned(), kind, names, writes: Vec::new(), body }
    }

    /// What IAM asks of the caller of this request: actions and their resources. A transaction or a batch of statements needs
    /// what its parts need; indexes are resources of their own.
    pub(crate) fn actions(&self) -> Vec<(String, String)> {
        let on = |action: &str, resource: &str| (format!("dynamodb:{action}"), resource.to_owned());
        let tables = self.writes.iter().map(|(table, _)| table.as_str());
        match self.operation.as_str() {
            "SendMessageBatch" => vec![("sqs:SendMessage".to_owned(), queue_of(&self.body).to_owned())],
            "GetQueueAttributes" => vec![("sqs:GetQueueAttributes".to_owned(), queue_of(&self.body).to_owned())],
            "TransactWriteItems" => {
                let actions = self.body["TransactItems"].as_array().into_iter().flatten();
                let puts = actions.map(|action| if action["Put"].is_null() { "UpdateItem" } else { "PutItem" });
                puts.zip(tables).map(|(action, table)| on(action, table)).collect()
            }
            "BatchExecuteStatement" => {
                let update = [" claim", " release", " take over"].iter().any(|what| self.kind.ends_with(what));
                tables.map(|table| on(if update { "PartiQLUpdate" } else { "PartiQLInsert" }, table)).collect()
            }
            action => {
                let index = self.body["IndexName"].as_str().map(|index| format!("/index/{index}"));
                vec![on(action, &format!("{}{}", self.table(), index.unwrap_or_default()))]
            }
        }
    }

    /// The table of an index or batch read.
    pub(crate) fn table(&self) -> &str {
        let table = self.body["TableName"].as_str();
        table.or_else(|| self.body["RequestItems"].as_object()?.keys().next().map(String::as_str)).unwrap_or("")
    }
}

/// The name of the queue a request is for.
pub(crate) fn queue_of(body: &Value) -> &str {
    body["QueueUrl"].as_str().and_then(|url| url.rsplit('/').next()).unwrap_or("")
}

/// The record a PartiQL statement writes, and what it does. Fanfold's statements name the key by a parameter.
pub(crate) fn statement_record(statement: &Value) -> (Record, &'static str) {
    let text = statement["Statement"].as_str().unwrap_or("");
    let table = text.split('"').nth(1).unwrap_or("").to_owned();
    let (at, what) = match text.find("WHERE \"id\" = ?") {
        Some(end) => {
            let what = match () {
                () if text.contains("REMOVE \"released\"") => "take over",
                () if text.contains("\"released\" = ?") => "release",
                () => "claim",
            };
            (text[..end].matches('?').count(), what)
        }
        None => {
            let what = match () {
                () if text.contains("'owner'") => "key",
                () if text.contains("'digest'") => "request",
                () if text.contains("'of'") => "duplicate",
                () => "task",
            };
            (text.split("'id'").next().unwrap_or("").matches('?').count(), what)
        }
    };
    let key = statement["Parameters"][at]["S"].as_str().unwrap_or("").to_owned();
    ((table, key), what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_statement_is_about_the_record_whose_key_it_names() {
        let record = |text: &str| {
            let parameters = json!([{"S": "first"}, {"S": "second"}, {"S": "third"}]);
            statement_record(&json!({"Statement": text, "Parameters": parameters}))
        };
        let of = |key: &str| ("TasksTable".to_owned(), key.to_owned());
        assert_eq!(
            record("INSERT INTO \"TasksTable\" VALUE {'content': ?, 'id': ?, 'lane': ?}"),
            (of("second"), "task")
        );
        assert_eq!(record("INSERT INTO \"TasksTable\" VALUE {'id': ?, 'owner': ?}"), (of("first"), "key"));
        let claim = "UPDATE \"TasksTable\" SET \"free\" = ? SET \"state\" = ? WHERE \"id\" = ? AND \"free\" = ?";
        assert_eq!(record(claim), (of("third"), "claim"));
    }
}
