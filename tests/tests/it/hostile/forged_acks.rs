//! Well-formed messages that no step sent, about items, fan-outs and their ends. What the tables say counts.

use fanfold::ids::{ItemGroup, ItemId, TaskId, expand};
use fanfold::lane::Lane;
use fanfold::limits::GROUP_ITEMS_MAX;
use fanfold::messages::{About, AckRequest, LaneBatch, NotifyMessage};
use fanfold::tracking::OpenRequest;
use fanfold_batch_api::{Answer, Call, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, delivery, done, message, policy};
use serde_json::json;
use uuid::Uuid;

use super::{assert_unharmed, hand};

/// An ack names fan-out, group and index. All three have to belong together; what is right beside it is applied.
#[tokio::test(start_paused = true)]
async fn an_ack_counts_only_for_an_item_of_that_group_of_that_fanout() {
    let stack = TestStack::with(json!({})).await;
    let (mine, _) = stack.open(0, false).await;
    let ids = stack.add(mine, 3, "mine").await;
    let other = stack.tracking.open(Default::default(), Some("other")).await.unwrap().fanout.id;
    let others: Vec<ItemGroup> = stack.tracking.add(other, 3, Some("other")).await.unwrap();
    let small = fanfold::tracking::OpenRequest { items: 3, seal: true, ..Default::default() };
    let small = stack.tracking.open(small, Some("small")).await.unwrap().fanout.id;
    let forged = [
        ("another's group", ItemId { group: others[0].id, ..ids[0] }),
        ("another's fan-out", ItemId { fanout: other, ..ids[0] }),
        ("as if it were small", ItemId { group: mine, ..ids[0] }),
        ("a small one's group", ItemId { group: small, ..ids[0] }),
        ("a group of a small one", ItemId { fanout: small, ..ids[0] }),
        ("no group", ItemId { group: Uuid::nil(), ..ids[0] }),
        ("no fan-out", ItemId { fanout: Uuid::max(), group: Uuid::max(), index: 0 }),
        ("one beyond", ItemId { index: 3, ..ids[0] }),
        ("one beyond a small one", ItemId { fanout: small, group: small, index: 3 }),
        ("the padding's last bit", ItemId { index: 7, ..ids[0] }),
        ("the largest index", ItemId { index: u16::try_from(GROUP_ITEMS_MAX - 1).unwrap(), ..ids[0] }),
    ];
    let mut expected: Vec<&str> = forged.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    // Each beside a right item of its own message, and failures beside successes.
    let bad = forged.iter().enumerate().map(|(n, (name, item))| {
        let request =
            AckRequest { items: vec![ids[n % 2].into()], failed: vec![(*item).into()], ..AckRequest::default() };
        message(name, &request)
    });
    assert_eq!(hand(&stack, QueueName::Ack, bad.collect()).await, expected);
    let groups = stack.tracking.groups.get_many(&[ids[0].group, others[0].id]).await.unwrap();
    for group in groups {
        let pending = if group.fanout == mine { vec![2] } else { vec![0, 1, 2] };
        assert_eq!(group.pending.iter().collect::<Vec<_>>(), pending);
        assert!(group.failed.is_zero(), "{group:?}");
    }
    let small = stack.tracking.fanouts.get(small).await.unwrap().unwrap();
    assert_eq!((small.inline_group().unwrap().pending.count(), small.failed), (3, 0));
    assert!(!stack.tracking.seal(mine).await.unwrap().complete(), "an item is missing");
    assert!(hand(&stack, QueueName::Ack, vec![message("last", &done(&ids[2..]))]).await.is_empty());
    stack.drain().await;
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].fanout, ends[0].total, ends[0].failed), (1, mine, 3, 0));
}

/// The first outcome of an item counts. Another one later changes nothing, before and after the end.
#[tokio::test(start_paused = true)]
async fn an_outcome_repeated_as_its_opposite_changes_nothing() {
    let stack = TestStack::with(json!({})).await;
    let (fanout, _) = stack.open(0, false).await;
    let ids = stack.add(fanout, 2, "a").await;
    let failed = |items: &[ItemId]| AckRequest {
        failed: items.iter().copied().map(Into::into).collect(),
        ..AckRequest::default()
    };
    stack.seal(fanout).await;
    for round in 0..3 {
        let deliveries = match round {
            0 => vec![message(0, &done(&ids[..1]))],
            1 => vec![message(0, &failed(&ids[..1])), message(1, &failed(&ids[1..]))],
            _ => vec![message(0, &failed(&ids)), message(1, &done(&ids))],
        };
        assert!(hand(&stack, QueueName::Ack, deliveries).await.is_empty());
    }
    stack.drain().await;
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].succeeded, ends[0].failed), (1, 1, 1));
}

