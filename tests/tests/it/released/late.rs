//! What comes late: a duplicate's request when the record of the task that has the key has expired, and a write that takes a key
//! over.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_known_duplicate_does_not_stand_in_for_a_task_that_ended_long_ago() {
    let stack = stack(json!({}), |_| Ok(Answer::AllSucceeded)).await;
    register(&stack, 1, 7).await;
    stack.drain().await;
    for days in [10, 20] {
        assert_eq!(later(&stack, days, 2).await, Registration::Duplicate { of: single(1) }, "after {days} days");
    }
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 1, "its work is not done again");
}

/// A task that failed, whose record is gone, takes its key again while another one, a request of which is late, takes it over.
/// Returns the late request.
async fn taken_by_both(crash: Crash) -> Option<String> {
    let stack = failed_and_gone(crash).await;
    let own = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        register(&stack, 1, 7).await
    };
    let (other, own) = futures::join!(register(&stack, 2, 7), own);
    let late = stack.crash.struck()?;
    let duplicates = [&other, &own].iter().filter(|it| matches!(it, Registration::Duplicate { .. })).count();
    assert_eq!(duplicates, 1, "{late}: {other:?}, {own:?}");
    stack.drain().await;
    assert_eq!(stack.api.seen().len(), 2, "{late}: {other:?}, {own:?}");
    Some(late)
}

#[tokio::test(start_paused = true)]
async fn a_late_write_takes_no_key_over_that_its_own_task_took_again() {
    let late = fanfold_tests::at_every_request(Moment::Late(Duration::from_secs(60)), taken_by_both).await;
    assert!(late.len() > 8, "{late:?}");
}
