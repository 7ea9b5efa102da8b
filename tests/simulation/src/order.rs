//! The order in which the tasks of a lane go, where they may have head starts.

use std::collections::{BTreeMap, BTreeSet};

use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::base64;
use fanfold::bits::Bits;
use fanfold::lane::Lane;
use fanfold::members::Members;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::filled::head_start;
use crate::lock;
use crate::request::{Record, Request, key_of, text};
use crate::wire::Line;

/// A lane in which more waits is not looked at: the index that lags may cut off its page.
const LOOKED_AT: usize = 60;

/// What leaders had seen when they wrote their intents, and when sweeps began.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// When an invocation looked at a lane first, and how often it did.
    looked: BTreeMap<(String, String), (Instant, u32)>,
    /// When an invocation read a bundle first.
    read: BTreeMap<String, BTreeMap<String, Instant>>,
    intents: BTreeMap<String, Rests>,
    /// When the first sweep began that asked for other switches, by what it asked for.
    pub(crate) switching: BTreeMap<String, Instant>,
}

/// What the intent of a batch rests on, whoever wrote it.
#[derive(Clone, Debug)]
struct Rests {
    /// The first look at its lane.
    looked: Instant,
    /// The bundles that were read, whether or not the index showed them.
    read: BTreeMap<String, Instant>,
}

/// The bundles that a request reads.
fn bundles(request: &Request) -> Vec<String> {
    let reads = request.operation == "BatchGetItem" && request.table() == "TasksTable";
    let keys = request.body["RequestItems"]["TasksTable"]["Keys"].as_array().filter(|_| reads);
    let keys = keys.into_iter().flatten().map(|key| key_of("TasksTable", key));
    keys.filter(|key| key.starts_with("bundle:")).collect()
}

/// The batch, the lane and the members of an intent.
pub(crate) fn intended(request: &Request) -> Option<(&str, &str, Members)> {
    let item = &request.body["Item"];
    let intends = request.operation == "PutItem" && request.table() == "BatchesTable";
    let (batch, lane) = (text(item, "id"), text(item, "lane"));
    (intends && text(item, "status") == "grouping").then(|| (batch, lane, members(item)))
}

fn members(item: &Value) -> Members {
    Members::unpack(&bytes(item, "members")).unwrap_or_default()
}

fn bytes(item: &Value, name: &str) -> Vec<u8> {
    base64::decode(item[name]["B"].as_str().unwrap_or("")).unwrap_or_default()
}

impl Line {
    /// Looks at a request before it is made. Remembers when a leader looks at its lane, and what its intent rests on.
    pub(crate) fn looks(&self, request: &Request, who: &str) {
        // A leader that does not look at its lane is held to what the index showed when its invocation began.
        let begun = lock(&self.sim.heeding).knows_switches_of(who).map(|begun| (begun, 0));
        let mut looks = lock(&self.sim.looks);
        let body = &request.body;
        if request.operation == "Query" && body["IndexName"] == "pending" && body["ExclusiveStartKey"].is_null() {
            let lane = text(&body["ExpressionAttributeValues"], ":key").to_owned();
            looks.looked.entry((who.to_owned(), lane)).or_insert((Instant::now(), 0)).1 += 1;
        } else if let Some((batch, lane, _)) = intended(request)
            && let Some((looked, times)) = looks.looked.get(&(who.to_owned(), lane.to_owned())).copied().or(begun)
        {
            // One that looks several times has several messages for the lane: what it read for which is not known.
            let read = looks.read.get(who).filter(|_| times == 1).cloned().unwrap_or_default();
            let rests = looks.intents.entry(batch.to_owned()).or_insert(Rests { looked, read: read.clone() });
            rests.looked = looked.min(rests.looked);
            rests.read.retain(|bundle, _| read.contains_key(bundle));
        }
        for bundle in bundles(request) {
            looks.read.entry(who.to_owned()).or_default().entry(bundle).or_insert_with(Instant::now);
        }
    }

