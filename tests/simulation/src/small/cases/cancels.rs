//! Cancel beside what it races with: an ack, an add, the seal, registration, a call. A task that is cancelled beside a leader.

use std::time::Duration;

use fanfold::ids::{ItemId, TaskId};
use fanfold::store::fanouts::FanoutState;
use fanfold::tracking::TrackingError;
use futures::FutureExt;
use tokio::time::Instant;

use super::expires::late_add;
use super::{Case, ack, add, elected, fanout, grouped, open, plain, queue, registration, seal, task};
use crate::lock;
use crate::small::stage::Again;
use crate::small::{Actor, Stage};

/// So long ago that nothing is in progress in a group, as far as the group shows.
const AGO: Duration = Duration::from_secs(3_600);

/// A user cancels the fan-out.
pub(super) fn cancel(stage: &Stage) -> Actor {
    if let Some(model) = lock(&stage.sim.model).fanouts.get_mut(&fanout()) {
        model.cancelling = true;
    }
    Actor::request("api", Again::User, |hands| {
        async move {
            let cancelled = hands.steps.tracking.cancel(fanout()).await;
            if let (Ok(_), Some(model)) = (&cancelled, lock(&hands.sim.model).fanouts.get_mut(&fanout())) {
                model.cancelled_at.get_or_insert_with(Instant::now);
            }
            let ended = |state| matches!(state, FanoutState::Completed | FanoutState::Failed | FanoutState::Expired);
            cancelled.is_ok() || matches!(cancelled, Err(TrackingError::Ended { state, .. }) if ended(state))
        }
        .boxed()
    })
}

/// The message that handles a batch of these items.
async fn called(stage: &Stage, items: &[ItemId]) -> Result<Actor, String> {
    let tasks: Vec<_> = items.iter().map(|item| task(Some(TaskId::Item(*item)), "a")).collect();
    Ok(Actor::message("HandleQueue", grouped(stage, &tasks).await?))
}

/// A user cancels a task.
fn cancel_task(stage: &Stage, id: TaskId) -> Actor {
    lock(&stage.sim.model).control.asked.insert(id);
    Actor::request("api", Again::User, move |hands| {
        async move {
            let Ok(cancelled) = hands.steps.cancelling.cancel(vec![id]).await else { return false };
            lock(&hands.sim.model).control.cancelled.extend(cancelled);
            true
        }
        .boxed()
    })
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "cancel-beside-last-ack-small",
        about: "a small fan-out is cancelled while its last item is acked",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = open(stage, 1, true, queue()).await?;
                Ok(vec![cancel(stage), ack(stage, "one", &items)])
            }
            .boxed()
        },
    },
    Case {
        name: "cancel-beside-ack-small",
        about: "a small fan-out of two items is cancelled while one of them is acked",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = open(stage, 2, true, queue()).await?;
                Ok(vec![cancel(stage), ack(stage, "one", &items[..1])])
            }
            .boxed()
        },
    },
    Case {
        name: "cancel-beside-add",
        about: "a fan-out without items is cancelled while one is added",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 0, false, queue()).await?;
                Ok(vec![cancel(stage), late_add()])
            }
            .boxed()
        },
    },
    Case {
        name: "cancel-beside-last-ack-and-seal",
        about: "a fan-out is cancelled while its last item is acked and it is sealed",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 0, false, queue()).await?;
                let items = add(stage, "first", 1).await?;
                Ok(vec![cancel(stage), ack(stage, "one", &items), seal(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "cancel-beside-cancel",
        about: "a fan-out of two groups is cancelled by two requests",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 0, false, queue()).await?;
                add(stage, "first", 1).await?;
                add(stage, "second", 1).await?;
                Ok(vec![cancel(stage), cancel(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "cancel-beside-register",
        about: "a fan-out is cancelled while a task is registered for its item",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 0, false, queue()).await?;
                let items = add(stage, "first", 1).await?;
                let tasks = [task(Some(TaskId::Item(items[0])), "a")];
                let register = Actor::message("RegisterQueue", registration(stage, "register", &tasks));
                Ok(vec![cancel(stage), register])
            }
            .boxed()
        },
    },
    Case {
        name: "cancel-beside-register-and-handle",
        about: "a small fan-out is cancelled while its only task is registered and the batch API called for it",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = open(stage, 1, true, queue()).await?;
                let message = registration(stage, "register", &[task(Some(TaskId::Item(items[0])), "a")]);
                let register = Actor::message("RegisterQueue", message);
                Ok(vec![cancel(stage), register.and_then("ElectQueue").and_then("GroupQueue").and_then("HandleQueue")])
            }
            .boxed()
        },
    },
    Case {
        name: "cancel-task-beside-group",
        about: "the task of an item is cancelled, which waits on its own, while a leader claims it",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = open(stage, 1, true, queue()).await?;
                let id = TaskId::Item(items[0]);
                let leader = elected(stage, &[task(Some(id), "a")]).await?;
                Ok(vec![cancel_task(stage, id), Actor::message("GroupQueue", leader)])
            }
            .boxed()
        },
    },
    Case {
        name: "cancel-beside-handle",
        about: "a fan-out is cancelled while the batch API is called for its only item, whose group is old",
        policy: plain,
        prepare: |stage| {
            async move {
                stage.long_ago(AGO);
                open(stage, 0, false, queue()).await?;
                let items = add(stage, "first", 1).await?;
                let handle = called(stage, &items).await?;
                Ok(vec![cancel(stage), handle])
            }
            .boxed()
        },
    },
    Case {
        name: "cancel-beside-handle-small",
        about: "the same with a small fan-out, opened just now",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = open(stage, 1, true, queue()).await?;
                let handle = called(stage, &items).await?;
                Ok(vec![cancel(stage), handle])
            }
            .boxed()
        },
    },
];
