//! What the simpler trackers have in common: a header that counts what is open, and a step that gathers the acks of an
//! invocation. They are as exact as ours: a count changes in the transaction that changes what it counts. What they leave out: nothing makes a lost
//! message again, and a worker that dies between the end and its notice loses the notice.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanfold::clock::World;
use fanfold::delivery::{Delivery, Failures, Step, parse};
use fanfold::ids::ItemId;
use fanfold::messages::{AckEntry, AckRequest};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use super::Tracker;
use crate::Outcome;
use crate::database::{Item, number, number_of, put_all, record, text, update};
use crate::room::Room;

/// The items that an invocation acks, and whether they failed.
pub(super) type Acks = BTreeMap<ItemId, bool>;

/// How items are kept.
pub(super) trait Records: Send + Sync + 'static {
    /// The ids of a new fan-out's items, and the records that keep them.
    fn make(&self, fanout: Uuid, items: u32) -> (Vec<ItemId>, Vec<Item>);
    /// Applies acks. The header's `still_open` counts records that are open, `failed` items that failed.
    fn apply<'a>(&'a self, tables: &'a Tables, acks: &'a Acks) -> BoxFuture<'a, Outcome<()>>;
}

/// Where everything is kept.
pub(super) struct Tables {
    pub(super) dynamodb: aws_sdk_dynamodb::Client,
    pub(super) records: String,
    pub(super) headers: String,
    sqs: aws_sdk_sqs::Client,
    notices: String,
}

/// A simple tracker.
pub(super) struct Simple<R> {
    tables: Tables,
    records: R,
}

impl<R: Records> Simple<R> {
    pub(super) fn new(room: &Room, records: R) -> Outcome<Self> {
        let ack = room.surroundings("AckFunction");
        let tables = Tables {
            dynamodb: room.engine.dynamodb(),
            records: ack.variable(fanfold::config::variables::GROUPS_TABLE)?,
            headers: ack.variable(fanfold::config::variables::FANOUTS_TABLE)?,
            sqs: room.engine.sqs(),
            notices: room.queue("NoticesQueue")?,
        };
        Ok(Self { tables, records })
    }

    async fn add(&self, items: u32) -> Outcome<Vec<ItemId>> {
        let Tables { dynamodb, records, headers, .. } = &self.tables;
        let fanout = World::system().uuid();
        let (ids, made) = self.records.make(fanout, items);
        let header = [("id", text(fanout)), ("total", number(items)), ("still_open", number(made.len()))];
        put_all(dynamodb, headers, std::iter::once(record(header))).await?;
        put_all(dynamodb, records, made.into_iter()).await?;
        Ok(ids)
    }

    async fn take(&self, acks: &Acks) -> Outcome<()> {
        self.records.apply(&self.tables, acks).await?;
        let mut fanouts: Vec<Uuid> = acks.keys().map(|item| item.fanout).collect();
        fanouts.dedup();
        for fanout in fanouts {
            self.tables.end(fanout).await?;
        }
        Ok(())
    }
}

impl Tables {
    /// Ends a fan-out of which nothing is open; of all that see this, one sends the notice.
    async fn end(&self, fanout: Uuid) -> Outcome<()> {
        let get = self.dynamodb.get_item().table_name(&self.headers).key("id", text(fanout)).consistent_read(true);
        let header = get.send().await?.item.unwrap_or_default();
        if number_of(&header, "still_open") > 0 || header.contains_key("ended") {
            return Ok(());
        }
        let end = self.dynamodb.update_item().table_name(&self.headers).key("id", text(fanout));
        let end = end.update_expression("SET ended = :ended").condition_expression("attribute_not_exists(ended)");
        match end.expression_attribute_values(":ended", number(1)).send().await {
            Ok(_) => {}
            Err(error)
                if error.as_service_error().is_some_and(|error| error.is_conditional_check_failed_exception()) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        let failed = number_of(&header, "failed");
        let notice = json!({ "data": { "failed": failed, "succeeded": number_of(&header, "total") - failed } });
        self.sqs.send_message().queue_url(&self.notices).message_body(notice.to_string()).send().await?;
        Ok(())
    }

    /// The part of a transaction that counts in a fan-out's header.
    pub(super) fn count(&self, fanout: Uuid, ended: usize, failed: u64) -> Outcome<aws_sdk_dynamodb::types::Update> {
        let values = [(":ended", number(format!("-{ended}"))), (":failed", number(failed))];
        update(&self.headers, &fanout.to_string(), "ADD still_open :ended, failed :failed", None, values)
    }
}

impl<R: Records> Tracker for Simple<R> {
    fn open(&self, items: u32) -> BoxFuture<'_, Outcome<Vec<ItemId>>> {
        self.add(items).boxed()
    }

    fn step(self: Arc<Self>) -> Arc<dyn Step> {
        self
    }
}

impl<R: Records> Step for Simple<R> {
    fn deliver<'a>(&'a self, deliveries: Vec<Delivery>) -> BoxFuture<'a, Failures> {
        async move {
            let (messages, mut failures) = parse::<AckRequest>(deliveries);
            let mut acks = Acks::new();
            for (_, request) in &messages {
                for (entries, failed) in [(&request.items, false), (&request.failed, true)] {
                    let item = |entry: &AckEntry| if let AckEntry::Item(item) = entry { Some(*item) } else { None };
                    acks.extend(entries.iter().filter_map(item).map(|item| (item, failed)));
                }
            }
            if self.take(&acks).await.is_err() {
                failures.extend(messages.into_iter().map(|(delivery, _)| delivery.message_id));
            }
            failures
        }
        .boxed()
    }
}
