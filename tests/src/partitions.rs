//! DynamoDB as it throttles: each partition key of a table and of its indexes, and each table as a whole, takes so many units a second, and
//! what is beyond that is refused. Each key counts as a partition of its own, without burst capacity. Time is tokio's.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_smithy_types::base64;
use fanfold_local::{Fate, Interceptor, Service, ServiceAnswer, ServiceRequest};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

/// How long every request takes.
const LATENCY: Duration = Duration::from_millis(5);

/// What partitions and tables take, in units a second.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    pub writes: f64,
    pub reads: f64,
    pub table_writes: f64,
}

impl Throughput {
    /// What DynamoDB gives a new table, or so many times as much.
    pub fn of_a_new_table(times: f64) -> Self {
        Self { writes: 1_000.0 * times, reads: 3_000.0 * times, table_writes: 4_000.0 * times }
    }
}

/// A record's table and key.
type Record = (String, String);
type Images = BTreeMap<Record, HashMap<String, AttributeValue>>;

/// A partition, and whether it is about reads.
type Partition = (String, bool);

/// Partitions with their limits.
#[derive(Debug)]
pub struct Partitions {
    limits: Throughput,
    /// What sees the tables without being seen here.
    tables: OnceLock<Client>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What each takes at once, and since when that is so.
    buckets: HashMap<Partition, (f64, Instant)>,
    /// What records were like before requests that are under way.
    before: HashMap<usize, Images>,
    throttled: BTreeMap<String, u64>,
}

/// What a request writes: the record, and the new item's attributes that are texts or binary (in base64), if it is new.
struct Written {
    record: Record,
    texts: HashMap<String, String>,
}

impl Partitions {
    pub fn new(limits: Throughput) -> Self {
        Self { limits, tables: OnceLock::new(), state: Mutex::default() }
    }

    pub(crate) fn watch(&self, tables: Client) {
        self.tables.set(tables).unwrap();
    }

    /// Requests that were refused, by what took no more.
    pub fn throttled(&self) -> BTreeMap<String, u64> {
        self.state.lock().unwrap().throttled.clone()
    }

    fn limit(&self, (name, reads): &Partition) -> f64 {
        match (reads, name.contains(' ')) {
            (true, _) => self.limits.reads,
            (false, true) => self.limits.writes,
            (false, false) => self.limits.table_writes,
        }
    }

    /// What one of these takes no more of, if there is one: a request that begins in time may overdraw.
    fn exhausted(&self, partitions: &[Partition]) -> Option<String> {
        let mut state = self.state.lock().unwrap();
        let full = partitions.iter().find(|partition| {
            let (limit, now) = (self.limit(partition), Instant::now());
            let (left, since) = state.buckets.entry((*partition).clone()).or_insert((limit, now));
            *left = limit.min(*left + limit * since.elapsed().as_secs_f64());
            *since = now;
            *left <= 0.0
        });
        let full = full.map(|(name, _)| name.split(' ').take(2).collect::<Vec<_>>().join(" "));
        if let Some(name) = &full {
            *state.throttled.entry(name.clone()).or_default() += 1;
        }
        full
    }

    fn charge(&self, partition: Partition, units: f64) {
        let limit = self.limit(&partition);
        self.state.lock().unwrap().buckets.entry(partition).or_insert((limit, Instant::now())).0 -= units;
    }

    async fn images(&self, written: &[Written]) -> Images {
        let mut images = Images::new();
        for Written { record: (table, key), .. } in written {
            let get = self.tables.get().unwrap().get_item().table_name(table).consistent_read(true);
            let found = get.key(key_name(table), AttributeValue::S(key.clone())).send().await.unwrap().item;
            images.insert((table.clone(), key.clone()), found.unwrap_or_default());
        }
        images
    }
}

