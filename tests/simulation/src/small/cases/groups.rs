//! Group beside group and beside sweep; elect beside elect and beside sweep.

use std::time::Duration;

use fanfold_sweep::SweepRequest;
use futures::FutureExt;
use serde_json::{Value, json};

use super::{Case, elected, grouped, policy, register, tasks};
use crate::small::Actor;

/// Batches of two, two at once.
fn pairs() -> Value {
    policy(&json!({"max_batch": 2}))
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "elect-beside-elect",
        about: "two requests have stored tasks in one lane, and each wants a leader for them",
        policy: pairs,
        prepare: |stage| {
            async move {
                register(stage, "one", &tasks(&["a", "b"])).await?;
                register(stage, "two", &tasks(&["c"])).await?;
                let messages = [stage.take("ElectQueue")?, stage.take("ElectQueue")?];
                Ok(messages.map(|message| Actor::message("ElectQueue", message)).to_vec())
            }
            .boxed()
        },
    },
    Case {
        name: "elect-beside-group",
        about: "a request has stored tasks and wants a leader while one takes what it finds",
        policy: pairs,
        prepare: |stage| {
            async move {
                let leader = elected(stage, &tasks(&["a", "b"])).await?;
                register(stage, "two", &tasks(&["c"])).await?;
                let hint = stage.take("ElectQueue")?;
                Ok(vec![Actor::message("ElectQueue", hint), Actor::message("GroupQueue", leader)])
            }
            .boxed()
        },
    },
    Case {
        name: "elect-beside-sweep",
        about: "a leader is elected in a lane that a sweep has found idle",
        policy: pairs,
        prepare: |stage| {
            async move {
                let message = grouped(stage, &tasks(&["a"])).await?;
                stage.alone(Actor::message("HandleQueue", message)).await?;
                register(stage, "two", &tasks(&["b"])).await?;
                let hint = stage.take("ElectQueue")?;
                Ok(vec![Actor::message("ElectQueue", hint), Actor::sweep(SweepRequest::default())])
            }
            .boxed()
        },
    },
    Case {
        name: "group-beside-group",
        about: "two workers act for one leader, and its bundle fills more than a batch",
        policy: pairs,
        prepare: |stage| {
            async move {
                let leader = elected(stage, &tasks(&["a", "b", "c"])).await?;
                Ok(Actor::twice("GroupQueue", leader))
            }
            .boxed()
        },
    },
    Case {
        name: "group-beside-group-alone",
        about: "two workers act for one leader over tasks that wait on their own",
        policy: pairs,
        prepare: |stage| {
            async move {
                register(stage, "one", &tasks(&["a"])).await?;
                register(stage, "two", &tasks(&["b"])).await?;
                let leader = elected(stage, &tasks(&["c"])).await?;
                Ok(Actor::twice("GroupQueue", leader))
            }
            .boxed()
        },
    },
    Case {
        name: "group-two-leaders",
        about: "a worker acts for a leader while another one has done so and goes on for the next leader, of the same bundle",
        policy: pairs,
        prepare: |stage| {
            async move {
                let leader = elected(stage, &tasks(&["a", "b", "c", "d", "e"])).await?;
                Ok(vec![
                    Actor::message("GroupQueue", leader.clone()),
                    Actor::message("GroupQueue", leader).and_then("GroupQueue"),
                ])
            }
            .boxed()
        },
    },
    Case {
        name: "group-beside-sweep",
        about: "a sweep takes a leader for silent that works",
        policy: pairs,
        prepare: |stage| {
            async move {
                let leader = elected(stage, &tasks(&["a", "b", "c"])).await?;
                let sweep = Actor::sweep(SweepRequest::default()).ahead(Duration::from_secs(3_600));
                Ok(vec![Actor::message("GroupQueue", leader), sweep])
            }
            .boxed()
        },
    },
];
