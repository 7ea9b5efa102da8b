//! A reissue that is cut short, wherever its producer is: what it left can be reissued, and what it took on with it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::messages::TaskRequest;
use fanfold::producing::{Corrected, ReissueError, ReissuePlace, ReissueRequest, Sifted};
use fanfold::store::producers::KeptPage;
use fanfold::tracking::ItemCursor;
use fanfold_batch_api::{Answer, MemberAnswer, MemberOutcome};
use fanfold_tests::{Crash, QueueName, ScriptedApi, TestStack, deaths, policy};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{called, name_of, orders, try_reissue};

const ITEMS: usize = 7;

/// So large that three rows fill a page.
fn large(id: ItemId, number: usize) -> TaskRequest {
    let content = json!({"depot": "117", "order": format!("ORD-{number}"), "padding": "x".repeat(110_000)});
    TaskRequest { id: Some(TaskId::Item(id)), kind: "parcel".to_owned(), content }
}

/// A fan-out whose items all failed, in three groups; the batch API succeeds from its second call for an order on.
async fn failed(crash: Crash) -> (TestStack, Uuid, Vec<ItemId>) {
    let seen = std::sync::Mutex::new(BTreeSet::new());
    let api = ScriptedApi::new(move |call| {
        let answer = |member: &fanfold_batch_api::CallMember| {
            let first = seen.lock().unwrap().insert(name_of(member.content.get()));
            let outcome = if first { MemberOutcome::Failed } else { MemberOutcome::Succeeded };
            MemberAnswer::new(member.id, outcome)
        };
        Ok(Answer::Members(call.members.iter().map(answer).collect()))
    });
    let stack = TestStack::new(policy(json!({"linger": 0})), api, crash).await;
    let (fanout, mut ids) = stack.open(3, false).await;
    for (group, items) in [2, 2].into_iter().enumerate() {
        ids.extend(stack.add(fanout, items, &group.to_string()).await);
    }
    stack.register(ids.iter().enumerate().map(|(number, id)| large(*id, number)).collect()).await;
    stack.seal(fanout).await;
    stack.rest().await;
    assert_eq!(stack.header(fanout).await.failed, ITEMS as u64);
    (stack, fanout, ids)
}

/// What the producer has registered is grouped and called, as far as that comes at once.
async fn some_work(stack: &TestStack) {
    for queue in [QueueName::Elect, QueueName::Group, QueueName::Handle] {
        tokio::time::sleep(Duration::from_secs(2)).await;
        stack.deliver(queue).await;
    }
}

/// Cuts a reissue short, and waits for its end.
async fn cut_short(stack: &TestStack, fanout: Uuid) {
    stack.insist(async || stack.tracking.cancel(fanout).await).await;
    stack.rest().await;
    stack.minutes(20).await;
    assert!(stack.header(fanout).await.ended());
}

/// Reissues something until nothing of it is left to reissue.
async fn finish(stack: &TestStack, of: Uuid, missing: bool) -> Option<Uuid> {
    let request = ReissueRequest { missing, ..ReissueRequest::default() };
    let tried = async || match try_reissue(stack, of, &request, &format!("the rest of {of}")).await {
        Ok(new) => Ok(Some(new)),
        Err(ReissueError::Nothing { .. } | ReissueError::Reissued { .. }) => Ok(None),
        Err(error) => Err(error),
    };
    let new = stack.insist(tried).await;
    stack.rest().await;
    new
}

async fn run(crash: Crash) -> Option<String> {
    let (stack, old, _) = failed(crash.waiting()).await;
    stack.crash.begin();
    let calls = stack.api.seen().len();
    let first = stack.insist(async || try_reissue(&stack, old, &ReissueRequest::default(), "first").await).await;
    // Its worker dies somewhere in it.
    let messages = stack.take(QueueName::Produce).await;
    stack.hand(QueueName::Produce, messages).await;
    some_work(&stack).await;
    cut_short(&stack, first).await;
    finish(&stack, old, false).await;
    assert!(finish(&stack, old, false).await.is_none_or(|rest| rest != first), "a repetition");
    finish(&stack, first, true).await;
    let called = called(&stack, calls);
    assert_eq!(called.keys().cloned().collect::<BTreeSet<_>>(), orders(0..ITEMS), "{:?}", stack.crash.struck());
    // A worker that died after a call has it repeated, under the same key.
    let by_key: BTreeMap<String, Vec<String>> = stack.api.members_by_key();
    let again: Vec<&String> = by_key.values().flatten().collect();
    assert_eq!(again.len(), again.iter().collect::<BTreeSet<_>>().len(), "{:?}", stack.crash.struck());
    stack.crash.struck()
}

// One request follows another here, so a death before a request is one after the request before it.
deaths!(
    async |crash| run(crash).await,
    50,
    dies_after_a_request: After,
);