impl Interceptor for Partitions {
    fn before<'a>(&'a self, call: &'a ServiceRequest) -> BoxFuture<'a, Fate> {
        async move {
            tokio::time::sleep(LATENCY).await;
            if call.service == Service::Sqs {
                return Fate::Pass;
            }
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            let (written, read) = (written(&call.operation, &body), read(&call.operation, &body));
            let images = self.images(&written).await;
            let mut partitions: Vec<Partition> = read.iter().map(|name| (name.clone(), true)).collect();
            for Written { record, texts } in &written {
                let (table, key) = record;
                partitions.extend([(table.clone(), false), (format!("{table} {key}"), false)]);
                let entries = indexes(table).iter().filter_map(|(index, key)| {
                    let after = || texts.get(*index).and(texts.get(*key)).cloned();
                    let partition = entry(&images[record], index, key).or_else(after)?;
                    Some((format!("{table}/{index} {partition}"), false))
                });
                partitions.extend(entries);
            }
            if self.exhausted(&partitions).is_some() {
                return Fate::Answered(refusal(&call.operation, &body, written.len()));
            }
            for name in read {
                self.charge((name, true), 1.0);
            }
            self.state.lock().unwrap().before.insert(call.body.as_ptr() as usize, images);
            Fate::Pass
        }
        .boxed()
    }

    fn after<'a>(&'a self, call: &'a ServiceRequest, _: &'a ServiceAnswer) -> BoxFuture<'a, Fate> {
        async move {
            let before = self.state.lock().unwrap().before.remove(&(call.body.as_ptr() as usize));
            let Some(before) = before.filter(|before| !before.is_empty()) else { return Fate::Pass };
            let body: Value = serde_json::from_slice(&call.body).unwrap();
            let after = self.images(&written(&call.operation, &body)).await;
            let times = if call.operation == "TransactWriteItems" { 2.0 } else { 1.0 };
            for (record, was) in before {
                let (is, (table, key)) = (&after[&record], &record);
                let units = times * (size(&was).max(size(is)) as f64 / 1_024.0).ceil().max(1.0);
                self.charge((format!("{table} {key}"), false), units);
                self.charge((table.clone(), false), units);
                for (index, key) in indexes(table).iter().filter(|(index, _)| was.get(*index) != is.get(*index)) {
                    for partition in [&was, is].into_iter().filter_map(|item| entry(item, index, key)) {
                        self.charge((format!("{table}/{index} {partition}"), false), 1.0);
                    }
                }
            }
            Fate::Pass
        }
        .boxed()
    }
}

/// The sparse indexes of a table, which have the names of what items in them have, and their partition keys.
fn indexes(table: &str) -> &'static [(&'static str, &'static str)] {
    match table {
        "TasksTable" => &[("pending", "pending")],
        "LocksTable" => &[("active", "active")],
        "FanoutsTable" => &[("ending", "ending"), ("idle", "idle"), ("named", "names"), ("opened", "stands")],
        "GroupsTable" => &[("open", "fanout"), ("listed", "fanout")],
        _ => &[],
    }
}

/// The partition of an index in which an item is.
fn entry(item: &HashMap<String, AttributeValue>, index: &str, key: &str) -> Option<String> {
    item.get(index)?;
    match item.get(key)? {
        AttributeValue::S(text) => Some(text.clone()),
        AttributeValue::B(bytes) => Some(base64::encode(bytes)),
        _ => None,
    }
}

