//! Which ends have a notice: those that were chosen, under the names that were chosen, and nothing waits for the others.

use fanfold::ids::derived;
use fanfold::notice::Event;
use fanfold::store::fanouts::{FanoutState, NotifyOn, ReportedEnd, Then, Tolerance};
use fanfold_tests::QueueName;

use super::progress::delivered;
use super::*;

fn on(ends: &[ReportedEnd]) -> Option<NotifyOn> {
    Some(NotifyOn { ends: Some(ends.iter().copied().collect()), ..NotifyOn::default() })
}

fn request(ends: &[ReportedEnd], items: u32) -> OpenRequest {
    let notify = Some(Destination::Url(URL.to_owned()));
    OpenRequest { items, seal: true, notify, notify_on: on(ends), ..OpenRequest::default() }
}

/// How a fan-out of three items is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Well,
    WithFailures,
    Failed,
    Cancelled,
}

/// The notices of it, and how its header stands then.
async fn ended(ends: &[ReportedEnd], how: Ends, small: bool) -> (Vec<String>, Fanout) {
    let stack = stack().await;
    let tolerated_failures = (how == Ends::Failed).then_some(Tolerance::Count(0));
    let request = OpenRequest { tolerated_failures, ..request(ends, if small { 3 } else { 0 }) };
    let request = if small { request } else { OpenRequest { seal: false, ..request } };
    let opened = stack.tracking.open(request, None).await.unwrap();
    let (id, mut items) = (opened.fanout.id, expand(opened.fanout.id, &opened.groups).collect::<Vec<_>>());
    if !small {
        items = stack.add(id, 3, "a").await;
    }
    stack.seal(id).await;
    match how {
        Ends::Well => stack.ack(&done(&items)).await,
        Ends::WithFailures | Ends::Failed => {
            let failed = AckRequest { failed: vec![items[0].into()], ..done(&items[1..]) };
            stack.ack(&failed).await;
        }
        Ends::Cancelled => drop(stack.tracking.cancel(id).await.unwrap()),
    }
    for _ in 0..2 {
        stack.drain().await;
        stack.sweep().await;
    }
    assert_eq!(stack.backlog().await, 0);
    for posted in stack.webhooks.posted() {
        assert_eq!(posted.notice.id, derived::end_notice(id), "one end, one id");
    }
    (delivered(&stack), stack.header(id).await)
}

#[tokio::test(start_paused = true)]
async fn chosen_ends_are_sent_under_their_names_and_no_others() {
    use ReportedEnd::{Cancelled, Completed, Failed, Succeeded};
    for small in [true, false] {
        for (ends, how, wanted) in [
            (&[Succeeded, Completed][..], Ends::Well, Some("fanout.succeeded")),
            (&[Succeeded, Completed], Ends::WithFailures, Some("fanout.completed")),
            (&[Succeeded], Ends::Well, Some("fanout.succeeded")),
            (&[Succeeded], Ends::WithFailures, None),
            (&[Completed], Ends::Well, Some("fanout.completed")),
            (&[Failed, Cancelled], Ends::Well, None),
            (&[Failed, Cancelled], Ends::Failed, Some("fanout.failed")),
            (&[Failed, Cancelled], Ends::Cancelled, Some("fanout.cancelled")),
            (&[Succeeded, Completed], Ends::Failed, None),
            (&[Succeeded, Completed], Ends::Cancelled, None),
        ] {
            let (delivered, header) = ended(ends, how, small).await;
            assert_eq!(
                delivered,
                wanted.map(str::to_owned).into_iter().collect::<Vec<_>>(),
                "{ends:?}, {how:?}, {small}"
            );
            assert!(header.ended() && !header.ending(), "nothing is left to be done: {header:?}");
            assert_eq!(header.notice.delivered.is_some(), wanted.is_some());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_without_a_notice_still_leads_to_what_follows() {
    let stack = stack().await;
    let then = Some(Then::new("parcel", json!({"depot": "117"})));
    let request = OpenRequest { then, ..request(&[ReportedEnd::Expired], 1) };
    let opened = stack.tracking.open(request, None).await.unwrap();
    let items: Vec<ItemId> = expand(opened.fanout.id, &opened.groups).collect();
    stack.ack(&done(&items)).await;
    for _ in 0..3 {
        stack.drain().await;
        stack.sweep().await;
    }
    let header = stack.header(opened.fanout.id).await;
    assert!(header.followed.is_some() && !header.ending(), "{header:?}");
    assert_eq!((delivered(&stack).len(), stack.api.seen().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn without_items_it_has_succeeded_at_once() {
    let stack = stack().await;
    stack.tracking.open(request(&[ReportedEnd::Succeeded], 0), None).await.unwrap();
    stack.drain().await;
    let posted = stack.webhooks.posted();
    assert!(posted.len() == 1 && matches!(&posted[0].notice.event, Event::FanoutSucceeded(end) if end.total == 0));
    let delivered = serde_json::to_value(&posted[0].notice).unwrap();
    assert_eq!(delivered["data"]["state"], json!(FanoutState::Completed));
    stack.tracking.open(request(&[ReportedEnd::Failed], 0), None).await.unwrap();
    assert_eq!(stack.deliver(QueueName::Notify).await, 0, "no message asks for a notice");
}