/// The first reissue had taken on some pages: only what it left is reissued, and only that may be corrected.
#[tokio::test(start_paused = true)]
async fn what_it_left_is_reissued_as_it_was() {
    let (stack, old, ids) = failed(Crash::never()).await;
    let first = try_reissue(&stack, old, &ReissueRequest::default(), "first").await.unwrap();
    let at = stack.producing.producers.get(first, 0).await.unwrap().unwrap();
    one_page(&stack, first).await;
    cut_short(&stack, first).await;
    let taken_on = usize::try_from(stack.header(first).await.total).unwrap();
    assert!(at.page == 0 && (1..ITEMS).contains(&taken_on));
    let wrong = ReissueRequest { missing: true, ..ReissueRequest::default() };
    let Err(ReissueError::Fields(errors)) = try_reissue(&stack, old, &wrong, "rest").await else { panic!() };
    assert!(errors[0].field == "missing" && errors[0].problem.contains("opened with false"), "{errors:?}");
    let sorted = in_order(&stack, old, &ids).await;
    let content = |id: &ItemId| -> Value { json!({"depot": "118", "order": format!("ORD-{}", number(&ids, id))}) };
    let correct = |id: &ItemId| ReissueRequest {
        contents: vec![Corrected { id: *id, content: content(id) }],
        ..ReissueRequest::default()
    };
    let refused = try_reissue(&stack, old, &correct(&sorted[taken_on - 1]), "rest").await;
    assert!(
        matches!(&refused, Err(ReissueError::Fields(errors)) if errors[0].field == "contents[0].id"),
        "{refused:?}"
    );
    let calls = stack.api.seen().len();
    let rest = try_reissue(&stack, old, &correct(&sorted[taken_on]), "rest").await.unwrap();
    assert_eq!(try_reissue(&stack, old, &correct(&sorted[taken_on]), "rest").await.unwrap(), rest, "a repetition");
    stack.rest().await;
    let left = sorted[taken_on..].iter().map(|id| number(&ids, id));
    assert_eq!(called(&stack, calls).into_keys().collect::<BTreeSet<_>>(), orders(left));
    let header = stack.header(rest).await;
    assert_eq!((header.total, stack.header(old).await.reissued_as), ((ITEMS - taken_on) as u64, Some(rest)));
    let done = try_reissue(&stack, old, &ReissueRequest::default(), "more").await;
    assert!(matches!(done, Err(ReissueError::Reissued { latest, .. }) if latest == rest), "{done:?}");
}

/// Users may add items of their own to a reissue. These say nothing of how far its producer has come, also if a worker has written
/// the next page down, and died before it added its items.
#[tokio::test(start_paused = true)]
async fn items_of_the_users_own_do_not_count_as_taken_on() {
    for written in [false, true] {
        let (stack, old, ids) = failed(Crash::never()).await;
        let calls = stack.api.seen().len();
        let first = try_reissue(&stack, old, &ReissueRequest::default(), "first").await.unwrap();
        one_page(&stack, first).await;
        stack.add(first, 5, "own").await;
        stack.drain().await;
        if written {
            write_page(&stack, old, first, &ids).await;
        }
        cut_short(&stack, first).await;
        try_reissue(&stack, old, &ReissueRequest::default(), "rest").await.unwrap();
        stack.rest().await;
        let called = called(&stack, calls);
        assert_eq!(called.keys().cloned().collect::<BTreeSet<_>>(), orders(0..ITEMS), "written: {written}");
        assert!(called.values().all(|calls| calls.len() == 1), "{called:?}");
    }
}

/// Writes the next page of a reissue down.
async fn write_page(stack: &TestStack, old: Uuid, new: Uuid, ids: &[ItemId]) {
    let at = stack.producing.producers.get(new, 0).await.unwrap().unwrap();
    let sorted = in_order(stack, old, ids).await;
    let items = &sorted[at.rows as usize..][..3];
    let tasks = items.iter().map(|id| TaskRequest { id: None, ..large(*id, number(ids, id)) }).collect();
    let next = json!(ReissuePlace::Items(ItemCursor::after(&items[2])));
    let page = KeptPage::new(Sifted { tasks, rows: 3, ..Sifted::default() }, Some(&next)).unwrap();
    stack.producing.producers.take(&at, page).await.unwrap();
}

/// Lets the producer register one page.
pub(crate) async fn one_page(stack: &TestStack, fanout: Uuid) {
    let messages = stack.take(QueueName::Produce).await;
    let step = stack.produce.clone();
    let work = tokio::spawn(async move { fanfold::delivery::Step::deliver(&*step, messages).await });
    loop {
        let at = stack.producing.producers.get(fanout, 0).await.unwrap().unwrap();
        if at.rows > 0 {
            work.abort();
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn number(ids: &[ItemId], id: &ItemId) -> usize {
    ids.iter().position(|other| other == id).unwrap()
}

/// The items in the order in which they are reissued.
async fn in_order(stack: &TestStack, fanout: Uuid, ids: &[ItemId]) -> Vec<ItemId> {
    let header = stack.header(fanout).await;
    let (items, more) = stack.tracking.items_after(&header, None, 100).await.unwrap();
    assert!(!more && items.len() == ids.len());
    items
}