fn key_name(table: &str) -> &'static str {
    match table {
        "LocksTable" => "lane",
        "PoliciesTable" => "kind",
        _ => "id",
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

/// An attribute that is a text or binary.
fn either(value: &Value) -> String {
    value["S"].as_str().or(value["B"].as_str()).unwrap_or("").to_owned()
}

fn texts(item: &Value) -> HashMap<String, String> {
    let attributes = item.as_object().into_iter().flatten();
    attributes.map(|(name, value)| (name.clone(), either(value))).filter(|(_, text)| !text.is_empty()).collect()
}

fn written(operation: &str, body: &Value) -> Vec<Written> {
    let one = |action: &Value| {
        let table = text(&action["TableName"]);
        let item = if action["Item"].is_null() { &action["Key"] } else { &action["Item"] };
        let key = text(&item[key_name(&table)]["S"]);
        Written { record: (table, key), texts: texts(item) }
    };
    let list = |name: &str| body[name].as_array().cloned().unwrap_or_default();
    match operation {
        "PutItem" | "UpdateItem" => vec![one(body)],
        "TransactWriteItems" => {
            list("TransactItems").iter().flat_map(|item| item.as_object().unwrap().values()).map(one).collect()
        }
        "BatchExecuteStatement" => list("Statements").iter().map(statement).collect(),
        _ => Vec::new(),
    }
}

/// `INSERT INTO "T" VALUE {'a': ?, …}`, or `UPDATE "T" SET … WHERE "key" = ? …`.
fn statement(statement: &Value) -> Written {
    let (sql, values) = (text(&statement["Statement"]), &statement["Parameters"]);
    let table = sql.split('"').nth(1).unwrap().to_owned();
    let names = sql.split('\'').skip(1).step_by(2).enumerate();
    let texts: HashMap<String, String> = names.map(|(at, name)| (name.to_owned(), either(&values[at]))).collect();
    let key = match sql.split_once(" WHERE ") {
        Some((set, _)) => text(&values[set.matches('?').count()]["S"]),
        None => texts[key_name(&table)].clone(),
    };
    Written { record: (table, key), texts: texts.into_iter().filter(|(_, text)| !text.is_empty()).collect() }
}

/// The partitions that a request reads.
fn read(operation: &str, body: &Value) -> Vec<String> {
    let of = |table: &str, key: &Value| format!("{table} {}", text(&key[key_name(table)]["S"]));
    match operation {
        "GetItem" => vec![of(&text(&body["TableName"]), &body["Key"])],
        "BatchGetItem" => {
            let tables = body["RequestItems"].as_object().into_iter().flatten();
            let keys = tables.flat_map(|(table, asked)| {
                asked["Keys"].as_array().into_iter().flatten().map(move |key| of(table, key))
            });
            keys.collect()
        }
        "Query" => {
            let (table, index) = (text(&body["TableName"]), text(&body["IndexName"]));
            vec![format!("{table}/{index} {}", either(&body["ExpressionAttributeValues"][":key"]))]
        }
        _ => Vec::new(),
    }
}

/// How DynamoDB refuses what it throttles.
fn refusal(operation: &str, body: &Value, writes: usize) -> ServiceAnswer {
    let answer = |status, body: Value| ServiceAnswer { status, body: body.to_string().into() };
    match operation {
        "BatchGetItem" => answer(200, json!({"Responses": {}, "UnprocessedKeys": body["RequestItems"]})),
        "BatchExecuteStatement" => {
            let refused = json!({"Error": {"Code": "ThrottlingError", "Message": "throttled"}});
            answer(200, json!({ "Responses": vec![refused; writes] }))
        }
        "TransactWriteItems" => {
            let reasons = vec![json!({"Code": "ThrottlingError", "Message": "throttled"}); writes];
            let name = "TransactionCanceledException";
            answer(400, json!({"__type": name, "Message": "throttled", "CancellationReasons": reasons}))
        }
        _ => ServiceAnswer::error(400, "ThrottlingException", "throttled"),
    }
}

fn size(item: &HashMap<String, AttributeValue>) -> usize {
    fn bytes(value: &AttributeValue) -> usize {
        match value {
            AttributeValue::S(text) => text.len(),
            AttributeValue::B(blob) => blob.as_ref().len(),
            AttributeValue::Bs(set) => set.iter().map(|element| element.as_ref().len()).sum(),
            AttributeValue::M(map) => 3 + map.iter().map(|(name, of)| name.len() + bytes(of) + 1).sum::<usize>(),
            _ => 8,
        }
    }
    item.iter().map(|(name, of)| name.len() + bytes(of)).sum()
}
