//! Fan-outs to which nothing happens for longer than their idle limit expire; active ones never do.

use std::time::Duration;

use fanfold::ids::{ItemId, expand};
use fanfold::limits::{IDLE_OPEN, IDLE_SEALED, IDLE_WITH_TASKS, MISSING_AFTER};
use fanfold::policy::{Destination, NoticesQueue, Span};
use fanfold::store::fanouts::{FanoutState, IdleLimit, Then};
use fanfold::tracking::{ItemState, OpenRequest, TrackingError};
use fanfold_tests::{Crash, Moment, QueueName, ScriptedApi, TestStack, at_every_request, done, policy};
use serde_json::json;
use uuid::Uuid;

const HOUR: Duration = Duration::from_secs(3_600);

async fn stack() -> TestStack {
    TestStack::with(json!({})).await
}

/// Opens a fan-out with these limits in hours, if there are any, and a notice.
async fn open(stack: &TestStack, items: u32, seal: bool, hours: Option<[u64; 2]>) -> (Uuid, Vec<ItemId>) {
    let limit = |hours: u64| Some(Span::from_secs(hours * 3_600));
    let idle_limit = hours.map(|[open, sealed]| IdleLimit { open: limit(open), sealed: limit(sealed) });
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    let request = OpenRequest { items, seal, idle_limit, notify, ..OpenRequest::default() };
    let opened = stack.tracking.open(request, None).await.unwrap();
    (opened.fanout.id, expand(opened.fanout.id, &opened.groups).collect())
}

