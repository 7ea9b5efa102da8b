//! The end of a fan-out registers the task that follows it, once.

use super::*;

fn hint(fanout: Uuid) -> Value {
    json!({ "fanout": fanout })
}

#[tokio::test(start_paused = true)]
async fn the_task_is_registered_when_it_ends_and_says_how() {
    for state in [FanoutState::Completed, FanoutState::Cancelled] {
        let stack = stack().await;
        let request = OpenRequest {
            then: Some(then()),
            user_key: Some("order 4711".to_owned()),
            notify: Some(Destination::Queue(NoticesQueue::Notices)),
            ..under(None, 3)
        };
        let (id, items) = stack.open_as(&request, "one").await;
        stack.ack(&failed(&items[..1])).await;
        stack.drain().await;
        let task = derived::then_task(id);
        assert!(!stack.tasks.is_stored(&task).await.unwrap(), "not before the end");
        if state == FanoutState::Completed {
            stack.ack(&done(&items[1..])).await;
        } else {
            stack.tracking.cancel(id).await.unwrap();
        }
        stack.drain().await;
        let mut end = stack.completions().await.remove(0);
        assert_eq!(end.state, state);
        // Which items are missing is found out for the notice, which may come later.
        end.missing_items = None;
        let content = json!({"depot": "117", "report": 1, "fanout": end});
        assert_eq!(called(&stack, task), [content]);
        stack.assert_settled(&[task], 10).await;
        assert!(stack.header(id).await.ending(), "it is not seen yet that the task is stored");
        for _ in 0..2 {
            stack.sweep().await;
            stack.drain().await;
        }
        assert!(!stack.header(id).await.ending());
        assert_eq!((called(&stack, task).len(), stack.completions().await.len()), (1, 0));
    }
}

/// The records of what it is to be told are gone: its notice does not wait for that.
#[tokio::test(start_paused = true)]
async fn a_notice_does_not_wait_for_what_cannot_follow() {
    let stack = stack().await;
    let request = OpenRequest {
        then: Some(Then { results: true, ..then() }),
        notify: Some(Destination::Queue(NoticesQueue::Notices)),
        ..OpenRequest::default()
    };
    let (id, _) = stack.open_as(&request, "one").await;
    let items = stack.add(id, 3, "a").await;
    stack.ack(&done(&items)).await;
    stack.delete_record("GroupsTable", &items[0].group.to_string()).await;
    stack.seal(id).await;
    stack.drain().await;
    assert_eq!(stack.completions().await.len(), 1);
    assert!(stack.header(id).await.ending(), "a sweep comes back to it");
}

