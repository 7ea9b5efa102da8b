//! Rates: no span sees more than they allow, and they are used.

use std::time::Duration;

use fanfold::limits::PLACES_PER_RECORD;
use fanfold_batch_api::{Answer, CallError};
use fanfold_tests::{Counted, Crash, ScriptedApi, Seen, TestStack, members, policy};
use serde_json::{Value, json};

use super::{register, taking, work};

async fn stack(changes: Value, takes: Duration) -> TestStack {
    TestStack::new(policy(changes), taking(takes), Crash::never()).await
}

/// Handles `each` tasks of each of `lanes` lanes, and checks that the kind's rate was kept and used.
async fn paced(changes: Value, counted: Counted, lanes: usize, each: usize) {
    let stack = stack(changes, Duration::from_millis(30)).await;
    let tasks = register(&stack, "parcel", lanes, each).await;
    work(&stack, tasks.len()).await;
    let seen = stack.api.seen();
    counted.assert_kept(&seen, members);
    let used = counted.used(&seen, members);
    assert!(used > 0.9, "{used}");
    stack.assert_settled(&tasks, 1_000).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_called_as_fast_as_its_rate_and_no_faster() {
    let rate = json!({"kind_rate": {"tasks": 50, "per": "second"}, "max_batch": 5, "max_in_flight": 4});
    paced(rate, Counted { a_second: 50.0, burst: 12.0 }, 10, 200).await;
}

#[tokio::test(start_paused = true)]
async fn a_burst_goes_at_once() {
    let rate = json!({"kind_rate": {"tasks": 20, "per": "second", "burst": 100}, "max_batch": 5, "max_in_flight": 10});
    let stack = stack(rate, Duration::from_millis(30)).await;
    let tasks = register(&stack, "parcel", 10, 60).await;
    work(&stack, tasks.len()).await;
    let (seen, counted) = (stack.api.seen(), Counted { a_second: 20.0, burst: 100.0 });
    counted.assert_kept(&seen, members);
    let first = seen.iter().map(|seen| seen.at).min().unwrap();
    let soon: f64 = seen.iter().filter(|seen| seen.at - first < Duration::from_secs(3)).map(members).sum();
    assert!(soon >= 100.0, "{soon}");
}

/// A batch that is larger than a burst goes when the bucket is full.
#[tokio::test(start_paused = true)]
async fn batches_that_are_larger_than_a_burst_go_one_after_the_other() {
    let rate = json!({"kind_rate": {"tasks": 600, "per": "minute", "burst": 1}, "max_batch": 20, "max_in_flight": 4});
    paced(rate, Counted { a_second: 10.0, burst: 1.0 }, 5, 100).await;
}

#[tokio::test(start_paused = true)]
async fn each_lane_has_its_own_rate() {
    let rate = json!({"lane_rate": {"tasks": 20, "per": "second"}, "max_batch": 4, "max_in_flight": 4});
    let stack = stack(rate, Duration::from_millis(30)).await;
    let tasks = register(&stack, "parcel", 3, 400).await;
    work(&stack, tasks.len()).await;
    for lane in ["D0", "D1", "D2"] {
        let seen: Vec<Seen> = stack.api.seen().into_iter().filter(|seen| seen.call.target == lane).collect();
        let counted = Counted { a_second: 20.0, burst: 5.0 };
        counted.assert_kept(&seen, members);
        let used = counted.used(&seen, members);
        assert!(used > 0.9, "{lane}: {used}");
    }
    stack.assert_settled(&tasks, 4).await;
}

/// A batch of 240 spends ten days of its lane's rate. An idle lane is otherwise forgotten within two.
#[tokio::test(start_paused = true)]
async fn a_lane_is_remembered_until_its_rate_has_refilled() {
    let rate = json!({"lane_rate": {"tasks": 1, "per": "hour", "burst": 1}, "max_batch": 240});
    let stack = stack(rate, Duration::ZERO).await;
    let tasks = register(&stack, "parcel", 1, 240).await;
    work(&stack, tasks.len()).await;
    let lane = stack.all_batches().await[0].lane.clone();
    let active = async || stack.locks.get(&lane).await.unwrap().active;
    for _ in 0..8 {
        stack.clock.skip(Duration::from_secs(24 * 3_600));
        stack.sweep().await;
        assert!(active().await);
    }
    stack.clock.skip(Duration::from_secs(48 * 3_600));
    stack.sweep().await;
    assert!(!active().await);
}

#[tokio::test(start_paused = true)]
async fn the_rates_of_lanes_and_of_their_kind_hold_together() {
    for (per_record, max_in_flight) in [(PLACES_PER_RECORD, 6), (5, 3)] {
        hold_together(per_record, max_in_flight).await;
    }
}

async fn hold_together(per_record: u32, max_in_flight: u32) {
    // So few calls that a worker is free for each batch that waits for its turn.
    let rate = json!({
        "lane_rate": {"tasks": 8, "per": "second"}, "kind_rate": {"tasks": 20, "per": "second"},
        "max_batch": 3, "max_in_flight": max_in_flight,
    });
    let api = taking(Duration::from_millis(30));
    let stack = TestStack::with_places_per_record(policy(rate), api, Crash::never(), per_record).await;
    let tasks = register(&stack, "parcel", 4, 300).await;
    work(&stack, tasks.len()).await;
    let (seen, kind) = (stack.api.seen(), Counted { a_second: 20.0, burst: 5.0 });
    kind.assert_kept(&seen, members);
    let lanes = ["D0", "D1", "D2", "D3"];
    let of = |lane: &str| seen.iter().filter(|seen| seen.call.target == lane).cloned().collect::<Vec<Seen>>();
    // Once a lane has no tasks left, the rates of the others add up to less than the kind's.
    let all_work = lanes.iter().filter_map(|lane| of(lane).iter().map(|seen| seen.at).max()).min().unwrap();
    let used = kind.used(&seen.iter().filter(|seen| seen.at <= all_work).cloned().collect::<Vec<_>>(), members);
    assert!(used > 0.85, "{per_record} places per record: {used}");
    for lane in lanes {
        Counted { a_second: 8.0, burst: 3.0 }.assert_kept(&of(lane), members);
    }
    stack.assert_settled(&tasks, 3).await;
}

#[tokio::test(start_paused = true)]
async fn calls_and_weights_are_counted_too() {
    let calls = json!({"kind_rate": {"calls": 120, "per": "minute"}, "max_batch": 7, "max_in_flight": 3});
    let counting = stack(calls, Duration::from_millis(30)).await;
    let tasks = register(&counting, "parcel", 3, 70).await;
    work(&counting, tasks.len()).await;
    let counted = Counted { a_second: 2.0, burst: 1.0 };
    counted.assert_kept(&counting.api.seen(), |_| 1.0);
    assert!(counted.used(&counting.api.seen(), |_| 1.0) > 0.9);

    // A batch of ten weighs up to 25: some weigh more than the burst.
    let weighs = json!({
        "weight": "content.weight", "max_weight": 25, "kind_rate": {"weight": 30, "per": "second", "burst": 12},
        "max_in_flight": 3, "target": "content.depot",
    });
    let weighing = stack(weighs, Duration::from_millis(30)).await;
    let mut tasks = Vec::new();
    for n in 0..300 {
        let mut task = fanfold_tests::order(None, &format!("D{}", n % 3), n);
        task.content["weight"] = json!(1 + n % 9);
        tasks.push(task);
    }
    weighing.register.register(tasks, "weights").await.unwrap();
    work(&weighing, 300).await;
    let weight = |seen: &Seen| {
        let of = |content: &str| serde_json::from_str::<Value>(content).unwrap()["weight"].as_f64().unwrap();
        seen.call.members.iter().map(|member| of(member.content.get())).sum::<f64>()
    };
    let counted = Counted { a_second: 30.0, burst: 12.0 };
    counted.assert_kept(&weighing.api.seen(), weight);
    let used = counted.used(&weighing.api.seen(), weight);
    assert!(used > 0.9, "{used}");
}

/// Each attempt is a call.
#[tokio::test(start_paused = true)]
async fn calls_that_are_repeated_count_again() {
    let rate = json!({"kind_rate": {"calls": 2, "per": "second", "burst": 1}, "backoff": {"base": "1ms", "max": "2ms"}, "max_in_flight": 5});
    let api = ScriptedApi::new(|call| match call.attempt {
        1 | 2 => Err(CallError::again("500")),
        _ => Ok(Answer::AllSucceeded),
    });
    let stack = TestStack::new(policy(rate), api, Crash::never()).await;
    let tasks = register(&stack, "parcel", 6, 10).await;
    work(&stack, 3 * tasks.len()).await;
    Counted { a_second: 2.0, burst: 1.0 }.assert_kept(&stack.api.seen(), |_| 1.0);
    assert_eq!(stack.api.seen().len(), 18);
    stack.assert_settled(&tasks, 10).await;
}

#[tokio::test(start_paused = true)]
async fn another_rate_holds_from_the_next_call_on() {
    let slow = json!({"kind_rate": {"calls": 1, "per": "hour"}, "max_in_flight": 1});
    let stack = stack(slow, Duration::ZERO).await;
    let tasks = register(&stack, "parcel", 4, 10).await;
    stack.seconds(30).await;
    assert_eq!(stack.api.seen().len(), 1);
    stack.put_policy(policy(json!({"kind_rate": {"calls": 10, "per": "second"}}))).await;
    // Messages are delayed by 15 minutes at most.
    stack.minutes(16).await;
    assert_eq!(stack.api.seen().len(), 4);
    stack.drain().await;
    stack.assert_settled(&tasks, 10).await;
}
