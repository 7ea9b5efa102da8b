//! Groups of 64 items: two numbers per record. Ours, with a smaller bitfield.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use fanfold::ids::ItemId;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::simple::{Acks, Records, Tables};
use crate::Outcome;
use crate::database::{AT_ONCE, Item, get_all, number, number_of, record, text, transact, update};

/// Items of a group.
const GROUP: u32 = 64;

/// Groups of one transaction: with the header, as many as DynamoDB allows.
const GROUPS: usize = 99;

/// Holds for a group that nobody changed since it was read.
const UNCHANGED: Option<&str> = Some("pending = :pending AND bad = :bad");

/// Sets both fields.
const CHANGE: &str = "SET pending = :left, bad = :failed";

/// Groups of 64 items.
pub(super) struct Bits64;

/// A group, or what is acked of it.
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    /// Items that are open; of acks, those that are done.
    pending: u64,
    /// Items that failed.
    failed: u64,
}

impl Fields {
    fn of(item: &Item) -> Self {
        Self { pending: number_of(item, "pending"), failed: number_of(item, "bad") }
    }

    /// The group after acks.
    fn after(self, acks: Self) -> Self {
        Self { pending: self.pending & !acks.pending, failed: self.failed | (acks.failed & self.pending) }
    }

    /// The values of a change from this group.
    fn values(self, after: Self) -> [(&'static str, aws_sdk_dynamodb::types::AttributeValue); 4] {
        [
            (":pending", number(self.pending)),
            (":bad", number(self.failed)),
            (":left", number(after.pending)),
            (":failed", number(after.failed)),
        ]
    }
}

/// A group about to lose its last bits.
type Ending = (Uuid, Fields, Fields);

impl Records for Bits64 {
    fn make(&self, fanout: Uuid, items: u32) -> (Vec<ItemId>, Vec<Item>) {
        let group = |at: u32| Uuid::from_u128(fanout.as_u128().wrapping_add(1 + u128::from(at / GROUP)));
        let ids = (0..items).map(|at| ItemId { fanout, group: group(at), index: (at % GROUP) as u16 }).collect();
        let make = |first: u32| {
            let size = (items - first).min(GROUP);
            let pending = u64::MAX >> (GROUP - size);
            record([("id", text(group(first))), ("pending", number(pending)), ("bad", number(0))])
        };
        (ids, (0..items).step_by(GROUP as usize).map(make).collect())
    }

    fn apply<'a>(&'a self, tables: &'a Tables, acks: &'a Acks) -> BoxFuture<'a, Outcome<()>> {
        async move {
            let mut masks: BTreeMap<(Uuid, Uuid), Fields> = BTreeMap::new();
            for (item, failed) in acks {
                let mask = masks.entry((item.fanout, item.group)).or_default();
                mask.pending |= 1 << item.index;
                mask.failed |= u64::from(*failed) << item.index;
            }
            let mut todo: Vec<(Uuid, Uuid)> = masks.keys().copied().collect();
            // What somebody else changed while it was to end is looked at again.
            while !todo.is_empty() {
                let ids: Vec<String> = todo.iter().map(|(_, group)| group.to_string()).collect();
                let stand = get_all(&tables.dynamodb, &tables.records, &ids).await?;
                let cleared = todo.iter().zip(&ids).filter_map(|(name, id)| {
                    let (mask, stands) = (*masks.get(name)?, Fields::of(stand.get(id)?));
                    Some(async move { Outcome::Ok((name.0, clear(tables, name.1, stands, mask).await?)) })
                });
                let cleared: Vec<_> = cleared.collect();
                let cleared: Vec<(Uuid, Option<Ending>)> =
                    stream::iter(cleared).buffer_unordered(AT_ONCE).try_collect().await?;
                let mut ending: BTreeMap<Uuid, Vec<Ending>> = BTreeMap::new();
                for (fanout, end) in cleared {
                    ending.entry(fanout).or_default().extend(end);
                }
                todo.clear();
                for (fanout, groups) in ending {
                    for groups in groups.chunks(GROUPS) {
                        todo.extend(end(tables, fanout, groups).await?.into_iter().map(|group| (fanout, group)));
                    }
                }
            }
            Ok(())
        }
        .boxed()
    }
}

/// Clears bits of a group, unless they are its last.
async fn clear(tables: &Tables, group: Uuid, mut stands: Fields, mask: Fields) -> Outcome<Option<Ending>> {
    loop {
        let after = stands.after(mask);
        if after.pending == stands.pending {
            return Ok(None);
        }
        if after.pending == 0 {
            return Ok(Some((group, stands, after)));
        }
        let write = tables.dynamodb.update_item().table_name(&tables.records).key("id", text(group));
        let write = write
            .update_expression(CHANGE)
            .set_condition_expression(UNCHANGED.map(str::to_owned))
            .set_expression_attribute_values(Some(record(stands.values(after))))
            .return_values_on_condition_check_failure("ALL_OLD".into());
        match write.send().await {
            Ok(_) => return Ok(None),
            Err(error) => {
                let UpdateItemError::ConditionalCheckFailedException(refused) = error.into_service_error() else {
                    return Err(format!("group {group} could not be written").into());
                };
                stands = Fields::of(refused.item().ok_or("there is no such group")?);
            }
        }
    }
}

/// Ends groups together with the header's count of them. Returns all if somebody else changed one.
async fn end(tables: &Tables, fanout: Uuid, groups: &[Ending]) -> Outcome<Vec<Uuid>> {
    if groups.is_empty() {
        return Ok(Vec::new());
    }
    let change = |(group, stands, after): &Ending| {
        update(&tables.records, &group.to_string(), CHANGE, UNCHANGED, stands.values(*after))
    };
    let mut updates = groups.iter().map(change).collect::<Outcome<Vec<_>>>()?;
    let failed = groups.iter().map(|(_, _, after)| u64::from(after.failed.count_ones())).sum();
    updates.push(tables.count(fanout, groups.len(), failed)?);
    let refused = transact(&tables.dynamodb, updates).await?;
    Ok(if refused.is_empty() { Vec::new() } else { groups.iter().map(|(group, ..)| *group).collect() })
}
