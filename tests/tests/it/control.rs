//! Pausing, draining and cancelling.

mod cancelling;
mod crashes;
mod dead_letters;
mod draining;
mod lanes;
mod pausing;
mod policies;
mod resetting;
mod resuming;

use std::time::Duration;

use fanfold::control::{Scope, Switched};
use fanfold::ids::TaskId;
use fanfold::lane::Lane;
use fanfold::limits::POLICY_CACHE_MAX;
use fanfold::store::locks::Lock;
use fanfold_tests::{QueueName, TestStack};

/// The lane of a depot.
fn lane(depot: &str) -> Lane {
    format!("parcel:0:{depot}").parse().unwrap()
}

fn kind() -> Scope {
    Scope::Kind("parcel".to_owned())
}

fn target(target: &str) -> Scope {
    Scope::Target { kind: "parcel".to_owned(), target: target.to_owned() }
}

async fn lock(stack: &TestStack, depot: &str) -> Lock {
    stack.locks.get(&lane(depot)).await.unwrap()
}

/// Pauses a scope, and waits until each worker knows.
async fn pause(stack: &TestStack, scope: &Scope) -> Switched {
    let switched = stack.insist(async || stack.control.pause(scope).await).await;
    tokio::time::sleep(POLICY_CACHE_MAX + Duration::from_secs(1)).await;
    switched
}

async fn resume(stack: &TestStack, scope: &Scope) -> Switched {
    stack.insist(async || stack.control.resume(scope).await).await
}

async fn drain(stack: &TestStack, scope: &Scope) -> Switched {
    stack.insist(async || stack.control.drain(scope).await).await
}

/// Loses every message there is.
async fn lose_all(stack: &TestStack) {
    for queue in QueueName::STEPS {
        stack.take(queue).await;
    }
}

/// Everything that waits was handled, once.
async fn settled(stack: &TestStack, tasks: &[TaskId]) {
    stack.drain().await;
    stack.assert_settled(tasks, 10).await;
    stack.sweep().await;
    stack.sweep().await;
    assert_eq!(stack.control.switchboard().await.unwrap().iter().count(), 0, "switches that did their work are gone");
}
