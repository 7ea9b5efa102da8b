//! Tasks on their own that failed are reset: their work waits again, once, as another task.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fanfold::control::{ResetError, ResetPage, Resetting, Scope};
use fanfold::ids::TaskId;
use fanfold::registering::{RegisterError, Registration};
use fanfold_batch_api::{Answer, CallError, Cause, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, Moment, ScriptedApi, TestStack, at_every_request, order, policy};
use serde_json::{Value, json};

/// A batch API that refuses every order until it is mended.
async fn stack(crash: Crash) -> (TestStack, Arc<AtomicBool>) {
    let mended = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&mended);
    let api = ScriptedApi::new(move |_| match answers.load(Ordering::Relaxed) {
        true => Ok(Answer::AllSucceeded),
        false => Err(CallError::new(Cause::Status(422), "refused")),
    });
    let changes = json!({"linger": 0, "max_batch": 4, "max_attempts": 1, "key": "content.order"});
    (TestStack::new(policy(changes), api, crash).await, mended)
}

fn resetting(stack: &TestStack) -> Resetting {
    Resetting::from_environment(stack.surroundings()).unwrap()
}

async fn orders(stack: &TestStack, numbers: std::ops::Range<usize>) -> Vec<TaskId> {
    let tasks: Vec<_> = numbers.map(|n| order(None, "117", n)).collect();
    let registered = stack.insist(async || stack.register.register(tasks.clone(), "orders").await).await;
    registered.into_iter().map(|task| task.id).collect()
}

