//! A batch whose kind loses its policy, and batches whose kind limits its calls, at once or by time; a place of a dead
//! worker that two others find at once.

use std::time::Duration;

use fanfold::messages::TaskRequest;
use fanfold::policy::Policy;
use fanfold::store::gates::Gates;
use fanfold::store::places::{Party, Place};
use futures::FutureExt;
use serde_json::{Value, json};

use super::{Case, KIND, apart, formed, grouped, policy, task};
use crate::lock;
use crate::rates::Counted;
use crate::small::stage::{Again, Hands};
use crate::small::{Actor, Stage};
use crate::working::Work;

/// How long ago a worker died that had a place: its lease is over.
const AGO: Duration = Duration::from_secs(3_600);

/// How long a place is held.
const LEASE: Duration = Duration::from_secs(40);

fn keyed() -> Value {
    policy(&json!({"key": "content.k"}))
}

/// Two places, each in a record of its own.
fn two_calls() -> Value {
    policy(&json!({"max_calls": 2}))
}

/// A single place.
fn one_call() -> Value {
    policy(&json!({"max_calls": 1}))
}

/// A worker takes the only place of the kind, if it is free, and its call works from then on.
fn takes_place() -> Actor {
    Actor::request("handle", Again::Nobody, |hands| {
        async move {
            let Ok(gates) = Gates::from_environment(&hands.steps.surroundings) else { return false };
            let world = &hands.steps.surroundings.world;
            let (holder, now) = (world.uuid(), world.now());
            let place = Place { party: Party::Kind(KIND.to_owned()), record: 0, holder, until: now.plus(LEASE) };
            let Ok(taken) = gates.take(&place, 1, now).await else { return false };
            if taken.is_done() {
                let work = Work { batch: holder, attempt: 1, kind: KIND.to_owned(), lane: KIND.to_owned() };
                let (_, at_once) = lock(&hands.sim.model).working.begin(work);
                if at_once.of_kind > 1 {
                    hands.sim.violate(format!("{at_once:?} have a place of kind {KIND}, which has one"));
                }
            }
            true
        }
        .boxed()
    })
}

/// Ten tasks an hour, all at once after a pause.
fn ten_an_hour() -> Value {
    policy(&json!({"kind_rate": {"tasks": 10, "per": "hour", "burst": 10}}))
}

/// The same rate with a larger burst. Of what was spent nothing is forgiven: it is less than the burst.
fn with_a_larger_burst() -> Value {
    policy(&json!({"kind_rate": {"tasks": 10, "per": "hour", "burst": 11}}))
}

/// An operator changes the rate. Whoever counts its calls allows the larger burst.
async fn change_rate(stage: &Stage) -> Result<(), String> {
    let policy: Policy = serde_json::from_value(with_a_larger_burst()).map_err(|error| error.to_string())?;
    if let Some(kind) = lock(&stage.sim.model).kinds.get_mut(KIND) {
        kind.kind_rate = policy.kind_rate.as_ref().and_then(Counted::of);
    }
    let put = move |hands: Hands| {
        let policy = policy.clone();
        async move { hands.steps.policies.put(&policy).await.is_ok() }.boxed()
    };
    stage.alone(Actor::request("api", Again::Nobody, put)).await
}

/// An operator deletes the policy by force, and stores it again when everything rests.
fn delete_and_store(stage: &Stage) -> Actor {
    lock(&stage.sim.model).ever_missing = true;
    Actor::request("api", Again::User, |hands| {
        async move {
            let policies = &hands.steps.policies;
            if hands.sim.gate.as_ref().is_some_and(|gate| gate.closed()) {
                // What comes next is for later.
                let _ = policies.delete(KIND).await;
                return false;
            }
            tokio::time::sleep(Duration::from_secs(60)).await;
            match serde_json::from_value(keyed()) {
                Ok(policy) => policies.put(&policy).await.is_ok(),
                Err(_) => false,
            }
        }
        .boxed()
    })
}

/// A task that fails for good.
fn doomed(key: &str) -> TaskRequest {
    let mut task = task(None, key);
    task.content["doomed"] = json!(true);
    task
}

/// Forms a batch of so many tasks in a lane of its own. Returns the message to handle it.
async fn batch_of(stage: &Stage, key: &str, tasks: usize) -> Result<(String, String), String> {
    formed(stage, key, &vec![apart(key); tasks]).await
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "handle-beside-deletion",
        about: "the policy of a kind is deleted while a task fails, whose key is then free",
        policy: keyed,
        prepare: |stage| {
            async move {
                let message = grouped(stage, &[doomed("a")]).await?;
                Ok(vec![Actor::message("HandleQueue", message), delete_and_store(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "handle-beside-handle-places",
        about: "two batches of a kind call at once, which has two places in two records",
        policy: two_calls,
        prepare: |stage| {
            async move {
                let messages = [batch_of(stage, "a", 1).await?, batch_of(stage, "b", 1).await?];
                Ok(messages.map(|message| Actor::message("HandleQueue", message)).into())
            }
            .boxed()
        },
    },
    Case {
        name: "place-beside-place",
        about: "two workers find at once that the holder of the kind's only place is dead",
        policy: one_call,
        prepare: |stage| {
            async move {
                stage.long_ago(AGO);
                stage.alone(takes_place()).await?;
                // The call of the dead worker is over by then, too. It was the first one.
                lock(&stage.sim.model).working.end(0);
                Ok(vec![takes_place(), takes_place()])
            }
            .boxed()
        },
    },
    Case {
        name: "handle-beside-handle-rates",
        about: "the rate of a kind has changed since a call; of two batches only one has room beside what that spent",
        policy: ten_an_hour,
        prepare: |stage| {
            async move {
                let spends = batch_of(stage, "a", 5).await?;
                let messages = [batch_of(stage, "b", 3).await?, batch_of(stage, "c", 4).await?];
                stage.alone(Actor::message("HandleQueue", spends)).await?;
                change_rate(stage).await?;
                Ok(messages.map(|message| Actor::message("HandleQueue", message)).into())
            }
            .boxed()
        },
    },
];
