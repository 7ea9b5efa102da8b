//! Handle beside handle and beside sweep; what follows from the end of a batch.

use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold_sweep::SweepRequest;
use futures::FutureExt;
use serde_json::{Value, json};

use super::{Case, grouped, open, plain, policy, register, task, tasks};
use crate::small::Actor;

fn one_at_once() -> Value {
    policy(&json!({"max_batch": 2, "max_in_flight": 1}))
}

/// So much ahead that every lease is over.
const LATE: Duration = Duration::from_secs(3_600);

pub(super) const CASES: &[Case] = &[
    Case {
        name: "handle-beside-handle",
        about: "one message to handle a batch is delivered to two workers; others wait in its lane",
        policy: one_at_once,
        prepare: |stage| {
            async move {
                let message = grouped(stage, &tasks(&["a", "b", "c"])).await?;
                Ok(Actor::twice("HandleQueue", message))
            }
            .boxed()
        },
    },
    Case {
        name: "handle-beside-elect",
        about: "a batch ends and leads its lane on, while a leader is elected for what waits there",
        policy: one_at_once,
        prepare: |stage| {
            async move {
                let message = grouped(stage, &tasks(&["a", "b"])).await?;
                register(stage, "two", &tasks(&["c"])).await?;
                let hint = stage.take("ElectQueue")?;
                Ok(vec![Actor::message("HandleQueue", message), Actor::message("ElectQueue", hint)])
            }
            .boxed()
        },
    },
    Case {
        name: "handle-slow-beside-handle",
        about: "a worker handles a batch so slowly that another takes its lease for over",
        policy: plain,
        prepare: |stage| {
            async move {
                let message = grouped(stage, &tasks(&["a", "b"])).await?;
                let late = Actor::message("HandleQueue", message.clone()).ahead(LATE);
                Ok(vec![Actor::message("HandleQueue", message), late])
            }
            .boxed()
        },
    },
    Case {
        name: "handle-beside-sweep",
        about: "a sweep takes a batch for forgotten that a worker handles",
        policy: plain,
        prepare: |stage| {
            async move {
                let message = grouped(stage, &tasks(&["a", "b"])).await?;
                let sweep = Actor::sweep(SweepRequest::default()).ahead(LATE);
                Ok(vec![Actor::message("HandleQueue", message), sweep])
            }
            .boxed()
        },
    },
    Case {
        name: "close-beside-close",
        about: "one message to ack the items of a batch is delivered to two workers",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = open(stage, 2, true, None).await?;
                let tasks: Vec<_> = items.into_iter().map(|item| task(Some(TaskId::Item(item)), "a")).collect();
                let message = grouped(stage, &tasks).await?;
                stage.alone(Actor::message("HandleQueue", message)).await?;
                let message = stage.take("AckQueue")?;
                Ok(Actor::twice("AckQueue", message))
            }
            .boxed()
        },
    },
];