    /// A batch takes no task that counts from later than one that it leaves, if its leader must have seen that one. An intent was
    /// written just now.
    pub(crate) async fn in_order(&self, request: &Request) -> Result<(), ConnectorError> {
        let Some((batch, lane, members)) = intended(request) else { return Ok(()) };
        let kind = lane.parse::<Lane>().map(|lane| lane.kind).unwrap_or_default();
        let by_rank = lock(&self.sim.model).kinds.get(&kind).is_some_and(|kind| kind.filling.by_rank);
        let rests = lock(&self.sim.looks).intents.get(batch).cloned();
        let Some(Rests { looked, read }) = rests.filter(|_| by_rank) else { return Ok(()) };
        let waiting = self.waiting_in(lane).await?;
        if waiting.len() > LOOKED_AT {
            return Ok(());
        }
        let then = looked.checked_sub(self.sim.plan.index_lag).unwrap_or(looked);
        let seen = |(record, item): &(&Record, &Value)| {
            let lag = lock(&self.sim.lag);
            let waited = |moment| lag.at(record, moment).is_none_or(|was| was.as_ref().is_some_and(waits));
            // What was reissued for small batches has no room in each.
            item["at_most"].is_null() && (waited(then) || read.get(&record.1).is_some_and(|at| waited(*at)))
        };
        let taken: BTreeSet<String> = members.ids().iter().map(ToString::to_string).collect();
        let left = waiting.iter().filter(seen).flat_map(|(record, item)| tasks(record, item));
        let left: BTreeSet<String> = left.filter(|id| !taken.contains(id)).collect();
        let (last, first) = (self.counts_from(&taken).await?.pop(), self.counts_from(&left).await?.into_iter().next());
        *lock(&self.sim.stats).brought.entry("intents in order").or_default() += u64::from(first.is_some());
        if let (Some(last), Some(first)) = (last, first)
            && first.0 < last.0
        {
            self.sim.violate(format!("batch {batch} takes {last:?}, and leaves {first:?}, which counts from earlier"));
        }
        Ok(())
    }

    /// The records that wait in a lane, as they are.
    async fn waiting_in(&self, lane: &str) -> Result<BTreeMap<Record, Value>, ConnectorError> {
        let query = json!({
            "TableName": "TasksTable", "IndexName": "pending", "KeyConditionExpression": "pending = :lane",
            "ExpressionAttributeValues": {":lane": {"S": lane}},
        });
        self.waiting("Query", &query).await
    }

    /// The records that wait of those that an index shows, as they are.
    pub(crate) async fn waiting(
        &self,
        operation: &str,
        asked: &Value,
    ) -> Result<BTreeMap<Record, Value>, ConnectorError> {
        let shown = self.raw(operation, asked).await?.body;
        let shown = shown["Items"].as_array().into_iter().flatten();
        let records: Vec<Record> = shown.map(|item| ("TasksTable".to_owned(), key_of("TasksTable", item))).collect();
        let mut images = self.images(&records).await?;
        images.retain(|_, item| waits(item));
        Ok(images)
    }

    /// The moments from which tasks count, in order: when they were registered, or their bundle was begun, less the head start that
    /// their contents give them.
    async fn counts_from(&self, tasks: &BTreeSet<String>) -> Result<Vec<(u64, String)>, ConnectorError> {
        let records: Vec<Record> = tasks.iter().map(|id| ("TasksTable".to_owned(), id.clone())).collect();
        let tasks = self.images(&records).await?;
        let bundle = |task: &Value| {
            let id = uuid::Uuid::from_slice(&bytes(task, "bundle")).ok()?;
            Some(("TasksTable".to_owned(), format!("bundle:{id}")))
        };
        let bundles = self.images(&tasks.values().filter_map(bundle).collect::<Vec<_>>()).await?;
        let mut from: Vec<(u64, String)> = tasks
            .iter()
            .map(|((_, id), task)| {
                let at = bundle(task).and_then(|record| bundles.get(&record)).unwrap_or(task);
                (created_at(at).saturating_sub(head_start(text(task, "content")) * 1_000), id.clone())
            })
            .collect();
        from.sort();
        Ok(from)
    }
}

/// Whether tasks of a record wait.
fn waits(item: &Value) -> bool {
    text(item, "status") == "created" || text(item, "state") == "waiting"
}

/// The tasks that wait in a record.
fn tasks((_, id): &Record, item: &Value) -> Vec<String> {
    if !id.starts_with("bundle:") {
        return vec![id.clone()];
    }
    let (members, free) = (members(item), Bits::from_bytes(bytes(item, "free")));
    free.iter().filter_map(|slot| members.ids().get(slot).map(ToString::to_string)).collect()
}

/// When a record was registered: the head start is in what the index sorts by, before the point, and after it in millionths.
pub(crate) fn created_at(item: &Value) -> u64 {
    let number = item["rank"]["N"].as_str().unwrap_or("");
    let (from, parts) = number.split_once('.').unwrap_or((number, "0"));
    let seconds = format!("{parts:0<6}").parse::<u64>().unwrap_or(0);
    from.parse().unwrap_or(0) + seconds * 1_000
}
