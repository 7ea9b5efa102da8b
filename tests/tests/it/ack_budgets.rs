//! What acks may cost: requests and units, of a smaller fan-out than docs/SCALING.md plans for.

use std::collections::BTreeSet;

use fanfold::bits::Bits;
use fanfold::delivery::Delivery;
use fanfold::ids::{GroupId, ItemId};
use fanfold::messages::{AckEntry, AckRequest, GroupMask};
use fanfold::tracking::OpenRequest;
use fanfold_local::Usage;
use fanfold_tests::{QueueName, TestStack, delivery};
use serde_json::json;

/// Requests to DynamoDB, and write units, between two moments.
fn used(before: &Usage, after: &Usage) -> (u64, f64) {
    (after.dynamodb_requests - before.dynamodb_requests, after.write_units - before.write_units)
}

fn groups(ids: &[ItemId]) -> u64 {
    ids.iter().map(|id| id.group).collect::<BTreeSet<_>>().len() as u64
}

/// One read, and one write per group, however many messages an invocation has: one unit each, also of 7,168 items.
#[tokio::test(start_paused = true)]
async fn messages_of_one_item_are_a_read_and_a_write_for_each_group_of_an_invocation() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, _) = stack.open(0, false).await;
    let mut ids = stack.add(fanout, 10_000, "a").await;
    assert_eq!(groups(&ids), 2);
    fastrand::Rng::with_seed(1).shuffle(&mut ids);
    for (at, ids) in ids[..9_000].chunks(1_000).enumerate() {
        let body = |id: &ItemId| json!({"items": [id.to_string()]});
        let messages: Vec<Delivery> = ids.iter().enumerate().map(|(n, id)| delivery(n, body(id))).collect();
        let before = stack.usage();
        assert!(stack.hand(QueueName::Ack, messages.clone()).await.is_empty());
        assert_eq!(used(&before, &stack.usage()), (3, 2.0), "invocation {at}");
        let before = stack.usage();
        assert!(stack.hand(QueueName::Ack, messages).await.is_empty());
        assert_eq!(used(&before, &stack.usage()), (1, 0.0), "again, invocation {at}");
    }
}

/// Whole groups by masks: their last bits go in one transaction.
#[tokio::test(start_paused = true)]
async fn masks_of_whole_groups_are_four_requests_and_few_units() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, _) = stack.open(0, false).await;
    let ids = stack.add(fanout, 100_000, "a").await;
    stack.tracking.seal(fanout).await.unwrap();
    let names: BTreeSet<_> = ids.iter().map(|id| id.group).collect();
    let mask = |group| {
        let mask: Bits = ids.iter().filter(|id| id.group == group).map(|id| usize::from(id.index)).collect();
        AckEntry::Mask(GroupMask { group: GroupId { fanout, group }, mask })
    };
    let entries: Vec<AckEntry> = names.iter().map(|group| mask(*group)).collect();
    let request = |items: &[AckEntry]| AckRequest { items: items.to_vec(), ..AckRequest::default() };
    let messages: Vec<Delivery> =
        entries.chunks(7).enumerate().map(|(n, masks)| delivery(n, json!(request(masks)))).collect();
    let before = stack.usage();
    assert!(stack.hand(QueueName::Ack, messages).await.is_empty());
    let (requests, units) = used(&before, &stack.usage());
    assert_eq!(requests, 4, "a read of the groups, a transaction, a read of the header, its end");
    assert!(units <= 3.5 * names.len() as f64, "{units} units for {} groups", names.len());
    let fanout = stack.tracking.fanouts.get(fanout).await.unwrap().unwrap();
    assert_eq!((fanout.complete(), fanout.done), (true, 100_000));
}

/// In random order an invocation has few items of each of many groups. They are sent on, and written a hundred at a time.
#[tokio::test(start_paused = true)]
async fn messages_of_one_item_in_random_order_share_the_writes_of_several_invocations() {
    const GROUPS: usize = 70;
    let stack = TestStack::with(json!({})).await;
    let (fanout, _) = stack.open(0, false).await;
    let mut ids = Vec::new();
    for n in 0..GROUPS {
        ids.extend(stack.add(fanout, 250, &n.to_string()).await);
    }
    fastrand::Rng::with_seed(1).shuffle(&mut ids);
    let before = stack.usage();
    let mut gathered = Vec::new();
    // Some 50 items of each group in an invocation.
    for (at, ids) in ids[..14_000].chunks(3_500).enumerate() {
        let body = |id: &ItemId| json!({"items": [id.to_string()]});
        gathered.extend(ids.iter().enumerate().map(|(n, id)| delivery(10 * n + at, body(id))));
        assert!(stack.hand(QueueName::Ack, std::mem::take(&mut gathered)).await.is_empty());
        gathered = stack.take(QueueName::Ack).await;
        assert!(gathered.len() <= 1);
    }
    assert!(stack.hand(QueueName::Ack, gathered).await.is_empty());
    let units = used(&before, &stack.usage()).1;
    assert!(units <= 2.0 * GROUPS as f64, "{units} units, one invocation after the other would take {}", 4 * GROUPS);
    let (_, progress) = stack.tracking.progress(stack.header(fanout).await).await.unwrap();
    assert_eq!(progress.done, 14_000);
}

/// Small fan-outs are read a hundred at a time. Those that an earlier delivery acked cost nothing else, so that an invocation which has
/// too many for its time gets further at each delivery.
#[tokio::test(start_paused = true)]
async fn small_fanouts_are_read_together_and_written_once() {
    const FANOUTS: usize = 250;
    let stack = TestStack::with(json!({})).await;
    let mut ids = Vec::new();
    for n in 0..FANOUTS {
        ids.push(stack.open_as(&OpenRequest { items: 2, ..OpenRequest::default() }, &n.to_string()).await.1);
    }
    let body = |ids: &[Vec<ItemId>]| json!({"items": ids.iter().map(|ids| ids[0].to_string()).collect::<Vec<_>>()});
    let messages: Vec<Delivery> = ids.chunks(50).enumerate().map(|(n, ids)| delivery(n, body(ids))).collect();
    let before = stack.usage();
    assert!(stack.hand(QueueName::Ack, messages.clone()).await.is_empty());
    assert_eq!(used(&before, &stack.usage()), (3 + FANOUTS as u64, FANOUTS as f64));
    let before = stack.usage();
    assert!(stack.hand(QueueName::Ack, messages).await.is_empty());
    assert_eq!(used(&before, &stack.usage()), (3, 0.0));
}
