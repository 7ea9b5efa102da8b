//! A record per item, and a counter of those that are open.

use fanfold::ids::ItemId;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use uuid::Uuid;

use super::simple::{Acks, Records, Tables};
use crate::Outcome;
use crate::database::{AT_ONCE, Item, get_all, number, record, text, transact, update};

/// Items of one transaction: with the header, as many as DynamoDB allows.
const ITEMS: usize = 99;

/// Items that share an id's middle part.
const NAMED: u32 = 7_168;

/// A record per item.
pub(super) struct Counter;

impl Records for Counter {
    fn make(&self, fanout: Uuid, items: u32) -> (Vec<ItemId>, Vec<Item>) {
        let name = |at: u32| ItemId {
            fanout,
            group: Uuid::from_u128(fanout.as_u128().wrapping_add(u128::from(at / NAMED))),
            index: (at % NAMED) as u16,
        };
        let ids: Vec<ItemId> = (0..items).map(name).collect();
        let records = ids.iter().map(|id| record([("id", text(id))])).collect();
        (ids, records)
    }

    fn apply<'a>(&'a self, tables: &'a Tables, acks: &'a Acks) -> BoxFuture<'a, Outcome<()>> {
        async move {
            // A transaction that fails costs what it would have cost: what was done before is left out of it.
            let ids: Vec<String> = acks.keys().map(ToString::to_string).collect();
            let stand = get_all(&tables.dynamodb, &tables.records, &ids).await?;
            let open = |id: &str| stand.get(id).is_some_and(|item| !item.contains_key("outcome"));
            let open: Vec<(&ItemId, bool)> =
                acks.iter().zip(&ids).filter(|(_, id)| open(id)).map(|((item, failed), _)| (item, *failed)).collect();
            let done: Vec<_> = open.chunks(ITEMS).map(|chunk| clear(tables, chunk.to_vec())).collect();
            stream::iter(done).buffer_unordered(AT_ONCE).try_collect().await
        }
        .boxed()
    }
}

/// Notes outcomes and counts them, at once. Somebody else may note some meanwhile.
async fn clear(tables: &Tables, mut items: Vec<(&ItemId, bool)>) -> Outcome<()> {
    while let Some((first, _)) = items.first() {
        let fanout = first.fanout;
        let note = |(item, failed): &(&ItemId, bool)| {
            let condition = Some("attribute_exists(id) AND attribute_not_exists(outcome)");
            let outcome = [(":outcome", number(u8::from(*failed)))];
            update(&tables.records, &item.to_string(), "SET outcome = :outcome", condition, outcome)
        };
        let mut updates = items.iter().map(note).collect::<Outcome<Vec<_>>>()?;
        let failed = items.iter().filter(|(_, failed)| *failed).count() as u64;
        updates.push(tables.count(fanout, items.len(), failed)?);
        let refused = transact(&tables.dynamodb, updates).await?;
        if refused.is_empty() {
            return Ok(());
        }
        let mut at = 0..;
        items.retain(|_| at.next().is_some_and(|at| !refused.contains(&at)));
    }
    Ok(())
}
