//! Messages that are late, not lost, and those that come when everything is done.

use std::time::Duration;

use fanfold::control::{Scope, Switches};
use fanfold::limits::HINT_LATE_MAX;
use fanfold::store::policies::Policies;
use fanfold_sweep::SweepReport;
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, order, policy};
use serde_json::json;

/// Ten lanes with a task each, whose messages in `queue` are soon overdue. Three of these are lost.
async fn overdue(queue: QueueName) -> TestStack {
    let stack = TestStack::with(json!({})).await;
    stack.register((0..10).map(|n| order(None, &format!("{n:03}"), n)).collect()).await;
    for before in [QueueName::Elect, QueueName::Group] {
        if before == queue {
            break;
        }
        stack.pass(&[before]).await;
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let messages = stack.take(queue).await;
    for message in messages.iter().skip(3) {
        stack.send(queue, &message.body).await;
    }
    stack
}

/// As many as wait in the queue may be late: only the others are sent again, until it has been too long.
#[tokio::test(start_paused = true)]
async fn what_may_wait_in_its_queue_is_not_sent_again() {
    for (at, queue) in [QueueName::Elect, QueueName::Group, QueueName::Handle].into_iter().enumerate() {
        let stack = overdue(queue).await;
        let waiting = stack.backlog().await;
        assert!(waiting > 0, "{queue:?}");
        let SweepReport { lanes, leaders, batches, .. } = stack.sweep().await;
        let lost = 10 - waiting;
        // Tasks may wait for an election, or for their leader.
        let expected = [[lost, 0, 0], [lost, lost, 0], [0, 0, lost]][at];
        assert_eq!([lanes, leaders, batches], expected, "{queue:?}");
        tokio::time::sleep(HINT_LATE_MAX).await;
        let report = stack.sweep().await;
        let again = [report.lanes, report.leaders, report.batches][at];
        assert!(again >= waiting, "{queue:?}: some are late for ever");
        stack.drain().await;
        assert_eq!(stack.all_batches().await.len(), 10, "{queue:?}");
        stack.assert_locks_free().await;
    }
}

/// A pause discarded a leader's message. However many wait in the queue for others, it is sent when the pause is over.
#[tokio::test(start_paused = true)]
async fn what_a_pause_discarded_is_not_late() {
    let stack = overdue(QueueName::Group).await;
    let scope = Scope::Target { kind: "parcel".to_owned(), target: "000".to_owned() };
    let messages = stack.take(QueueName::Group).await;
    let others = messages.iter().filter(|message| !message.body.contains(":000\""));
    for message in others.cycle().take(20) {
        stack.send(QueueName::Group, &message.body).await;
    }
    // Its worker died after the switch.
    let policies = Policies::from_environment(stack.surroundings()).unwrap();
    policies.switch(&scope, |switches, now| switches.pause(&scope, now)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(200)).await;
    let resume = |switches: &mut Switches, now| {
        switches.resume(&scope, now);
        Ok(())
    };
    policies.switch(&scope, resume).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(stack.sweep_now().await.leaders, 1);
    let sent = stack.take(QueueName::Group).await;
    assert_eq!(sent.iter().filter(|message| message.body.contains(":000\"")).count(), 1);
}

/// Everything that follows from the batch's end is done: one read shows that, and nothing is written or sent.
#[tokio::test(start_paused = true)]
async fn a_message_about_a_batch_that_is_closed_costs_two_reads() {
    let failing = || ScriptedApi::new(|_| Err(fanfold_batch_api::CallError::for_good("404")));
    for api in [ScriptedApi::always_succeeds(), failing()] {
        let changes = json!({"notify": {"queue": "notices"}, "key": "content.order"});
        let stack = TestStack::new(policy(changes), api, Crash::never()).await;
        let (_, ids) = stack.open(2, true).await;
        stack.register_items(&ids).await;
        stack.pass(&[QueueName::Elect, QueueName::Group]).await;
        let messages = stack.take(QueueName::Handle).await;
        for _ in 0..2 {
            assert!(stack.hand(QueueName::Handle, messages.clone()).await.is_empty());
        }
        stack.drain().await;
        stack.assert_locks_free().await;
        let (before, calls) = (stack.usage(), stack.api.seen().len());
        assert!(stack.hand(QueueName::Handle, messages).await.is_empty());
        let after = stack.usage();
        assert_eq!(stack.backlog().await, 0);
        assert_eq!(after.write_units, before.write_units);
        assert_eq!(after.dynamodb_requests - before.dynamodb_requests, 2);
        assert_eq!(stack.api.seen().len(), calls);
    }
}
