//! Replicas that lag: what records were like before their latest writes, so that reads which need not be consistent, and
//! indexes, can be answered from the past.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_smithy_types::base64;
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
    pub(crate) fn at(&self, record: &Record, moment: Instant) -> Option<&Option<Value>> {
        self.0.get(record)?.iter().find(|(until, _)| *until > moment).map(|(_, item)| item)
    }

    /// Makes the answer to a read of records by their keys miss what was written just now.
    pub(crate) fn age_read(&self, request: &Request, answer: &mut Value, lag: Duration, dice: &Dice) -> u64 {
        show_past(request, answer, |record| self.at(record, earlier(lag, dice)).cloned())
    }

    /// Makes an index's answer miss what was written just now, and show what is gone.
    pub(crate) fn age_index(&self, request: &Request, answer: &mut Value, lag: Duration, dice: &Dice) -> u64 {
        let table = request.table();
        let index = request.body["IndexName"].as_str().unwrap_or("");
        let part = Part::of(request);
        let now = Instant::now();
        let Some(items) = answer["Items"].as_array_mut() else { return 0 };
        let recent = |past: &[Past]| past.last().is_some_and(|(until, _)| *until + lag > now);
        let of_table = self.0.range((table.to_owned(), String::new())..).take_while(|((of, _), _)| of == table);
        let mut aged = 0;
        for (record, _) in of_table.filter(|(_, past)| recent(past)) {
            let Some(past) = self.at(record, earlier(lag, dice)) else { continue };
            let shown = items.iter().position(|item| key_of(table, item) == record.1);
            let item = past.as_ref().filter(|item| match &part {
                // An index is named after one of its keys.
                Some(part) => !item[index].is_null() && part.has(item),
                None => !item[index].is_null() && segment_of(&record.1, &request.body),
            });
            match (shown, item) {
                (Some(at), None) => {
                    items.remove(at);
                }
                (None, Some(item)) => items.push(keys_only(table, index, part.as_ref(), item)),
                _ => continue,
            }
            aged += 1;
        }
        if aged > 0 {
            let sort = part.as_ref().map_or("rank", |part| part.sort);
            items.sort_by_key(|item| sortable(&item[sort]));
            if request.body["ScanIndexForward"] == false {
                items.reverse();
            }
            if let Some(limit) = request.body["Limit"].as_u64() {
                items.truncate(limit as usize);
            }
            answer["Count"] = json!(answer["Items"].as_array().map_or(0, Vec::len));
        }
        aged
    }
}

/// Has the answer to a read of records by their keys show those of which something is `past` as they were then. Returns
/// how many.
pub(crate) fn show_past(
    request: &Request,
    answer: &mut Value,
    mut past: impl FnMut(&Record) -> Option<Option<Value>>,
) -> u64 {
    let table = request.table();
    let keys = match request.operation.as_str() {
        "GetItem" => std::slice::from_ref(&request.body["Key"]),
        _ => request.body["RequestItems"][table]["Keys"].as_array().map_or(&[][..], Vec::as_slice),
    };
    let mut keys: Vec<String> = keys.iter().map(|key| key_of(table, key)).collect();
    keys.sort();
    let mut shown = 0;
    for key in keys {
        let record = (table.to_owned(), key);
        if let Some(past) = past(&record) {
            show(request, answer, &record.1, past);
            shown += 1;
        }
    }
    shown
}

/// Has an answer show a record like this; none: it did not exist.
fn show(request: &Request, answer: &mut Value, key: &str, past: Option<Value>) {
    let table = request.table();
    if request.operation == "GetItem" {
        if let Value::Object(answer) = answer {
            answer.remove("Item");
            answer.extend(past.map(|item| ("Item".to_owned(), item)));
        }
        return;
    }
    let names = request.body["RequestItems"][table]["ExpressionAttributeNames"].as_object();
    let projected: Option<Vec<&str>> = names.map(|names| names.values().filter_map(Value::as_str).collect());
    let Some(items) = answer["Responses"][table].as_array_mut() else { return };
    items.retain(|item| key_of(table, item) != key);
    if let Some(Value::Object(mut item)) = past {
        item.retain(|name, _| projected.as_ref().is_none_or(|projected| projected.contains(&name.as_str())));
        items.push(Value::Object(item));
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

/// The part of an index that a query is about.
struct Part<'a> {
    /// Its partition key and its sort key.
    key: &'a str,
    sort: &'a str,
    values: &'a Value,
}

impl<'a> Part<'a> {
    fn of(request: &'a Request) -> Option<Self> {
        let (names, values) = (&request.body["ExpressionAttributeNames"], &request.body["ExpressionAttributeValues"]);
        Some(Self { key: names["#key"].as_str()?, sort: names["#sort"].as_str().unwrap_or("rank"), values })
    }

    fn has(&self, item: &Value) -> bool {
        let at = sortable(&item[self.sort]);
        let bound = |name: &str| self.values.get(name).map(sortable);
        item[self.key] == self.values[":key"]
            && bound(":after").is_none_or(|after| at > after)
            && bound(":until").is_none_or(|until| at <= until)
            && bound(":low").is_none_or(|low| at >= low)
            && bound(":high").is_none_or(|high| at <= high)
    }
}

/// An attribute, so that it sorts as the sort key that it is.
fn sortable(value: &Value) -> Vec<u8> {
    match (value["N"].as_str(), value["B"].as_str(), value["S"].as_str()) {
        (Some(number), _, _) => {
            let (whole, parts) = number.split_once('.').unwrap_or((number, ""));
            let whole = whole.parse::<u128>().unwrap_or(0).to_be_bytes();
            whole.iter().copied().chain(parts.bytes()).collect()
        }
        (_, Some(bytes), _) => base64::decode(bytes).unwrap_or_default(),
        (_, _, text) => text.unwrap_or("").as_bytes().to_vec(),
    }
}

fn keys_only(table: &str, index: &str, part: Option<&Part<'_>>, item: &Value) -> Value {
    let (key, sort) = part.map_or((index, "rank"), |part| (part.key, part.sort));
    let names = [key_name(table), index, key, sort, "created_at", "size"];
    let kept = names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
    Value::Object(kept.collect::<Map<_, _>>())
}
