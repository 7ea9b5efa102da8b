//! Counts of an estimated fan-out beside each other, and beside what ends it.

use std::time::Duration;

use fanfold::policy::{Destination, NoticesQueue};
use fanfold::store::fanouts::{Mode, Tolerance};
use fanfold::tracking::{OpenRequest, TrackingError};
use fanfold_sweep::SweepRequest;
use futures::FutureExt;
use serde_json::json;

use super::{Case, fanout, plain};
use crate::estimated::{EstimatedModel, check, plus, request};
use crate::lock;
use crate::small::stage::Again;
use crate::small::{Actor, Stage};

/// Opens the fan-out with so many.
async fn open(stage: &Stage, items: u32, seal: bool) -> Result<(), String> {
    open_with(stage, items, seal, None).await
}

/// The same with a tolerance.
async fn open_with(stage: &Stage, items: u32, seal: bool, tolerated: Option<Tolerance>) -> Result<(), String> {
    let notify = Some(Destination::Queue(NoticesQueue::Notices));
    let user_key = Some("fanout".to_owned());
    let asked = OpenRequest {
        mode: Mode::Estimated,
        items,
        seal,
        user_key,
        notify,
        tolerated_failures: tolerated,
        ..OpenRequest::default()
    };
    let open = move |hands: crate::small::stage::Hands| {
        let asked = asked.clone();
        async move { hands.steps.tracking.open(asked, Some("fanout")).await.is_ok() }.boxed()
    };
    let counted = [u64::from(items), 0, 0];
    let model = EstimatedModel {
        user_key: "fanout".to_owned(),
        notify: true,
        opened: true,
        sealing: seal,
        tolerated,
        most: counted,
        least: counted,
        ..EstimatedModel::default()
    };
    lock(&stage.sim.model).estimated.insert(fanout(), model);
    stage.alone(Actor::request("api", Again::Nobody, open)).await
}

fn change(stage: &Stage, change: impl FnOnce(&mut EstimatedModel)) {
    lock(&stage.sim.model).estimated.get_mut(&fanout()).map(change);
}

/// A user counts, once.
fn count(stage: &Stage, counts: [u32; 3]) -> Actor {
    change(stage, |model| model.most = plus(model.most, counts));
    Actor::request("ack http", Again::Nobody, move |hands| {
        async move {
            let answer = hands.steps.all.ack.count([&request(fanout(), counts)]).await.remove(&fanout());
            let mut model = lock(&hands.sim.model);
            let Some(asked) = model.estimated.get_mut(&fanout()) else { return false };
            match answer {
                Some(Ok(fanout)) if check::has_counted(counts, &fanout) => asked.least = plus(asked.least, counts),
                Some(Err(TrackingError::CountedOut { .. })) if check::may_be_over(asked) => {}
                Some(Ok(_) | Err(TrackingError::Store(_))) => {}
                other => {
                    let other = format!("{counts:?} was answered with {other:?}");
                    drop(model);
                    hands.sim.violate(other);
                }
            }
            true
        }
        .boxed()
    })
}

/// A message that counts: somebody has sent it. It may come again.
fn message(stage: &Stage, id: &str, counts: [u32; 3]) -> Actor {
    change(stage, |model| {
        model.most = plus(model.most, counts);
        model.by_queue = true;
    });
    Actor::message("AckQueue", (id.to_owned(), json!(request(fanout(), counts)).to_string()))
}

fn seal(stage: &Stage) -> Actor {
    change(stage, |model| model.sealing = true);
    let seal =
        |hands: crate::small::stage::Hands| async move { hands.steps.tracking.seal(fanout()).await.is_ok() }.boxed();
    Actor::request("api", Again::User, seal)
}

fn cancel(stage: &Stage) -> Actor {
    change(stage, |model| model.cancelling = true);
    Actor::request("api", Again::User, |hands| {
        async move { matches!(hands.steps.tracking.cancel(fanout()).await, Ok(_) | Err(TrackingError::Ended { .. })) }
            .boxed()
    })
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "count-beside-count",
        about: "the last two of an estimated fan-out are counted as done by two requests",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 2, true).await?;
                Ok(vec![count(stage, [0, 1, 0]), count(stage, [0, 0, 1])])
            }
            .boxed()
        },
    },
    Case {
        name: "count-beside-count-message",
        about: "the same by a request and a message, which counts again when it comes again",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 2, true).await?;
                Ok(vec![count(stage, [0, 1, 0]), message(stage, "one", [0, 1, 0])])
            }
            .boxed()
        },
    },
    Case {
        name: "count-beside-add",
        about: "the last one is counted as done while somebody adds two and another one finds one",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 1, true).await?;
                Ok(vec![count(stage, [0, 1, 0]), count(stage, [2, 0, 0]), count(stage, [1, 1, 0])])
            }
            .boxed()
        },
    },
    Case {
        name: "count-failure-beside-add",
        about: "the failure that is one too many is counted while so many are added that it is tolerated",
        policy: plain,
        prepare: |stage| {
            async move {
                // One of two is too many, one of four is not.
                open_with(stage, 2, true, Some(Tolerance::Percentage(2_500))).await?;
                Ok(vec![count(stage, [0, 0, 1]), count(stage, [2, 0, 0])])
            }
            .boxed()
        },
    },
    Case {
        name: "count-beside-seal-and-cancel",
        about: "the last one is counted as done while the fan-out is sealed and cancelled",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 1, false).await?;
                Ok(vec![count(stage, [0, 1, 0]), seal(stage), cancel(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "count-beside-sweep",
        about: "a sweep finishes fan-outs while the last one is counted as done, and somebody adds",
        policy: plain,
        prepare: |stage| {
            async move {
                open(stage, 1, true).await?;
                let sweep = Actor::sweep(SweepRequest::default()).ahead(Duration::from_secs(3_600));
                Ok(vec![count(stage, [0, 1, 0]), count(stage, [1, 0, 0]), sweep])
            }
            .boxed()
        },
    },
];
