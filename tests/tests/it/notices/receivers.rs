//! A receiver that hangs does not keep `notify` from others.

use fanfold::store::places::{Party, Place, Places};
use fanfold_tests::{QueueName, WebhookAnswer};

use super::*;

const HANGS: &str = "https://hangs.example/hook";

#[tokio::test(start_paused = true)]
async fn sixty_that_hang_do_not_delay_another() {
    let stack = stack().await;
    stack.webhooks.answer(|url, _| if url.starts_with(HANGS) { WebhookAnswer::Hangs } else { WebhookAnswer::Takes });
    let pumps = stack.pumps();
    for n in 0..60 {
        completed(&stack, &format!("{HANGS}/{n}")).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let began = stack.world.now();
    let count = |prefix: &str| stack.webhooks.posted().iter().filter(|posted| posted.url.starts_with(prefix)).count();
    for n in 0..20 {
        completed(&stack, &format!("{URL}/{n}")).await;
    }
    while count(URL) < 20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let waited = stack.world.now().since(began);
        assert!(waited < Duration::from_secs(10), "{} of 20 were delivered after {waited:?}", count(URL));
    }
    assert!(count(HANGS) > 0 && count(HANGS) < 60, "some wait for a place");
    drop(pumps);
}

/// A notice that waits for a place uses up no try, and is delivered once there is one.
#[tokio::test(start_paused = true)]
async fn a_notice_without_a_place_waits_for_one() {
    let stack = stack().await;
    let places = Places::new(stack.surroundings().table("LOCKS_TABLE").unwrap());
    let now = stack.world.now();
    for holder in (0..5).map(Uuid::from_u128) {
        let party = Party::Receiver("https://receiver.example:443".to_owned());
        let place = Place { party, record: 0, holder, until: now.plus(Duration::from_secs(50)) };
        assert!(places.take(&place, 5, now).await.unwrap());
    }
    let fanout = completed(&stack, URL).await;
    run_for(&stack, Duration::from_secs(40), Duration::from_secs(1)).await;
    assert_eq!(stack.webhooks.posted().len(), 0);
    assert_eq!((stack.backlog().await, stack.header(fanout).await.notice.tries), (1, 0));
    // The others died: their leases end.
    stack.drain().await;
    assert_eq!(stack.webhooks.posted().len(), 1);
    assert_eq!(stack.header(fanout).await.notice.tries, 1);
    for _ in 0..12 {
        let url = format!("{URL}/{}", stack.webhooks.posted().len());
        completed(&stack, &url).await;
        stack.deliver(QueueName::Notify).await;
    }
    assert_eq!(stack.webhooks.posted().len(), 13, "places are released");
}
