//! DynamoDB as it throttles: each partition key of a table and of its indexes, and each table as a whole, takes so many units per
//! second, and what is beyond that is refused. Each key counts as a partition of its own, without burst capacity. Time is
//! tokio's.

mod requests;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use fanfold_local::{Fate, Interceptor, Service, ServiceAnswer, ServiceRequest};
use futures::FutureExt;
use futures::future::BoxFuture;
use requests::{Record, Written, entry, indexes, key_name, read, refusal, size, written};
use serde_json::Value;
use tokio::time::Instant;

/// How long every request takes.
const LATENCY: Duration = Duration::from_millis(5);

/// What partitions and tables take, in units per second.
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
