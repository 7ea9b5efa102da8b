//! What one core does between the bodies of messages and cleared bits: reads them, gathers them by group, clears. No I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fanfold::clock::Timestamp;
use fanfold::delivery::read;
use fanfold::ids::ItemId;
use fanfold::limits::GROUP_ITEMS_MAX;
use fanfold::messages::AckRequest;
use fanfold::store::groups::{GroupRecord, clear};
use fanfold::tracking::{Acks, collect};
use serde_json::{Value, json};
use uuid::Uuid;

use super::bodies::{self, Shape};
use crate::Outcome;

/// Messages of one invocation of the function `ack`: as many as a payload of 6 MB holds.
const INVOCATION: usize = 5_000;

/// What is asked for.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// Items, each acked once.
    #[arg(long, default_value_t = 1_000_000)]
    items: u32,
    /// Items that one message acks.
    #[arg(long, default_value_t = 100)]
    per_message: usize,
    /// How a message names them.
    #[arg(long, value_enum, default_value_t = Shape::Ids)]
    shape: Shape,
    /// The order of the items.
    #[arg(long, value_enum, default_value_t = Order::Random)]
    order: Order,
}

/// The order in which items are acked.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    /// As they were added.
    Added,
    /// Any.
    Random,
}

/// How long this thread has had a processor: others that want it, too, do not count.
fn processor_time() -> Outcome<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// Measures it, in time of a processor (on Linux).
pub(crate) fn run(asked: &Asked) -> Outcome<Value> {
    let fanout = Uuid::from_u128(1 << 100);
    let place = |at: u32| ItemId {
        fanout,
        group: Uuid::from_u128((7 << 100) + u128::from(at / GROUP_ITEMS_MAX)),
        index: u16::try_from(at % GROUP_ITEMS_MAX).unwrap_or_default(),
    };
    let mut items: Vec<(ItemId, bool)> = (0..asked.items).map(|at| (place(at), false)).collect();
    let new = |item: &ItemId| GroupRecord::new(item.group, fanout, GROUP_ITEMS_MAX, Timestamp(0));
    let mut groups: BTreeMap<Uuid, GroupRecord> = items.iter().map(|(item, _)| (item.group, new(item))).collect();
    if matches!(asked.order, Order::Random) {
        fastrand::Rng::with_seed(1).shuffle(&mut items);
    }
    let bodies: Vec<String> = items
        .chunks(asked.per_message.max(1))
        .map(|acks| bodies::of(acks, asked.shape))
        .collect::<Outcome<Vec<Vec<String>>>>()?
        .concat();
    let (mut reading, mut gathering, mut clearing) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut cleared = 0;
    for bodies in bodies.chunks(INVOCATION) {
        let began = processor_time()?;
        let requests = bodies.iter().map(|body| read::<AckRequest>(body)).collect::<Result<Vec<_>, _>>()?;
        reading += processor_time()?.saturating_sub(began);
        let began = processor_time()?;
        let mut acks = Acks::new();
        requests.iter().for_each(|request| collect(&mut acks, request));
        gathering += processor_time()?.saturating_sub(began);
        let began = processor_time()?;
        for ((_, group), mask) in &acks {
            if let Some(record) = groups.get_mut(group) {
                let after = clear(record, mask);
                cleared += after.newly;
                *record = record.after(&after, Timestamp(1));
            }
        }
        clearing += processor_time()?.saturating_sub(began);
    }
    if cleared != u64::from(asked.items) {
        return Err(format!("{cleared} of {} items were cleared", asked.items).into());
    }
    let took = (reading + gathering + clearing).as_secs_f64();
    Ok(json!({
        "items": asked.items,
        "messages": bodies.len(),
        "bytes": bodies.iter().map(String::len).sum::<usize>(),
        "acks_per_second": f64::from(asked.items) / took,
        "reading_seconds": reading.as_secs_f64(),
        "gathering_seconds": gathering.as_secs_f64(),
        "clearing_seconds": clearing.as_secs_f64(),
    }))
}
