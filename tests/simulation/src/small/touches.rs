//! What a request reads and changes, as far as others could notice: two that touch nothing in common may go in either order.

use fanfold::store::locks::is_lane;
use serde_json::Value;

use crate::marked::group_of;
use crate::observe::begins;
use crate::request::{Record, Request, key_of, queue_of};

/// What stops at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It only reads.
    Read,
    /// It may change records, or sends messages.
    Write,
    /// A call of the batch API begins.
    Call,
    /// A receiver of notices gets one, and answers.
    Notice,
    /// The batch API answers.
    Answer,
}

/// Something that can be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Spot {
    Record(Record),
    /// All records of a table, or all messages of a queue.
    Table(String),
    Everything,
}

impl Spot {
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everything, _) | (_, Self::Everything) => true,
            (Self::Table(table), Self::Record((of, _)) | Self::Table(of))
            | (Self::Record((of, _)), Self::Table(table)) => table == of,
            (Self::Record(one), Self::Record(other)) => one == other,
        }
    }
}

/// A request that stands at the gate.
#[derive(Clone, Debug)]
pub(crate) struct Touches {
    /// What it is, for people.
    pub(crate) what: String,
    pub(crate) sort: Sort,
    /// Whether its answer can get lost: of the statements of a batch only the last one's.
    pub(crate) answered: bool,
    /// Whether it reads, and need not see the latest writes.
    eventual: bool,
    reads: Vec<Spot>,
    writes: Vec<Spot>,
}

impl Touches {
    /// A request to DynamoDB or SQS. What the simulation's own checks look at beside the record counts as read.
    pub(crate) fn request(request: &Request, sqs: bool, answered: bool) -> Self {
        let what = format!("{} {}", request.kind, request.names);
        let (reads, writes) = if sqs { sent(request) } else { looked_up(request) };
        let sort = if writes.is_empty() { Sort::Read } else { Sort::Write };
        Self { what, sort, answered, eventual: request.kind.ends_with(" eventual"), reads, writes }
    }

    /// A call of somebody outside the stack, or its answer: the model remembers them, and every check may ask it.
    pub(crate) fn outside(sort: Sort, what: &str) -> Self {
        let (reads, writes) = (Vec::new(), vec![Spot::Everything]);
        Self { what: what.to_owned(), sort, answered: true, eventual: false, reads, writes }
    }

    /// A look at the messages of a queue.
    pub(crate) fn messages(queue: &str) -> Self {
        let reads = vec![Spot::Table(queue.to_owned())];
        let (what, writes) = (format!("a look at {queue}"), Vec::new());
        Self { what, sort: Sort::Read, answered: true, eventual: false, reads, writes }
    }

    /// Whether it may be answered from the past: something that it reads has `changed`.
    pub(crate) fn may_be_stale(&self, changed: impl Fn(&Record) -> bool) -> bool {
        self.eventual && self.reads.iter().any(|spot| matches!(spot, Spot::Record(record) if changed(record)))
    }

    /// Whether the order of these two could show.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        let hits = |writes: &[Spot], spots: &[Spot]| writes.iter().any(|one| spots.iter().any(|spot| one.meets(spot)));
        hits(&self.writes, &other.writes) || hits(&self.writes, &other.reads) || hits(&other.writes, &self.reads)
    }
}

/// Messages commute; what is checked when they are sent does not commute with them.
fn sent(request: &Request) -> (Vec<Spot>, Vec<Spot>) {
    let queue = queue_of(&request.body).to_owned();
    let bodies = request.body["Entries"].as_array().into_iter().flatten();
    let writes = bodies.map(|entry| Spot::Record((queue.clone(), entry["MessageBody"].to_string())));
    let reads: &[&str] = match queue.as_str() {
        "HandleQueue" => &["BatchesTable"],
        "NoticesQueue" => &["FanoutsTable", "GroupsTable"],
        _ => &[],
    };
    (reads.iter().map(|table| Spot::Table((*table).to_owned())).collect(), writes.collect())
}