/// The item of the task that follows was done so long ago that a record of its task may have expired.
#[tokio::test(start_paused = true)]
async fn a_task_that_was_done_long_ago_is_waited_for_by_nobody() {
    let stack = stack().await;
    let (root, top) = stack.open_as(&OpenRequest { items: 2, ..OpenRequest::default() }, "root").await;
    let request = OpenRequest { then: Some(Then { id: Some(top[0]), ..then() }), ..under(None, 1) };
    let (id, items) = stack.open_as(&request, "one").await;
    stack.ack(&done(&top[..1])).await;
    for _ in 0..5 {
        stack.clock.skip(Duration::from_secs(3 * 24 * 3_600));
        stack.add(root, 1, &format!("{:?}", stack.world.now())).await;
    }
    stack.ack(&done(&items)).await;
    stack.drain().await;
    let header = stack.header(id).await;
    assert!(header.complete() && !header.ending(), "{header:?}");
    assert!(stack.api.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_task_may_be_an_item_of_another_fanout() {
    let stack = stack().await;
    let (root, top) = stack.open_as(&under(None, 1), "root").await;
    let request = OpenRequest { then: Some(Then { id: Some(top[0]), ..then() }), ..under(None, 2) };
    let (_, items) = stack.open_as(&request, "first stage").await;
    stack.ack(&done(&items)).await;
    stack.drain().await;
    assert_eq!(called(&stack, TaskId::Item(top[0])).len(), 1);
    assert!(stack.header(root).await.complete(), "its item was the task");
}

/// Hints that come twice, two at once, an hour late, or that were lost.
#[tokio::test(start_paused = true)]
async fn lost_late_and_repeated_hints_register_the_task_once() {
    for way in ["twice", "at once", "late", "lost"] {
        let stack = stack().await;
        let (root, top) = stack.open_as(&under(None, 1), "root").await;
        let request = OpenRequest { then: Some(then()), ..under(Some(top[0]), 2) };
        let (id, items) = stack.open_as(&request, "one").await;
        stack.send(QueueName::Notify, hint(id)).await;
        stack.drain().await;
        assert!(!stack.tasks.is_stored(&derived::then_task(id)).await.unwrap(), "a hint that comes before the end");
        stack.ack(&done(&items)).await;
        let hints = stack.take(QueueName::Notify).await;
        assert_eq!(hints.len(), 1);
        match way {
            "twice" => {
                for _ in 0..2 {
                    assert!(stack.hand(QueueName::Notify, hints.clone()).await.is_empty());
                    stack.drain().await;
                }
            }
            "at once" => {
                let worker = |name| stack.hand(QueueName::Notify, vec![delivery(name, hint(id))]);
                let (one, other) = futures::join!(worker("a"), worker("b"));
                assert!(one.is_empty() && other.is_empty());
            }
            "late" => {
                assert!(stack.hand(QueueName::Notify, hints.clone()).await.is_empty());
                stack.drain().await;
                stack.clock.skip(Duration::from_secs(3_600));
                assert!(stack.hand(QueueName::Notify, hints).await.is_empty());
            }
            _ => assert_eq!(stack.sweep().await.fanouts, 1, "the sweep sends the lost hint again"),
        }
        stack.drain().await;
        stack.sweep().await;
        stack.drain().await;
        assert_eq!(called(&stack, derived::then_task(id)).len(), 1, "{way}");
        assert!(stack.header(root).await.complete(), "{way}");
        assert!(!stack.header(id).await.ending(), "{way}");
    }
}

/// The message with the task is a hint, too: it is sent again, after ever longer pauses, until the task is stored.
#[tokio::test(start_paused = true)]
async fn a_task_whose_message_is_lost_is_sent_again() {
    let stack = stack().await;
    let (id, items) = stack.open_as(&OpenRequest { then: Some(then()), ..under(None, 1) }, "one").await;
    stack.ack(&done(&items)).await;
    let mut sent = Vec::new();
    for minute in 0..120 {
        stack.deliver(QueueName::Notify).await;
        if !stack.take(QueueName::Register).await.is_empty() {
            sent.push(minute);
        }
        stack.clock.skip(Duration::from_secs(60));
        while stack.sweeper.sweep(fanfold_sweep::SweepRequest::default()).await.is_err() {}
    }
    assert!((5..=8).contains(&sent.len()), "{sent:?}");
    assert!(sent.windows(3).skip(1).all(|sent| sent[2] - sent[1] > sent[1] - sent[0]), "{sent:?}");
    stack.clock.skip(Duration::from_secs(7_200));
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(called(&stack, derived::then_task(id)).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_cannot_be_registered_holds_back_no_notice() {
    let stack = stack().await;
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    let (id, items) = stack.open_as(&OpenRequest { then: Some(then()), notify, ..under(None, 1) }, "one").await;
    stack.put_policy(policy(json!({"target": "content.elsewhere"}))).await;
    stack.ack(&done(&items)).await;
    for _ in 0..3 {
        stack.deliver(QueueName::Notify).await;
        stack.take(QueueName::Register).await;
    }
    assert_eq!(stack.completions().await.len(), 1);
    assert!(stack.header(id).await.ending(), "a sweep still looks at it");
    stack.put_policy(policy(json!({}))).await;
    stack.sweep().await;
    stack.drain().await;
    assert_eq!(called(&stack, derived::then_task(id)).len(), 1);
    stack.clock.skip(HINT_LOST_AFTER);
    stack.sweep().await;
    stack.drain().await;
    assert!(!stack.header(id).await.ending());
    assert_eq!(stack.completions().await.len(), 0, "one notice");
}

/// Of two who were done at the same time, each may have left the index to the other.
#[tokio::test(start_paused = true)]
async fn an_entry_left_in_the_index_is_removed() {
    let stack = stack().await;
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    let (id, items) = stack.open_as(&OpenRequest { notify, then: Some(then()), ..under(None, 1) }, "one").await;
    stack.ack(&done(&items)).await;
    let before = stack.header(id).await;
    stack.drain().await;
    // The worker that found the task stored had read the header before the notice was delivered.
    stack.tracking.fanouts.followed(&before).await.unwrap();
    let listed = async || {
        let records = stack.scan("FanoutsTable").await;
        records.iter().any(|record| record.contains_key("ending"))
    };
    assert!(listed().await && !stack.header(id).await.ending());
    stack.sweep().await;
    assert!(!listed().await);
}
