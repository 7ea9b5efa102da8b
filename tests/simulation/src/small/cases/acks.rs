//! Ack beside ack and seal; notify beside notify and beside sweep.

use std::time::Duration;

use fanfold::ids::ItemId;
use fanfold::policy::Destination;
use fanfold_sweep::SweepRequest;
use futures::FutureExt;

use super::{Case, ack, add, open, plain, queue, seal};
use crate::small::{Actor, Stage};
use crate::webhooks::RECEIVERS;

/// So long ago that a message is taken for lost.
const AGO: Duration = Duration::from_secs(3_600);

/// A fan-out that is done. Returns the message that asks for the notice of its end.
async fn completed(stage: &Stage, notify: Option<Destination>) -> Result<(String, String), String> {
    let items = open(stage, 1, true, notify).await?;
    stage.alone(ack(stage, "one", &items)).await?;
    stage.take("NotifyQueue")
}

/// An open fan-out of two groups, the second of one item. Returns all items.
async fn two_groups(stage: &Stage, first: u32) -> Result<Vec<ItemId>, String> {
    open(stage, 0, false, queue()).await?;
    add(stage, "first", first).await?;
    add(stage, "second", 1).await
}

/// Two messages, each of which acks one of the items.
fn apart(stage: &Stage, items: &[ItemId]) -> Vec<Actor> {
    items.iter().zip(["one", "two"]).map(|(item, id)| ack(stage, id, &[*item])).collect()
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "ack-beside-ack-small",
        about: "two messages ack the same two items of a small fan-out, which ends with them",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = open(stage, 2, true, queue()).await?;
                Ok(["one", "two"].map(|id| ack(stage, id, &items)).to_vec())
            }
            .boxed()
        },
    },
    Case {
        name: "ack-beside-ack",
        about: "two messages ack the same items of two groups, and the fan-out ends with them",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = two_groups(stage, 2).await?;
                stage.alone(seal(stage)).await?;
                Ok(["one", "two"].map(|id| ack(stage, id, &items)).to_vec())
            }
            .boxed()
        },
    },
    Case {
        name: "ack-apart-small",
        about: "two messages ack an item each of a small fan-out, which ends with the second",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = open(stage, 2, true, queue()).await?;
                Ok(apart(stage, &items))
            }
            .boxed()
        },
    },
    Case {
        name: "ack-apart",
        about: "two messages ack an item each of one group",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 0, false, queue()).await?;
                let items = add(stage, "first", 2).await?;
                stage.alone(seal(stage)).await?;
                Ok(apart(stage, &items))
            }
            .boxed()
        },
    },
    Case {
        name: "last-ack-beside-last-ack",
        about: "two messages ack the last items of two groups",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = two_groups(stage, 1).await?;
                stage.alone(seal(stage)).await?;
                Ok(apart(stage, &items))
            }
            .boxed()
        },
    },
    Case {
        name: "ack-beside-seal",
        about: "the last item is acked while its fan-out is sealed",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 0, false, queue()).await?;
                let items = add(stage, "first", 1).await?;
                Ok(vec![ack(stage, "one", &items), seal(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "ack-beside-ack-and-seal",
        about: "two messages ack the last items of two groups while their fan-out is sealed",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = two_groups(stage, 1).await?;
                Ok([apart(stage, &items), vec![seal(stage)]].concat())
            }
            .boxed()
        },
    },
    Case {
        name: "seal-beside-seal",
        about: "a fan-out whose items are all acked is sealed by two requests",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 0, false, queue()).await?;
                let items = add(stage, "first", 1).await?;
                stage.alone(ack(stage, "one", &items)).await?;
                Ok(vec![seal(stage), seal(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "ack-beside-sweep",
        about: "a sweep finishes fan-outs while the last item of one is acked",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 0, false, queue()).await?;
                let items = add(stage, "first", 1).await?;
                stage.alone(seal(stage)).await?;
                let sweep = Actor::sweep(SweepRequest::default()).ahead(Duration::from_secs(3_600));
                Ok(vec![ack(stage, "one", &items), sweep])
            }
            .boxed()
        },
    },
    Case {
        name: "notify-beside-notify",
        about: "one message that asks for the notice of a fan-out's end is delivered to two workers",
        policy: plain,
        prepare: |stage| {
            async move {
                let message = completed(stage, queue()).await?;
                Ok(Actor::twice("NotifyQueue", message))
            }
            .boxed()
        },
    },
    Case {
        name: "notify-beside-sweep",
        about: "a worker begins to deliver the notice of a fan-out's end, whose message a sweep takes for lost",
        policy: plain,
        prepare: |stage| {
            async move {
                stage.long_ago(AGO);
                let message = completed(stage, queue()).await?;
                Ok(vec![Actor::message("NotifyQueue", message), Actor::sweep(SweepRequest::default())])
            }
            .boxed()
        },
    },
    Case {
        name: "notify-beside-notify-https",
        about: "the same with a receiver over HTTPS",
        policy: plain,
        prepare: |stage| {
            async move {
                let message = completed(stage, Some(Destination::Url(RECEIVERS[0].to_owned()))).await?;
                Ok(Actor::twice("NotifyQueue", message))
            }
            .boxed()
        },
    },
];