async fn page(stack: &TestStack) -> ResetPage {
    let scope = Scope::Kind("parcel".to_owned());
    let resetting = resetting(stack);
    let mut all = ResetPage::default();
    let mut after = None;
    loop {
        let page = stack.insist(async || resetting.reset_page(&scope, after.as_ref()).await).await;
        all.reset += page.reset;
        all.known += page.known;
        all.refused += page.refused;
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_task_waits_again_as_another_one_and_once() {
    let (stack, mended) = stack(Crash::never()).await;
    let ids = orders(&stack, 0..3).await;
    assert!(matches!(resetting(&stack).reset(ids[0]).await, Err(ResetError::NotFailed { .. })), "it waits");
    stack.rest().await;
    mended.store(true, Ordering::Relaxed);
    let first = resetting(&stack).reset(ids[0]).await.unwrap();
    assert_eq!(first.outcome, Registration::Registered);
    let again = resetting(&stack).reset(ids[0]).await.unwrap();
    assert_eq!((again.id, again.outcome), (first.id, Registration::Known));
    stack.rest().await;
    let batches = stack.all_batches().await;
    let of = |id: &TaskId| batches.iter().filter(|batch| batch.members.slot(id).is_some()).count();
    assert_eq!((of(&first.id), of(&ids[0])), (1, 1));
    let error = resetting(&stack).reset(first.id).await.unwrap_err();
    assert!(error.to_string().contains("succeeded"), "{error}");
    let error = resetting(&stack).reset(TaskId::Single(uuid::Uuid::nil())).await.unwrap_err();
    assert!(matches!(error, ResetError::Unknown(_)));
}

/// Its fan-out has counted its failure.
#[tokio::test(start_paused = true)]
async fn an_item_is_not_reset() {
    let (stack, _) = stack(Crash::never()).await;
    let (fanout, ids) = stack.open(2, false).await;
    stack.register_items(&ids).await;
    stack.rest().await;
    let error = resetting(&stack).reset(TaskId::Item(ids[0])).await.unwrap_err();
    assert!(error.to_string().contains(&format!("reissue the failed items of fan-out {fanout}")), "{error}");
    assert_eq!(page(&stack).await, ResetPage::default());
}

/// Somebody registered the same work since, under its key.
#[tokio::test(start_paused = true)]
async fn work_that_another_task_has_is_not_done_twice() {
    let (stack, mended) = stack(Crash::never()).await;
    let ids = orders(&stack, 0..1).await;
    stack.rest().await;
    mended.store(true, Ordering::Relaxed);
    stack.register.register(vec![order(None, "117", 0)], "since").await.unwrap();
    stack.rest().await;
    let calls = stack.api.seen().len();
    let reset = resetting(&stack).reset(ids[0]).await.unwrap();
    assert!(matches!(reset.outcome, Registration::Duplicate { .. }), "{reset:?}");
    stack.rest().await;
    assert_eq!(stack.api.seen().len(), calls);
}

#[tokio::test(start_paused = true)]
async fn all_that_failed_in_a_scope_is_reset() {
    let (stack, mended) = stack(Crash::never()).await;
    orders(&stack, 0..10).await;
    stack.rest().await;
    mended.store(true, Ordering::Relaxed);
    assert_eq!(page(&stack).await, ResetPage { reset: 10, ..ResetPage::default() });
    assert_eq!(page(&stack).await, ResetPage { known: 10, ..ResetPage::default() });
    stack.rest().await;
    let batches = stack.all_batches().await;
    assert_eq!(batches.iter().map(|batch| batch.succeeded.count()).sum::<u64>(), 10);
    let others = Scope::Kind("letter".to_owned());
    assert_eq!(resetting(&stack).reset_page(&others, None).await.unwrap(), ResetPage::default());
}

/// Results are in the same table, and a page may end behind them.
#[tokio::test(start_paused = true)]
async fn a_page_may_end_at_any_record() {
    let api = ScriptedApi::new(|call| {
        let answer = |(at, member): (usize, &fanfold_batch_api::CallMember)| match at % 2 {
            0 => MemberAnswer::new(member.id, MemberOutcome::Failed),
            _ => {
                let result = Some(json!("kept").to_string());
                MemberAnswer { result, ..MemberAnswer::new(member.id, MemberOutcome::Succeeded) }
            }
        };
        Ok(Answer::Members(call.members.iter().enumerate().map(answer).collect()))
    });
    let changes = json!({"linger": 0, "max_batch": 2, "keep_results": true});
    let stack = TestStack::new(policy(changes), api, Crash::never()).await;
    orders(&stack, 0..8).await;
    stack.rest().await;
    let (mut found, mut after, mut pages) = (0, None, 0);
    loop {
        let (batches, next) = stack.batches.failed(after.as_ref(), 1).await.unwrap();
        found += batches.len();
        pages += 1;
        after = next.map(|next| next.to_string().parse().unwrap());
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, 4);
    assert!(pages >= 8, "a batch and its results each: {pages}");
}

/// The policy of tasks that keep their keys when they have failed.
fn keeps_keys() -> Value {
    policy(json!({"max_attempts": 1, "key": "content.order", "key_after_failure": "keep"}))
}

/// Two orders have failed and keep their keys. Their policy does not accept them any more.
async fn not_accepted() -> (TestStack, Vec<TaskId>) {
    let api = ScriptedApi::new(|_| Err::<Answer, _>(CallError::new(Cause::Status(422), "refused")));
    let stack = TestStack::new(keeps_keys(), api, Crash::never()).await;
    let ids = orders(&stack, 0..2).await;
    stack.rest().await;
    stack.put_policy(policy(json!({"target": "content.other", "key": "content.order"}))).await;
    (stack, ids)
}

/// Once the policy is as it was, the first order's key is not free.
async fn assert_keeps_its_key(stack: &TestStack) {
    stack.put_policy(keeps_keys()).await;
    let registered = stack.register.register(vec![order(None, "117", 0)], "others").await.unwrap();
    assert!(matches!(registered[0].outcome, Registration::Duplicate { .. }), "{registered:?}");
}

/// What its policy does not accept any more is not done again, and nobody else does it either.
#[tokio::test(start_paused = true)]
async fn a_task_that_is_refused_keeps_its_key() {
    let (stack, _) = not_accepted().await;
    let all = page(&stack).await;
    assert_eq!((all.reset, all.known, all.refused), (0, 0, 2));
    assert_keeps_its_key(&stack).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_refused_when_it_is_reset_alone_keeps_its_key() {
    let (stack, ids) = not_accepted().await;
    let error = resetting(&stack).reset(ids[0]).await.unwrap_err();
    assert!(matches!(error, ResetError::Register(RegisterError::Refused(_))), "{error}");
    assert_keeps_its_key(&stack).await;
    let reset = resetting(&stack).reset(ids[0]).await.unwrap();
    assert_eq!(reset.outcome, Registration::Registered);
}

async fn run(crash: Crash) -> Option<String> {
    let (stack, mended) = stack(crash).await;
    let ids = orders(&stack, 0..5).await;
    stack.rest().await;
    mended.store(true, Ordering::Relaxed);
    let resetting = resetting(&stack);
    stack.insist(async || resetting.reset(ids[0]).await).await;
    let selected = page(&stack).await;
    assert_eq!(selected.refused, 0);
    stack.rest().await;
    let batches = stack.all_batches().await;
    assert_eq!(batches.iter().map(|batch| batch.succeeded.count()).sum::<u64>(), 5, "each once");
    let members: Vec<&TaskId> = batches.iter().flat_map(|batch| batch.members.ids()).collect();
    assert_eq!(members.len(), 10);
    assert_eq!(members.iter().collect::<std::collections::BTreeSet<_>>().len(), 10, "a member of one batch");
    stack.assert_locks_free().await;
    stack.crash.struck()
}

#[tokio::test(start_paused = true)]
async fn dies_before_a_request() {
    assert!(at_every_request(Moment::Before, async |crash| run(crash).await).await.len() > 20);
}

#[tokio::test(start_paused = true)]
async fn dies_after_a_request() {
    assert!(at_every_request(Moment::After, async |crash| run(crash).await).await.len() > 20);
}

#[tokio::test(start_paused = true)]
async fn loses_an_answer() {
    assert!(at_every_request(Moment::AnswerLost, async |crash| run(crash).await).await.len() > 20);
}
