//! Register beside register, and beside what looks for the tasks.

use std::time::Duration;

use fanfold::ids::TaskId;
use fanfold::limits::BUNDLE_FILLING_MAX;
use futures::FutureExt;
use serde_json::{Value, json};

use super::{Case, elected, open, plain, policy, registration, single, task, tasks};
use crate::small::{Actor, Stage};

fn keyed() -> Value {
    policy(&json!({"key": "content.k"}))
}

/// The worker that registers a task makes its lane's leader at once, if there is none.
fn hasty() -> Value {
    policy(&json!({"linger": 0}))
}

/// One message of two tasks for two workers.
fn two_tasks_twice(stage: &Stage) -> Vec<Actor> {
    Actor::twice("RegisterQueue", registration(stage, "one", &tasks(&["a", "b"])))
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "register-same-message",
        about: "one message of two tasks is delivered to two workers",
        policy: plain,
        prepare: |stage| async move { Ok(two_tasks_twice(stage)) }.boxed(),
    },
    Case {
        name: "register-same-message-keyed",
        about: "one message of two tasks with keys is delivered to two workers",
        policy: keyed,
        prepare: |stage| async move { Ok(two_tasks_twice(stage)) }.boxed(),
    },
    Case {
        name: "register-same-keys",
        about: "two messages with the same two keys, each under ids of its own",
        policy: keyed,
        prepare: |stage| {
            async move {
                let messages = ["one", "two"].map(|id| registration(stage, id, &tasks(&["a", "b"])));
                Ok(messages.map(|message| Actor::message("RegisterQueue", message)).to_vec())
            }
            .boxed()
        },
    },
    Case {
        name: "register-same-tasks",
        about: "two messages that name the same two tasks, and one more each",
        policy: plain,
        prepare: |stage| {
            async move {
                let mine =
                    |id: &str, ids: [u128; 2]| registration(stage, id, &ids.map(|id| task(Some(single(id)), "a")));
                let messages = [mine("one", [1, 2]), mine("two", [2, 3])];
                Ok(messages.map(|message| Actor::message("RegisterQueue", message)).to_vec())
            }
            .boxed()
        },
    },
    Case {
        name: "register-and-lead",
        about: "two messages bring a task each to one lane, which both want to lead at once",
        policy: hasty,
        prepare: |stage| {
            async move {
                let messages = ["one", "two"].map(|id| registration(stage, id, &tasks(&["a"])));
                Ok(messages.map(|message| Actor::message("RegisterQueue", message)).to_vec())
            }
            .boxed()
        },
    },
    Case {
        name: "register-duplicate-items",
        about: "two items of one fan-out with one key, registered by two messages",
        policy: keyed,
        prepare: |stage| {
            async move {
                let items = open(stage, 2, true, None).await?;
                let message =
                    |(at, item)| registration(stage, &format!("of {at}"), &[task(Some(TaskId::Item(item)), "a")]);
                let messages = items.into_iter().enumerate().map(message);
                Ok(messages.map(|message| Actor::message("RegisterQueue", message)).collect())
            }
            .boxed()
        },
    },
    Case {
        name: "register-beside-group",
        about: "two tasks are registered while a leader looks for those of their lane",
        policy: plain,
        prepare: |stage| {
            async move {
                let leader = elected(stage, &tasks(&["x"])).await?;
                let message = registration(stage, "one", &tasks(&["a", "b"]));
                Ok(vec![Actor::message("RegisterQueue", message), Actor::message("GroupQueue", leader)])
            }
            .boxed()
        },
    },
    Case {
        name: "register-slow-beside-group",
        about: "two tasks are registered so slowly that a leader declares their bundle dead",
        policy: plain,
        prepare: |stage| {
            async move {
                let leader = elected(stage, &tasks(&["x"])).await?;
                let message = registration(stage, "one", &tasks(&["a", "b"]));
                let late = BUNDLE_FILLING_MAX + Duration::from_secs(1);
                Ok(vec![Actor::message("RegisterQueue", message), Actor::message("GroupQueue", leader).ahead(late)])
            }
            .boxed()
        },
    },
];
