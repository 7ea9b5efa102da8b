//! The end of a fan-out acks its parent item as it came out.

use super::*;

/// A fan-out of `leaves` under one of `children` under a root of two items, all small or all large.
async fn three(stack: &TestStack, tolerated: Option<u64>, small: bool) -> [(Uuid, Vec<ItemId>); 3] {
    let mut parent = None;
    let mut opened = Vec::new();
    for (name, items) in [("root", 2), ("child", 3), ("leaf", 4)] {
        let request = OpenRequest { tolerated_failures: tolerated.map(Tolerance::Count), ..under(parent, items) };
        let fanout = if small {
            stack.open_as(&request, name).await
        } else {
            let (id, mut items) = stack.open_as(&OpenRequest { seal: false, ..request }, name).await;
            items.extend(stack.add(id, 1, &format!("{name} more")).await);
            stack.seal(id).await;
            (id, items)
        };
        parent = Some(fanout.1[1]);
        opened.push(fanout);
    }
    opened.try_into().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_failure_in_a_leaf_fails_all_above_it_where_none_is_tolerated() {
    for small in [true, false] {
        let stack = stack().await;
        let [(root, top), (child, middle), (leaf, leaves)] = three(&stack, Some(0), small).await;
        stack.ack(&failed(&leaves[2..3])).await;
        stack.drain().await;
        for id in [leaf, child, root] {
            let end = stack.header(id).await;
            assert_eq!((end.state, end.ended(), end.failed), (FanoutState::Failed, true, 1), "small: {small}");
            assert!(!end.ending(), "nothing is left to be done: {end:?}");
        }
        assert_eq!(stack.tracking.item(&middle[1]).await.unwrap(), ItemState::Failed);
        assert_eq!(stack.tracking.item(&top[1]).await.unwrap(), ItemState::Failed);
        assert_eq!(stack.tracking.item(&top[0]).await.unwrap(), ItemState::Missing);
    }
}

/// What is tolerated is a success to those above.
#[tokio::test(start_paused = true)]
async fn failures_that_are_tolerated_complete_all_above() {
    for (tolerated, small) in [(Some(1), true), (Some(1), false), (None, true), (None, false)] {
        let stack = stack().await;
        let [(root, top), (child, middle), (leaf, leaves)] = three(&stack, tolerated, small).await;
        stack.ack(&failed(&leaves[2..3])).await;
        stack.ack(&done(&leaves)).await;
        stack.drain().await;
        assert_eq!(stack.header(leaf).await.failed, 1);
        assert!(!stack.header(child).await.ended(), "others of its items are not done");
        let others: Vec<ItemId> =
            middle.iter().chain(&top).filter(|id| ![middle[1], top[1]].contains(id)).copied().collect();
        stack.ack(&done(&others)).await;
        stack.drain().await;
        for id in [child, root] {
            let end = stack.header(id).await;
            assert_eq!((end.state, end.failed), (FanoutState::Completed, 0), "{tolerated:?}, small: {small}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_other_end_fails_the_parent_item() {
    let stack = stack().await;
    let (_, top) = stack.open_as(&under(None, 3), "root").await;
    let (cancelled, _) = stack.open_as(&under(Some(top[0]), 2), "cancelled").await;
    stack.tracking.cancel(cancelled).await.unwrap();
    let limit = Some(IdleLimit { open: None, sealed: Some(Span::from_secs(60)) });
    stack.open_as(&OpenRequest { idle_limit: limit, ..under(Some(top[1]), 2) }, "expired").await;
    stack.clock.skip(Duration::from_secs(600));
    stack.sweep().await;
    // One without items completes when it is opened.
    stack.open_as(&under(Some(top[2]), 0), "empty").await;
    stack.drain().await;
    let states = [ItemState::Failed, ItemState::Failed, ItemState::Succeeded];
    for (item, state) in top.iter().zip(states) {
        assert_eq!(stack.tracking.item(item).await.unwrap(), state);
    }
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_has_ended_or_is_gone_stays_as_it_is() {
    let stack = stack().await;
    let (root, top) = stack.open_as(&under(None, 2), "root").await;
    let (child, items) = stack.open_as(&under(Some(top[0]), 1), "child").await;
    let end = stack.tracking.cancel(root).await.unwrap();
    stack.ack(&done(&items)).await;
    stack.drain().await;
    assert_eq!(stack.header(root).await, end);
    assert!(stack.header(child).await.followed.is_some());
    let (gone, top) = stack.open_as(&under(None, 2), "gone").await;
    let (child, items) = stack.open_as(&under(Some(top[0]), 1), "orphan").await;
    stack.delete_record("FanoutsTable", &gone.to_string()).await;
    stack.ack(&done(&items)).await;
    stack.drain().await;
    assert!(!stack.header(child).await.ending(), "nothing is left to be done for it");
    assert!(stack.tracking.fanouts.get(gone).await.unwrap().is_none(), "the ack does not make the record again");
    // A repetition is answered as the first call was.
    assert_eq!(stack.open_as(&under(Some(top[0]), 1), "orphan").await.0, child);
}