fn looked_up(request: &Request) -> (Vec<Spot>, Vec<Spot>) {
    let writes: Vec<Spot> = request.writes.iter().cloned().map(Spot::Record).collect();
    let table = request.table().to_owned();
    let record = |key: &Value| Spot::Record((table.clone(), key_of(&table, key)));
    let reads = match request.operation.as_str() {
        "GetItem" => vec![record(&request.body["Key"])],
        "BatchGetItem" => {
            request.body["RequestItems"][&table]["Keys"].as_array().into_iter().flatten().map(record).collect()
        }
        // Whether a batch was done when its lane let go of it.
        "UpdateItem" if table == "LocksTable" && is_lane(&key_of(&table, &request.body["Key"])) => {
            vec![Spot::Table("BatchesTable".to_owned())]
        }
        // Whether the fan-outs of members were cut short before.
        "UpdateItem" if begins(request) => vec![Spot::Table("FanoutsTable".to_owned())],
        // Whether the owner of a key had been dropped or had failed, and the bundle of a freed task was dead.
        "BatchExecuteStatement" if looks_at_others(request) => vec![Spot::Table("TasksTable".to_owned())],
        // Whether the group of a task's item knew that it has tasks.
        "BatchExecuteStatement" if request.kind.ends_with(" task") => {
            request.writes.iter().filter_map(|(_, id)| group_of(id)).map(Spot::Record).collect()
        }
        "Query" | "Scan" => vec![Spot::Table(table)],
        _ => Vec::new(),
    };
    (reads, writes)
}

/// Whether what a statement changes is looked at beside other records of tasks, bundles and keys.
fn looks_at_others(request: &Request) -> bool {
    let statement = request.body["Statements"][0]["Statement"].as_str();
    let frees = statement.is_some_and(|text| text.contains("REMOVE \"bundle\""));
    frees || ["take over", "release"].iter().any(|what| request.kind.ends_with(what))
}

/// A fingerprint of a value that does not depend on the order in which names, and members of sets, are written down.
pub(crate) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            // SQS numbers its messages in the order in which they come.
            let mut fields: Vec<_> = fields.iter().filter(|(name, _)| *name != "MessageId").collect();
            fields.sort_by_key(|(name, _)| *name);
            let field = |(name, value): (&String, &Value)| match (name.as_str(), value) {
                ("SS" | "NS" | "BS", Value::Array(members)) => {
                    let mut members: Vec<String> = members.iter().map(Value::to_string).collect();
                    members.sort();
                    format!("{name}:{members:?}")
                }
                _ => format!("{name}:{}", canonical(value)),
            };
            format!("{{{}}}", fields.into_iter().map(field).collect::<Vec<_>>().join(","))
        }
        Value::Array(values) => format!("[{}]", values.iter().map(canonical).collect::<Vec<_>>().join(",")),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn update(table: &str, key: &str) -> Touches {
        let name = if table == "LocksTable" { "lane" } else { "id" };
        let body = json!({"TableName": table, "Key": {name: {"S": key}}});
        Touches::request(&Request::dynamodb("UpdateItem", body), false, true)
    }

    #[test]
    fn only_what_touches_the_same_meets() {
        let query = json!({"TableName": "TasksTable", "IndexName": "pending"});
        let query = Touches::request(&Request::dynamodb("Query", query), false, true);
        assert_eq!(query.sort, Sort::Read);
        let get = Request::dynamodb("GetItem", json!({"TableName": "TasksTable", "Key": {"id": {"S": "a"}}}));
        let get = Touches::request(&get, false, true);
        assert!(get.may_be_stale(|record| record.1 == "a") && !get.may_be_stale(|record| record.1 == "b"));
        assert!(!query.may_be_stale(|_| true) && !update("TasksTable", "a").may_be_stale(|_| true));
        assert!(update("TasksTable", "a").meets(&update("TasksTable", "a")));
        assert!(!update("TasksTable", "a").meets(&update("TasksTable", "b")));
        assert!(update("TasksTable", "a").meets(&query) && query.meets(&update("TasksTable", "a")));
        assert!(!update("BatchesTable", "a").meets(&query) && !query.meets(&query));
        assert!(update("LocksTable", "a").meets(&update("BatchesTable", "b")));
        let call = Touches::outside(Sort::Call, "call");
        assert!(call.meets(&query) && call.meets(&call));
    }

    #[test]
    fn equal_values_have_one_fingerprint() {
        let one: Value =
            serde_json::from_str(r#"{"a": {"BS": ["x", "y"]}, "b": [1], "MessageId": 1}"#).unwrap_or_default();
        let other: Value =
            serde_json::from_str(r#"{"b": [1], "MessageId": 2, "a": {"BS": ["y", "x"]}}"#).unwrap_or_default();
        assert_eq!(canonical(&one), canonical(&other));
        assert_ne!(canonical(&json!({"L": [1, 2]})), canonical(&json!({"L": [2, 1]})));
    }
}