/// So much later, and a sweep.
async fn after(stack: &TestStack, time: Duration) {
    stack.clock.skip(time + Duration::from_secs(300));
    stack.sweep_now().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_fanout_expires_and_its_notice_counts_what_is_missing() {
    for seal in [true, false] {
        let stack = stack().await;
        let (fanout, ids) = open(&stack, 4, seal, Some([2, 2])).await;
        stack.ack.apply(&done(&ids[..1])).await.unwrap();
        after(&stack, HOUR).await;
        assert!(!stack.header(fanout).await.ended(), "not yet");
        after(&stack, HOUR).await;
        let end = stack.header(fanout).await;
        assert_eq!((end.state, end.ended(), end.missing), (FanoutState::Expired, true, 3), "sealed: {seal}");
        stack.drain().await;
        let notice = stack.take(QueueName::Notices).await.remove(0).body;
        assert!(notice.contains("\"fanout.expired\"") && notice.contains("\"missing\":3"), "{notice}");
        assert_eq!(stack.tracking.item(&ids[3]).await.unwrap(), ItemState::Missing);
        after(&stack, HOUR * 24).await;
        stack.drain().await;
        assert!(stack.take(QueueName::Notices).await.is_empty(), "one notice");
        let refused = stack.tracking.cancel(fanout).await;
        assert!(matches!(refused, Err(TrackingError::Ended { state: FanoutState::Expired, .. })));
    }
}

/// What acks do to one of its groups is enough.
#[tokio::test(start_paused = true)]
async fn an_active_one_never_expires() {
    for small in [true, false] {
        let stack = stack().await;
        let (fanout, mut ids) = open(&stack, if small { 40 } else { 0 }, small, Some([2, 2])).await;
        if !small {
            ids = stack.add(fanout, 40, "first").await;
            stack.add(fanout, 3, "idle").await;
        }
        for item in &ids[..30] {
            stack.ack.apply(&done(&[*item])).await.unwrap();
            after(&stack, HOUR + HOUR / 2).await;
            assert!(!stack.header(fanout).await.state.cut_short(), "small: {small}");
        }
        after(&stack, HOUR).await;
        assert_eq!(stack.header(fanout).await.state, FanoutState::Expired, "small: {small}");
    }
}

#[tokio::test(start_paused = true)]
async fn adding_and_sealing_are_activity() {
    let stack = stack().await;
    let (fanout, _) = open(&stack, 1, false, Some([2, 6])).await;
    for n in 0..4 {
        after(&stack, HOUR + HOUR / 2).await;
        stack.tracking.add(fanout, 1, Some(&n.to_string())).await.unwrap();
    }
    after(&stack, HOUR + HOUR / 2).await;
    stack.tracking.seal(fanout).await.unwrap();
    after(&stack, HOUR * 5).await;
    assert_eq!(stack.header(fanout).await.state, FanoutState::Sealed, "it has another limit now");
    after(&stack, HOUR * 2).await;
    assert_eq!(stack.header(fanout).await.state, FanoutState::Expired);
}

/// It was looked at while it was open, for longer.
#[tokio::test(start_paused = true)]
async fn a_sealed_one_is_looked_at_in_time_for_its_shorter_limit() {
    let stack = stack().await;
    let (fanout, _) = open(&stack, 2, false, Some([6, 2])).await;
    after(&stack, HOUR * 2).await;
    assert_eq!(stack.tracking.seal(fanout).await.unwrap().state, FanoutState::Sealed);
    after(&stack, HOUR * 2).await;
    assert_eq!(stack.header(fanout).await.state, FanoutState::Expired);
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_there_is_one_that_suits() {
    for (seal, limit) in [(false, IDLE_OPEN), (true, IDLE_SEALED)] {
        let stack = stack().await;
        let (fanout, _) = open(&stack, 2, seal, None).await;
        after(&stack, limit - HOUR).await;
        assert!(!stack.header(fanout).await.ended());
        after(&stack, HOUR).await;
        assert_eq!(stack.header(fanout).await.state, FanoutState::Expired);
    }
}

/// Tasks in a lane that is paused, or of a kind that stands still.
#[tokio::test(start_paused = true)]
async fn tasks_that_wait_do_not_expire() {
    let stack = stack().await;
    let (fanout, ids) = open(&stack, 2, false, None).await;
    stack.register_items(&ids).await;
    for queue in QueueName::STEPS {
        stack.take(queue).await;
    }
    let mut waited = Duration::ZERO;
    while waited + IDLE_OPEN < IDLE_WITH_TASKS {
        stack.clock.skip(IDLE_OPEN);
        waited += IDLE_OPEN;
        let looked_at = stack.tracking.fanouts.get(fanout).await.unwrap().unwrap();
        assert!(!stack.tracking.expire(looked_at).await.unwrap(), "after {waited:?}");
    }
    assert!(waited > Duration::ZERO);
    stack.clock.skip(IDLE_OPEN * 2);
    let looked_at = stack.header(fanout).await;
    assert!(stack.tracking.expire(looked_at).await.unwrap());
}

/// Their own group stays as it was.
#[tokio::test(start_paused = true)]
async fn tasks_that_wait_do_not_expire_while_other_items_are_added() {
    let stack = stack().await;
    let (fanout, ids) = open(&stack, 2, false, None).await;
    stack.tracking.mark(&stack.tracking.groups_with(&ids).await.unwrap(), &ids).await.unwrap();
    stack.clock.skip(IDLE_WITH_TASKS - HOUR);
    stack.add(fanout, 1, "late").await;
    stack.clock.skip(IDLE_OPEN * 2);
    let looked_at = stack.header(fanout).await;
    assert!(!stack.tracking.expire(looked_at).await.unwrap());
}

/// The work of fan-outs under items is no activity of theirs, but may take as long as any.
#[tokio::test(start_paused = true)]
async fn what_has_children_at_work_does_not_expire() {
    for small in [true, false] {
        let stack = stack().await;
        let (parent, ids) = open(&stack, if small { 2 } else { 0 }, small, None).await;
        let ids = if small { ids } else { stack.add(parent, 2, "first").await };
        if !small {
            stack.tracking.seal(parent).await.unwrap();
        }
        let request = OpenRequest { items: 200, seal: true, parent: Some(ids[1]), ..OpenRequest::default() };
        let (child, leaves) = stack.open_as(&request, "child").await;
        let mut waited = Duration::ZERO;
        for leaf in leaves.iter().step_by(20) {
            stack.ack.apply(&done(&[*leaf])).await.unwrap();
            after(&stack, IDLE_OPEN).await;
            waited += IDLE_OPEN;
            for id in [child, parent] {
                assert_eq!(stack.header(id).await.state, FanoutState::Sealed, "small: {small}, after {waited:?}");
            }
        }
        assert!(waited > IDLE_SEALED * 2);
        stack.clock.skip(IDLE_WITH_TASKS);
        let looked_at = stack.header(parent).await;
        assert!(stack.tracking.expire(looked_at).await.unwrap(), "once nothing happens for long");
    }
}

/// So does what waits for the task that follows the end of another fan-out.
#[tokio::test(start_paused = true)]
async fn what_waits_for_another_end_does_not_expire() {
    let stack = stack().await;
    let (stages, ids) = open(&stack, 1, true, None).await;
    let then = Then { id: Some(ids[0]), ..Then::new("parcel", json!({"depot": "117"})) };
    let request = OpenRequest { items: 20, seal: true, then: Some(then), ..OpenRequest::default() };
    let (_, parts) = stack.open_as(&request, "first stage").await;
    for part in &parts {
        after(&stack, IDLE_OPEN / 2).await;
        stack.ack.apply(&done(&[*part])).await.unwrap();
        assert_eq!(stack.header(stages).await.state, FanoutState::Sealed);
    }
    stack.drain().await;
    assert_eq!(stack.header(stages).await.state, FanoutState::Completed);
}

/// The worker that sealed it, or applied the last ack, died before it saw that nothing is left. Its limit is over before a sweep looks.
#[tokio::test(start_paused = true)]
async fn what_is_done_completes_and_does_not_expire() {
    let stack = stack().await;
    let idle_limit = Some(IdleLimit { open: None, sealed: Some(Span::from_secs(60)) });
    let request = OpenRequest { idle_limit, ..OpenRequest::default() };
    let (fanout, _) = stack.open_as(&request, "large").await;
    let ids = stack.add(fanout, 2, "first").await;
    stack.ack.apply(&done(&ids)).await.unwrap();
    stack.tracking.fanouts.seal(fanout, false).await.unwrap();
    stack.clock.skip(Duration::from_secs(61));
    stack.sweep_now().await;
    let header = stack.header(fanout).await;
    assert_eq!((header.state, header.ended()), (FanoutState::Completed, true));
}

/// A user's own limit holds all the same.
#[tokio::test(start_paused = true)]
async fn a_limit_of_its_own_holds_for_what_has_children() {
    let stack = stack().await;
    let (parent, ids) = open(&stack, 2, true, Some([2, 2])).await;
    stack.open_as(&OpenRequest { items: 2, parent: Some(ids[1]), ..OpenRequest::default() }, "child").await;
    after(&stack, HOUR * 2).await;
    assert_eq!(stack.header(parent).await.state, FanoutState::Expired);
}

#[tokio::test(start_paused = true)]
async fn activity_between_look_and_decision_keeps_a_fanout() {
    let stack = stack().await;
    let (fanout, _) = open(&stack, 2, false, Some([2, 2])).await;
    stack.clock.skip(HOUR * 3);
    let looked_at = stack.header(fanout).await;
    stack.tracking.add(fanout, 1, None).await.unwrap();
    assert!(!stack.tracking.expire(looked_at).await.unwrap());
    assert_eq!(stack.header(fanout).await.state, FanoutState::Open);
    let (fanout, ids) = open(&stack, 2, true, Some([2, 2])).await;
    stack.clock.skip(HOUR * 3);
    let looked_at = stack.header(fanout).await;
    stack.ack.apply(&done(&ids[..1])).await.unwrap();
    assert!(!stack.tracking.expire(looked_at).await.unwrap());
    assert_eq!(stack.header(fanout).await.state, FanoutState::Sealed);
}

/// Fan-outs that are merely open are not looked at.
#[tokio::test(start_paused = true)]
async fn a_sweep_does_not_pay_for_open_ones() {
    let mut reads = Vec::new();
    for count in [1, 200] {
        let stack = stack().await;
        for _ in 0..count {
            open(&stack, 1, false, None).await;
        }
        let before = stack.usage();
        stack.sweep().await;
        let after = stack.usage();
        reads.push((after.read_units - before.read_units, after.dynamodb_requests - before.dynamodb_requests));
    }
    assert_eq!(reads[0], reads[1]);
    assert!(reads[0].1 > 0, "a sweep looks");
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_between_a_minute_and_a_year() {
    let stack = stack().await;
    for seconds in [0, 59, 366 * 86_400] {
        let idle_limit = Some(IdleLimit { open: Some(Span::from_secs(seconds)), sealed: None });
        let refused = stack.tracking.open(OpenRequest { idle_limit, ..OpenRequest::default() }, None).await;
        assert!(matches!(refused, Err(TrackingError::OutOfRange { field: "idle_limit.open", .. })));
    }
}

/// One of its groups has a task that no worker handles, the other has none. Returns the struck request.
async fn run(crash: Crash) -> Option<String> {
    let stack = TestStack::new(policy(json!({})), ScriptedApi::always_succeeds(), crash).await;
    let limit = Some(Span(HOUR));
    let idle_limit = Some(IdleLimit { open: limit, sealed: limit });
    let (fanout, _) = stack.open_with(OpenRequest { idle_limit, ..OpenRequest::default() }).await;
    let ids = stack.add(fanout, 2, "first").await;
    stack.add(fanout, 2, "second").await;
    stack.register_items(&ids[..1]).await;
    for queue in QueueName::STEPS {
        stack.take(queue).await;
    }
    for pause in [HOUR * 2, MISSING_AFTER, MISSING_AFTER, MISSING_AFTER] {
        after(&stack, pause).await;
        stack.drain().await;
    }
    let notices = stack.completions().await;
    assert_eq!((notices.len(), notices[0].state, notices[0].total), (1, FanoutState::Expired, 4));
    assert_eq!((notices[0].succeeded, notices[0].missing), (0, 4));
    assert!(stack.api.seen().is_empty());
    stack.crash.struck()
}

#[tokio::test(start_paused = true)]
async fn dies_at_a_request() {
    for moment in [Moment::Before, Moment::After, Moment::AnswerLost] {
        assert!(at_every_request(moment, run).await.len() > 30);
    }
}
