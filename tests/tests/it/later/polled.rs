//! Answers that are asked for at the address that the batch API named.

use fanfold_batch_api::Cause;

use super::*;

const AT: &str = "https://example.com/jobs/7";

fn named(after: Option<u64>) -> Answer {
    Answer::Later(Accepted { poll: Some(AT.to_owned()), after: after.map(Duration::from_secs), ..Accepted::default() })
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_asked_for_when_the_batch_api_says() {
    let api = ScriptedApi::polled(
        |_| Ok(named(Some(30))),
        |_, url, before| {
            assert_eq!(url, AT);
            match before {
                0 => Ok(named(Some(100))),
                1 => Err(CallError::new(Cause::Status(503), "busy")),
                2 => Err(CallError::new(Cause::Silence, "no answer in time")),
                _ => Ok(Answer::AllSucceeded),
            }
        },
    );
    let stack = TestStack::new(changes(json!({})), api, Crash::never()).await;
    let (members, batch) = open(&stack, 3).await;
    let opened = batch.later.as_ref().unwrap().until.minus(WITHIN);
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.attempts, stack.api.seen().len()), (3, 1, 1));
    let asked = stack.api.asked();
    let pauses: Vec<u64> = asked.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect();
    assert_eq!(asked.len(), 4);
    assert!((100..105).contains(&pauses[0]) && pauses[1..].iter().all(|pause| (5..80).contains(pause)), "{pauses:?}");
    assert!(stack.world.now().since(opened) < Duration::from_secs(600));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_had_is_silence() {
    let api = ScriptedApi::polled(
        |call| if call.attempt == 1 { Ok(named(None)) } else { Ok(Answer::AllSucceeded) },
        |_, _, _| Err(CallError::new(Cause::Status(404), "404 Not Found")),
    );
    let stack = TestStack::new(changes(json!({})), api, Crash::never()).await;
    let (members, _) = open(&stack, 2).await;
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.attempts), (2, 2), "the call is repeated");
    let seen = stack.api.seen();
    assert_eq!(seen[0].body, seen[1].body);
}

#[tokio::test(start_paused = true)]
async fn what_never_answers_is_asked_until_the_deadline_ever_more_seldom() {
    let api = ScriptedApi::polled(|_| Ok(named(None)), |_, _, _| Ok(Answer::Later(Accepted::default())));
    let stack = TestStack::new(changes(json!({"max_attempts": 1})), api, Crash::never()).await;
    let (members, _) = open(&stack, 2).await;
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.failed.count(), batch.silent.count()), (2, 2));
    let asked = stack.api.asked().len();
    assert!((15..40).contains(&asked), "{asked}");
}

/// A worker may die after it had the answer, and what follows it comes after the deadline: it asks a last time.
#[tokio::test(start_paused = true)]
async fn at_the_deadline_an_answer_is_asked_for_once_more() {
    let api = ScriptedApi::polled(|_| Ok(named(Some(3_700))), |_, _, _| Ok(Answer::AllSucceeded));
    let stack = TestStack::new(changes(json!({})), api, Crash::never()).await;
    let (members, batch) = open(&stack, 2).await;
    let until = batch.later.as_ref().unwrap().until;
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.attempts, stack.api.seen().len()), (2, 1, 1), "it is not called again");
    assert_eq!(stack.api.asked().len(), 1);
    assert!(stack.world.now() >= until);
}

/// While the lane is paused, nobody is asked, also not at the deadline: after the pause the answer still counts.
#[tokio::test(start_paused = true)]
async fn a_deadline_in_a_pause_waits_for_its_end() {
    for after in [60, 3_700] {
        waits_for_the_end_of_a_pause(after).await;
    }
}

/// `after`: when the batch API asks to be asked, in seconds.
async fn waits_for_the_end_of_a_pause(after: u64) {
    let api = ScriptedApi::polled(move |_| Ok(named(Some(after))), |_, _, _| Ok(Answer::AllSucceeded));
    let stack = TestStack::new(changes(json!({"max_attempts": 1})), api, Crash::never()).await;
    let (members, _) = open(&stack, 2).await;
    let kind = Scope::Kind("parcel".to_owned());
    stack.control.pause(&kind).await.unwrap();
    stack.drain().await;
    tokio::time::sleep(2 * WITHIN).await;
    stack.sweep().await;
    stack.drain().await;
    assert_eq!((stack.api.asked().len(), stack.all_batches().await[0].ended), (0, 0));
    stack.control.resume(&kind).await.unwrap();
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.attempts, stack.api.asked().len()), (2, 1, 1));
}

/// What was posted counts beside what is asked for.
#[tokio::test(start_paused = true)]
async fn posted_outcomes_and_the_answer_go_together() {
    let api = ScriptedApi::polled(|_| Ok(named(Some(60))), |_, _, _| Ok(Answer::AllSucceeded));
    let stack = TestStack::new(changes(json!({})), api, Crash::never()).await;
    let (members, batch) = open(&stack, 3).await;
    stack.post(batch.id, &stack.last_token(), &outcomes(&members[..1], "failed")).await;
    stack.drain().await;
    let batch = stack.assert_settled(&members, 10).await.remove(&members[0]).unwrap();
    assert_eq!((batch.succeeded.count(), batch.failed.count(), stack.api.asked().len()), (2, 1, 1));
}

/// A worker that dies at each of its requests while it asks.
async fn run(crash: Crash) -> Option<String> {
    let api = ScriptedApi::polled(
        |_| Ok(named(Some(20))),
        |_, _, before| if before < 2 { Ok(named(Some(20))) } else { Ok(Answer::AllSucceeded) },
    );
    let stack = TestStack::new(changes(json!({"max_attempts": 9})), api, crash).await;
    let (_, ids) = stack.open(3, true).await;
    let tasks = stack.register_items(&ids).await;
    stack.drain().await;
    stack.sweep().await;
    stack.drain().await;
    let batch = stack.assert_settled(&tasks, 10).await.remove(&tasks[0]).unwrap();
    assert_eq!((batch.succeeded.count(), stack.completions().await.len()), (3, 1));
    stack.crash.struck()
}

fanfold_tests::deaths!(
    run, 15,
    dies_before_a_request: Before,
    dies_after_a_request: After,
    loses_an_answer: AnswerLost,
);
