//! Handle beside handle, beside an attempt that is taken back and beside sweep; a batch that was split; what follows
//! from the end of a batch.

use std::time::Duration;

use fanfold::aws::Write;
use fanfold::ids::TaskId;
use fanfold::messages::{HandleMessage, TaskRequest};
use fanfold::store::batches::Batches;
use fanfold_sweep::SweepRequest;
use futures::FutureExt;
use serde_json::{Value, json};

use super::cancels::cancel;
use super::{Case, grouped, open, plain, policy, queue, register, task, tasks};
use crate::lock;
use crate::pace::Pace;
use crate::small::Actor;
use crate::small::stage::{Again, Hands};

fn one_at_once() -> Value {
    policy(&json!({"max_batch": 2, "max_in_flight": 1}))
}

fn with_results() -> Value {
    policy(&json!({"keep_results": true}))
}

/// A batch is split after its second attempt. Hardly a pause is between them.
fn soon_split() -> Value {
    policy(&json!({"max_attempts": 2, "backoff": {"base": "2ms", "max": "2ms"}}))
}

/// So much ahead that every lease is over.
const LATE: Duration = Duration::from_secs(3_600);

/// So much ahead that no lease is over, and that the lease of who begins now is another one.
const AHEAD: Duration = Duration::from_secs(1);

/// How long a call may take, as the policies say.
const CALL: Duration = Duration::from_secs(10);

/// A worker begins the attempt of this message and takes it back, as if its lane had been paused in between. Time
/// stands still while workers work, so none of them reads the switches a second time.
fn takes_back(message: &str) -> Result<Actor, String> {
    let HandleMessage { batch, attempt, .. } = serde_json::from_str(message).map_err(|error| error.to_string())?;
    let take_back = move |hands: Hands| {
        async move {
            let Ok(batches) = Batches::from_environment(&hands.steps.surroundings) else { return false };
            match batches.begin(batch, attempt, CALL).await {
                Ok(Write::Done(begun)) => batches.take_back(&begun).await.is_ok(),
                Ok(Write::Refused(_)) => true,
                Err(_) => false,
            }
        }
        .boxed()
    };
    Ok(Actor::request("handle", Again::Nobody, take_back))
}

/// A task whose calls all meet a fault that may pass.
fn poison(key: &str) -> TaskRequest {
    let mut task = task(None, key);
    task.content["poison"] = json!(500);
    task
}

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
        about: "a worker handles a batch so slowly that another takes its lease for over; both bring results",
        policy: with_results,
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
        name: "handle-beside-take-back",
        about: "an attempt is taken back, while another worker begins one of the same number",
        policy: plain,
        prepare: |stage| {
            async move {
                let message = grouped(stage, &tasks(&["a", "b"])).await?;
                Ok(vec![takes_back(&message.1)?, Actor::message("HandleQueue", message).ahead(AHEAD)])
            }
            .boxed()
        },
    },
    Case {
        name: "handle-parts-after-cancel",
        about: "of two parts of a batch one fails and waits, and the fan-out of the other's member was cancelled",
        policy: soon_split,
        prepare: |stage| {
            async move {
                let items = open(stage, 1, true, queue()).await?;
                let item = task(Some(TaskId::Item(items[0])), "a");
                let message = grouped(stage, &[item, poison("b")]).await?;
                stage.alone(Actor::message("HandleQueue", message)).await?;
                stage.deliver("HandleQueue").await?;
                stage.alone(cancel(stage)).await?;
                // What happened until now is as long ago as the clocks say, not as long as it took.
                lock(&stage.sim.model).pace = Pace::default();
                Ok(vec![Actor::message("HandleQueue", stage.take("HandleQueue")?)])
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
