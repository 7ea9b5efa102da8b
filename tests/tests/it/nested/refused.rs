//! Parents and tasks that cannot follow.

use super::*;

fn refused(answer: &Result<fanfold::tracking::Opened, TrackingError>) -> (&'static str, String) {
    match answer {
        Err(TrackingError::Follow { field, problem }) => (*field, problem.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_follow_is_refused_when_it_is_opened() {
    let stack = stack().await;
    let (root, top) = stack.open_as(&under(None, 2), "root").await;
    let beyond = ItemId { index: 2, ..top[0] };
    let own = derived::fanout("own");
    let itself = ItemId { fanout: own, group: own, index: 0 };
    let with = |parent, id, content| OpenRequest {
        then: Some(Then { id, ..Then::new("parcel", content) }),
        ..under(parent, 1)
    };
    let large = json!({"x": "x".repeat(THEN_BYTES_MAX)});
    for (request, field, says) in [
        (under(Some(beyond), 1), "parent", "0 to 1 is allowed"),
        (under(Some(itself), 1), "parent", "has no item group"),
        (under(Some(ItemId { group: Uuid::nil(), ..top[0] }), 1), "parent", "has no item group"),
        (with(None, Some(beyond), json!({})), "then.id", "0 to 1 is allowed"),
        (with(Some(top[0]), Some(top[0]), json!({})), "then.id", "as `parent`"),
        (with(None, None, json!({"fanout": 1})), "then.content", "has a field `fanout`"),
        (with(None, None, large), "then.content", "at most 2048 are allowed"),
    ] {
        let (at, problem) = refused(&stack.tracking.open(request, Some("own")).await);
        assert!(at == field && problem.contains(says), "{at} {problem}");
    }
    assert!(stack.tracking.fanouts.get(own).await.unwrap().is_none());
    stack.open_as(&with(Some(top[0]), None, json!({"a": 1})), "kept").await;
    for (other, field) in [
        (with(Some(top[1]), None, json!({"a": 1})), "parent"),
        (with(None, None, json!({"a": 1})), "parent"),
        (with(Some(top[0]), None, json!({"a": 2})), "then"),
        (under(Some(top[0]), 1), "then"),
    ] {
        let answer = stack.tracking.open(other, Some("kept")).await;
        assert!(matches!(&answer, Err(TrackingError::KeyReused(what)) if what.contains(field)), "{answer:?}");
    }
    assert!(!stack.header(root).await.ended());
}