/// `batch` names a batch: its record says what is done, whatever lane the message names and whenever it comes.
#[tokio::test(start_paused = true)]
async fn what_a_batch_settles_is_taken_from_its_record() {
    let api = ScriptedApi::new(|call: &Call| {
        let outcome = if call.attempt == 1 { MemberOutcome::Retry } else { MemberOutcome::Succeeded };
        let first = MemberAnswer::new(call.members[0].id, MemberOutcome::Failed);
        let rest = call.members[1..].iter().map(|member| MemberAnswer::new(member.id, outcome));
        Ok(Answer::Members(if call.attempt == 1 { rest.chain([first]).collect() } else { Vec::new() }))
    });
    let stack = TestStack::new(policy(json!({"max_attempts": 2})), api, Crash::never()).await;
    let (fanout, ids) = stack.open(3, true).await;
    let tasks = stack.register_items(&ids).await;
    let named = |batch: Uuid, lane: &str| {
        let named = LaneBatch { batch, lane: lane.parse().unwrap() };
        message(format!("{batch} in {lane}"), &AckRequest { batch: Some(named), ..AckRequest::default() })
    };
    let pending = async || {
        let header = stack.tracking.fanouts.get(fanout).await.unwrap().unwrap();
        header.inline_group().unwrap().pending.count()
    };
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let batch = stack.all_batches().await.remove(0);
    let lanes = ["parcel:0:117", "parcel:5:900", "letter:0:117"];
    let forged = || lanes.map(|lane| named(batch.id, lane)).to_vec();
    assert!(hand(&stack, QueueName::Ack, forged()).await.is_empty());
    assert_eq!(pending().await, 3, "nothing is done yet");
    stack.pass(&[QueueName::Handle]).await;
    assert!(hand(&stack, QueueName::Ack, forged()).await.is_empty());
    assert_eq!(pending().await, 2, "one member has its outcome");
    let nobody = named(Uuid::from_u128(9), "parcel:0:117");
    let name = nobody.message_id.clone();
    assert_eq!(hand(&stack, QueueName::Ack, [forged(), vec![nobody]].concat()).await, [name]);
    assert_unharmed(&stack, &tasks, 3).await;
    let forgotten: Lane = "parcel:5:900".parse().unwrap();
    assert_eq!(stack.locks.get(&forgotten).await.unwrap().epoch, 0, "the lane named is not touched");
}

/// A notice is sent when the tables say that its time has come, however early and often messages ask for it.
#[tokio::test(start_paused = true)]
async fn a_notice_is_not_sent_before_its_time() {
    let api = ScriptedApi::new(|call: &Call| {
        let failed = |n: usize| MemberAnswer {
            error: Some(format!("attempt {}", call.attempt)),
            ..MemberAnswer::new(
                call.members[n].id,
                if n < call.attempt as usize { MemberOutcome::Failed } else { MemberOutcome::Retry },
            )
        };
        Ok(Answer::Members((0..call.members.len()).map(failed).collect()))
    });
    let stack = TestStack::new(policy(json!({"notify": {"queue": "notices"}})), api, Crash::never()).await;
    let (fanout, ids) = stack.open(4, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.pass(&[QueueName::Elect, QueueName::Group]).await;
    let batch = stack.all_batches().await.remove(0);
    let ask = || {
        let named = |lane: &str| LaneBatch { batch: batch.id, lane: lane.parse().unwrap() };
        vec![
            message("fan-out", &NotifyMessage::first(About::Fanout(fanout))),
            message("batch", &NotifyMessage::first(About::Batch(named("parcel:0:117")))),
            message("batch elsewhere", &NotifyMessage::first(About::Batch(named("parcel:0:900")))),
            delivery("nobody", json!({"fanout": Uuid::nil()})),
        ]
    };
    let early = ["batch", "batch elsewhere", "nobody"];
    assert_eq!(hand(&stack, QueueName::Notify, ask()).await, early);
    stack.pass(&[QueueName::Handle]).await;
    assert_eq!(hand(&stack, QueueName::Notify, ask()).await, early, "one of four failed");
    assert_eq!(stack.take(QueueName::Notices).await.len(), 0);
    stack.drain().await;
    assert_eq!(hand(&stack, QueueName::Notify, ask()).await, ["nobody"]);
    // Panics if one notice is delivered twice in other words.
    assert_unharmed(&stack, &tasks, 4).await;
}

/// A task's item may be gone before the task is handled, which does not matter to it, and no count changes.
#[tokio::test(start_paused = true)]
async fn a_task_whose_item_is_gone_is_handled_and_counts_nowhere() {
    let stack = TestStack::with(json!({})).await;
    let (_, ids) = stack.open(2, true).await;
    let other = stack.tracking.open(OpenRequest { items: 2, ..OpenRequest::default() }, None).await.unwrap();
    let gone: Vec<ItemId> = expand(other.fanout.id, &other.groups).collect();
    let all = [ids.clone(), gone.clone()].concat();
    stack.register_items(&all).await;
    stack.delete_record("GroupsTable", &gone[0].group.to_string()).await;
    for _ in 0..2 {
        stack.drain().await;
        stack.sweep().await;
    }
    stack.drain().await;
    let tasks: Vec<TaskId> = all.into_iter().map(TaskId::Item).collect();
    stack.assert_settled(&tasks, 10).await;
    let ends = stack.completions().await;
    assert_eq!((ends.len(), ends[0].total, ends[0].succeeded), (1, 2, 2));
}
