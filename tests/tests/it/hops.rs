//! How many queues lie between a request and the call that it leads to, and which of them make messages wait.

use fanfold_local::Template;
use fanfold_tests::{QueueName, TestStack, order};
use serde_json::{Value, json};

/// A stack whose policy has no linger.
async fn hasty(changes: Value) -> TestStack {
    TestStack::with(fanfold_tests::changed(json!({"linger": 0, "max_in_flight": 1}), changes)).await
}

/// Lets every queue deliver once what is in it now.
async fn hop(stack: &TestStack) {
    let mut taken = Vec::new();
    for queue in QueueName::STEPS {
        taken.push((queue, stack.take(queue).await));
    }
    for (queue, deliveries) in taken.into_iter().filter(|(_, deliveries)| !deliveries.is_empty()) {
        assert!(stack.hand(queue, deliveries).await.is_empty());
    }
}

/// The hops until there are so many calls. No message may be delayed.
async fn hops_to(stack: &TestStack, calls: usize) -> usize {
    for hops in 0..10 {
        if stack.api.seen().len() >= calls {
            return hops;
        }
        hop(stack).await;
    }
    panic!("{} calls of {calls}", stack.api.seen().len());
}

#[tokio::test(start_paused = true)]
async fn a_single_task_is_called_two_hops_after_its_request() {
    let stack = hasty(json!({})).await;
    let begun = stack.world.now();
    for call in 1..4 {
        stack.register_orders("117", call..call + 1).await;
        assert_eq!(hops_to(&stack, call).await, 2, "group, handle");
        for _ in 0..4 {
            hop(&stack).await;
        }
    }
    assert_eq!(stack.world.now(), begun);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_comes_by_queue_has_one_hop_more() {
    let stack = hasty(json!({})).await;
    stack.send(QueueName::Register, json!(order(None, "117", 1))).await;
    assert_eq!(hops_to(&stack, 1).await, 3, "register, group, handle");
}

/// The end of a batch leads on: there is no election.
#[tokio::test(start_paused = true)]
async fn the_next_batch_of_a_lane_is_called_two_hops_after_the_one_before() {
    let stack = hasty(json!({"max_batch": 1})).await;
    stack.register_orders("117", 0..5).await;
    for call in 1..=5 {
        assert_eq!(hops_to(&stack, call).await, 2, "group, handle");
    }
}

/// A task that comes while the lane is led or full: the leader, or the end of the batch, finds it.
#[tokio::test(start_paused = true)]
async fn a_task_that_comes_in_between_is_not_left_to_an_election() {
    for hops in 0..2 {
        let stack = hasty(json!({"max_batch": 1})).await;
        stack.register_orders("117", 0..1).await;
        for _ in 0..hops {
            hop(&stack).await;
        }
        stack.register_orders("117", 1..2).await;
        stack.take(QueueName::Elect).await;
        assert!(hops_to(&stack, 2).await <= 4);
    }
}

/// Bulk is not worth a leader per request.
#[tokio::test(start_paused = true)]
async fn a_request_about_many_lanes_leaves_them_to_elections() {
    let stack = hasty(json!({})).await;
    stack.register((0..20).map(|n| order(None, &n.to_string(), n)).collect()).await;
    assert_eq!(stack.take(QueueName::Group).await.len(), 0);
    assert_eq!(hops_to(&stack, 20).await, 3, "elect, group, handle");
}

/// What comes through the queues of users is gathered first. Who cannot wait takes HTTP.
#[test]
fn no_queue_between_a_request_and_its_call_has_a_window() {
    let template = Template::parse(include_str!("../../../template.yaml")).unwrap();
    let windowed = template.event_sources().iter().filter(|source| !source.window.is_zero());
    let functions: Vec<&str> = windowed.map(|source| source.function.as_str()).collect();
    assert_eq!(functions, ["AckFunction", "RegisterFunction"]);
}

/// A linger below a second costs no election: its leader is made by the request, too.
#[tokio::test(start_paused = true)]
async fn a_linger_below_a_second_adds_no_hop() {
    let stack = hasty(json!({"linger": "300ms"})).await;
    for call in 1..4 {
        stack.register_orders("117", call..call + 1).await;
        assert_eq!(hops_to(&stack, call).await, 2, "group, handle");
        for _ in 0..4 {
            hop(&stack).await;
        }
    }
}
