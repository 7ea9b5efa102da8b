//! Replicas that lag: what records were like before their latest writes, so that reads which need not be consistent, and
//! indexes, can be answered from the past.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::dice::Dice;
use crate::request::{Record, Request, key_name, key_of};

/// For how long the past is remembered.
const MEMORY: Duration = Duration::from_secs(300);

/// A record as it was until a moment; none: it did not exist.
type Past = (Instant, Option<Value>);

/// What records were like.
#[derive(Debug, Default)]
pub(crate) struct Lag(BTreeMap<Record, Vec<Past>>);

impl Lag {
    /// A record was written; `before` is what it was like until now. Returns what it was like before that.
    pub(crate) fn wrote(&mut self, record: Record, before: Option<Value>) -> Option<Option<Value>> {
        let now = Instant::now();
        let past = self.0.entry(record).or_default();
        let earlier = past.last().map(|(_, item)| item.clone());
        past.retain(|(until, _)| *until + MEMORY >= now);
        past.push((now, before));
        earlier
    }

    /// A record as it was at a moment, if it was changed since.
    fn at(&self, record: &Record, moment: Instant) -> Option<&Option<Value>> {
        self.0.get(record)?.iter().find(|(until, _)| *until > moment).map(|(_, item)| item)
    }

    /// Makes the answer to a read of many records miss what was written just now.
    pub(crate) fn age_read(&self, request: &Request, answer: &mut Value, lag: Duration, dice: &Dice) -> u64 {
        let table = request.table().to_owned();
        let names = &request.body["RequestItems"][&table]["ExpressionAttributeNames"];
        let projected: Option<Vec<&str>> =
            names.as_object().map(|names| names.values().filter_map(Value::as_str).collect());
        let keys = request.body["RequestItems"][&table]["Keys"].as_array().into_iter().flatten();
        let mut keys: Vec<String> = keys.map(|key| key_of(&table, key)).collect();
        keys.sort();
        let Some(items) = answer["Responses"][&table].as_array_mut() else { return 0 };
        let mut aged = 0;
        for key in keys {
            let record = (table.clone(), key);
            let Some(past) = self.at(&record, earlier(lag, dice)) else { continue };
            aged += 1;
            items.retain(|item| key_of(&table, item) != record.1);
            if let Some(Value::Object(item)) = past {
                let kept =
                    item.iter().filter(|(name, _)| projected.as_ref().is_none_or(|p| p.contains(&name.as_str())));
                items.push(Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect()));
            }
        }
        aged
    }

    /// Makes an index's answer miss what was written just now, and show what is gone.
    pub(crate) fn age_index(&self, request: &Request, answer: &mut Value, lag: Duration, dice: &Dice) -> u64 {
        let table = request.table();
        let index = request.body["IndexName"].as_str().unwrap_or("");
        let values = &request.body["ExpressionAttributeValues"];
        let (partition, after) = (values.get(":key"), values[":after"]["S"].as_str());
        let now = Instant::now();
        let Some(items) = answer["Items"].as_array_mut() else { return 0 };
        let recent = |past: &[Past]| past.last().is_some_and(|(until, _)| *until + lag > now);
        let of_table = self.0.range((table.to_owned(), String::new())..).take_while(|((of, _), _)| of == table);
        let mut aged = 0;
        for (record, _) in of_table.filter(|(_, past)| recent(past)) {
            let Some(past) = self.at(record, earlier(lag, dice)) else { continue };
            let shown = items.iter().position(|item| key_of(table, item) == record.1);
            let item = past.as_ref().filter(|item| match partition {
                Some(partition) => item[index] == *partition && after.is_none_or(|after| *record.1 > *after),
                None => !item[index].is_null() && segment_of(&record.1, &request.body),
            });
            match (shown, item) {
                (Some(at), None) => {
                    items.remove(at);
                }
                (None, Some(item)) => items.push(keys_only(table, index, item)),
                _ => continue,
            }
            aged += 1;
        }
        if aged > 0 {
            items.sort_by_key(|item| item["created_at"]["N"].as_str().and_then(|n| n.parse::<u64>().ok()));
            if let Some(limit) = request.body["Limit"].as_u64() {
                items.truncate(limit as usize);
            }
            answer["Count"] = json!(answer["Items"].as_array().map_or(0, Vec::len));
        }
        aged
    }
}

fn earlier(lag: Duration, dice: &Dice) -> Instant {
    let lag = dice.millis(0, lag.as_millis() as u64);
    Instant::now().checked_sub(lag).unwrap_or_else(Instant::now)
}

/// A record is shown in one segment of a scan only.
fn segment_of(key: &str, body: &Value) -> bool {
    let of = body["TotalSegments"].as_u64().unwrap_or(1);
    let sum: u64 = key.bytes().map(u64::from).sum();
    sum % of == body["Segment"].as_u64().unwrap_or(0)
}

fn keys_only(table: &str, index: &str, item: &Value) -> Value {
    let names = [key_name(table), index, "created_at", "size"];
    let kept = names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
    Value::Object(kept.collect::<Map<_, _>>())
}
