//! One lane with a hundred thousand tasks beside a thousand lanes with ten each: how long tasks of the small ones wait.
//! Run by `just fairness`; the figures are in docs/SCALING.md.

use std::time::Duration;

use fanfold_tests::{Crash, TestStack, policy, until};
use serde_json::json;
use tokio::time::Instant;

use super::taking;

const SMALL: usize = 1_000;
const EACH: usize = 10;
const LARGE: usize = 100_000;

/// How long tasks of small lanes wait for their call.
#[derive(Clone, Copy, Debug)]
struct Waits {
    mean: Duration,
    p99: Duration,
    longest: Duration,
}

async fn tasks(stack: &TestStack, depots: impl Iterator<Item = String>, request: &str) {
    let tasks: Vec<_> = depots.enumerate().map(|(n, depot)| fanfold_tests::order(None, &depot, n)).collect();
    for (at, tasks) in tasks.chunks(1_000).enumerate() {
        stack.register.register(tasks.to_vec(), &format!("{request}{at}")).await.unwrap();
    }
}

/// Registers the large lane's tasks first, if there are any, and half a minute later the small ones'.
async fn waits(large: usize, max_in_flight: usize) -> Waits {
    let changes = json!({"max_batch": 100, "max_in_flight": max_in_flight});
    let stack = TestStack::new(policy(changes), taking(Duration::from_millis(500)), Crash::never()).await;
    tasks(&stack, std::iter::repeat_n("large".to_owned(), large), "large").await;
    let pumps = stack.pumps();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let begun = Instant::now();
    tasks(&stack, (0..SMALL * EACH).map(|n| format!("D{}", n % SMALL)), "small").await;
    let seen = || stack.api.seen().into_iter().filter(|seen| seen.call.target != "large");
    until(async || seen().map(|seen| seen.call.members.len()).sum::<usize>() >= SMALL * EACH).await;
    let mut waited: Vec<Duration> =
        seen().flat_map(|seen| std::iter::repeat_n(seen.at - begun, seen.call.members.len())).collect();
    waited.sort_unstable();
    drop(pumps);
    let at = |share: f64| waited[((waited.len() - 1) as f64 * share) as usize];
    let mean = waited.iter().sum::<Duration>() / u32::try_from(waited.len()).unwrap();
    Waits { mean, p99: at(0.99), longest: at(1.0) }
}

#[tokio::test(start_paused = true)]
#[ignore = "a lane of 100,000 tasks takes minutes: `just fairness`"]
async fn small_lanes_wait_about_as_long_beside_a_large_one() {
    for max_in_flight in [1, 10] {
        let alone = waits(0, max_in_flight).await;
        let beside = waits(LARGE, max_in_flight).await;
        println!("max_in_flight {max_in_flight}: without the large lane {alone:?}, beside it {beside:?}");
        assert!(beside.mean < alone.mean * 2 + Duration::from_secs(2), "{beside:?}, {alone:?}");
        assert!(beside.p99 < alone.p99 * 2 + Duration::from_secs(5), "{beside:?}, {alone:?}");
        assert!(beside.longest < alone.longest * 2 + Duration::from_secs(5), "{beside:?}, {alone:?}");
    }
}
