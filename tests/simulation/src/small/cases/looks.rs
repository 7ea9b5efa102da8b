//! A sweep that looks for the first time at an old fan-out, beside what decides its end.

use fanfold::ids::ItemId;
use fanfold::limits::IDLE_SEALED;
use futures::FutureExt;

use super::cancels::cancel;
use super::{Case, ack, add, fanout, open, plain, queue, seal};
use crate::small::stage::Again;
use crate::small::{Actor, Stage};

/// A sweep has found that the fan-out, which is old and sealed, may be idle for some days more: it is watched from then on. What a sweep
/// does before that needs a clock that is days ahead.
fn look() -> Actor {
    let look = |hands: super::Hands| {
        async move {
            let fanouts = &hands.steps.tracking.fanouts;
            let Ok(Some(header)) = fanouts.get(fanout()).await else { return false };
            fanouts.look_again(&header, header.created_at.plus(IDLE_SEALED)).await.is_ok()
        }
        .boxed()
    };
    Actor::request("sweep", Again::Nobody, look)
}

async fn two_groups(stage: &Stage) -> Result<Vec<ItemId>, String> {
    open(stage, 0, false, queue()).await?;
    add(stage, "first", 1).await?;
    let items = add(stage, "second", 1).await?;
    stage.alone(seal(stage)).await?;
    Ok(items)
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "look-beside-last-ack-small",
        about: "a sweep looks at a small fan-out while its last item is acked",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = open(stage, 1, true, queue()).await?;
                Ok(vec![look(), ack(stage, "one", &items)])
            }
            .boxed()
        },
    },
    Case {
        name: "look-beside-last-ack",
        about: "a sweep looks at a fan-out of two groups while their last items are acked",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = two_groups(stage).await?;
                Ok(vec![look(), ack(stage, "one", &items)])
            }
            .boxed()
        },
    },
    Case {
        name: "look-beside-cancel",
        about: "a sweep looks at a fan-out of two groups while it is cancelled",
        policy: plain,
        prepare: |stage| {
            async move {
                two_groups(stage).await?;
                Ok(vec![look(), cancel(stage)])
            }
            .boxed()
        },
    },
];
