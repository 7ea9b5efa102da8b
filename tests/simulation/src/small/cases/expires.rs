//! A fan-out expires beside what keeps it: its last ack, an add, the seal; and beside a cancel.

use std::time::Duration;

use fanfold::ids::{ItemId, expand};
use fanfold::policy::Span;
use fanfold::store::fanouts::IdleLimit;
use fanfold::tracking::{OpenRequest, TrackingError};
use futures::FutureExt;

use super::cancels::cancel;
use super::{Case, ack, add, fanout, open_as, plain, queue, seal};
use crate::lock;
use crate::small::stage::{Again, Hands};
use crate::small::{Actor, Stage};

/// How long ago everything happened.
const AGO: Duration = Duration::from_secs(3_600);

/// An open one is idle for too long by then, and so is a sealed one. When it is sealed now, it has much time again.
const LIMIT: IdleLimit =
    IdleLimit { open: Some(Span(Duration::from_secs(1_200))), sealed: Some(Span(Duration::from_secs(2_400))) };

/// A sweep finds that the fan-out may be idle, and looks.
fn expire() -> Actor {
    let expire = |hands: Hands| {
        async move {
            let tracking = &hands.steps.tracking;
            let Ok(Some(header)) = tracking.fanouts.get(fanout()).await else { return false };
            tracking.expire(header).await.is_ok()
        }
        .boxed()
    };
    Actor::request("sweep", Again::Nobody, expire)
}

/// A user adds an item, unless the fan-out was cut short.
pub(super) fn late_add() -> Actor {
    let add = |hands: Hands| {
        async move {
            match hands.steps.tracking.add(fanout(), 1, Some("late")).await {
                Ok(groups) => {
                    if let Some(model) = lock(&hands.sim.model).fanouts.get_mut(&fanout()) {
                        model.items.extend(expand(fanout(), &groups));
                    }
                    true
                }
                Err(TrackingError::NotOpen { state, .. }) => state.cut_short(),
                Err(_) => false,
            }
        }
        .boxed()
    };
    Actor::request("api", Again::User, add)
}

/// A fan-out that was opened with so many items, and maybe sealed, long ago.
async fn idle(stage: &Stage, items: u32, seal: bool) -> Result<Vec<ItemId>, String> {
    stage.long_ago(AGO);
    let request = OpenRequest { items, seal, notify: queue(), idle_limit: Some(LIMIT), ..OpenRequest::default() };
    let items = open_as(stage, request).await?;
    forget(stage);
    Ok(items)
}

/// The same of two groups with an item each.
async fn two_groups(stage: &Stage) -> Result<Vec<ItemId>, String> {
    idle(stage, 0, false).await?;
    add(stage, "first", 1).await?;
    let items = add(stage, "second", 1).await?;
    forget(stage);
    Ok(items)
}

/// What happened until now is as long ago as the stamps say, not as long as it took.
fn forget(stage: &Stage) {
    if let Some(model) = lock(&stage.sim.model).fanouts.get_mut(&fanout()) {
        model.active_at = None;
    }
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "expire-beside-last-ack-small",
        about: "a small fan-out expires while its last item is acked",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = idle(stage, 1, true).await?;
                Ok(vec![expire(), ack(stage, "one", &items)])
            }
            .boxed()
        },
    },
    Case {
        name: "expire-beside-last-ack",
        about: "a fan-out of two groups expires while their last items are acked",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = two_groups(stage).await?;
                stage.alone(seal(stage)).await?;
                forget(stage);
                Ok(vec![expire(), ack(stage, "one", &items)])
            }
            .boxed()
        },
    },
    Case {
        name: "expire-beside-add",
        about: "an open fan-out expires while an item is added",
        policy: plain,
        prepare: |stage| {
            async move {
                two_groups(stage).await?;
                Ok(vec![expire(), late_add()])
            }
            .boxed()
        },
    },
    Case {
        name: "expire-beside-seal",
        about: "an open fan-out expires while it is sealed, from when on it has another limit",
        policy: plain,
        prepare: |stage| {
            async move {
                two_groups(stage).await?;
                Ok(vec![expire(), seal(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "expire-beside-cancel",
        about: "a fan-out of two groups expires while it is cancelled",
        policy: plain,
        prepare: |stage| {
            async move {
                two_groups(stage).await?;
                Ok(vec![expire(), cancel(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "expire-beside-expire",
        about: "a fan-out of two groups expires by two sweeps at once",
        policy: plain,
        prepare: |stage| {
            async move {
                two_groups(stage).await?;
                Ok(vec![expire(), expire()])
            }
            .boxed()
        },
    },
];
