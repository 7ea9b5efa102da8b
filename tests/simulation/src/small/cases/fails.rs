//! A fan-out that fails early, beside what else decides its end.

use fanfold::ids::ItemId;
use fanfold::store::fanouts::Tolerance;
use fanfold::tracking::OpenRequest;
use futures::FutureExt;

use super::cancels::cancel;
use super::{Case, ack, ack_as, add, open_as, plain, queue, seal};
use crate::small::{Actor, Stage};

/// A sealed small fan-out of two items that tolerates no failure.
async fn small(stage: &Stage) -> Result<Vec<ItemId>, String> {
    let tolerated_failures = Some(Tolerance::Count(0));
    open_as(stage, OpenRequest { items: 2, seal: true, notify: queue(), tolerated_failures, ..OpenRequest::default() })
        .await
}

/// An open fan-out of two groups with an item each, that tolerates so much.
async fn two_groups(stage: &Stage, tolerated: Tolerance) -> Result<Vec<ItemId>, String> {
    let tolerated_failures = Some(tolerated);
    open_as(stage, OpenRequest { notify: queue(), tolerated_failures, ..OpenRequest::default() }).await?;
    add(stage, "first", 1).await?;
    add(stage, "second", 1).await
}

/// A message that acks the first item as failed, and one that acks the second as succeeded.
fn one_fails(stage: &Stage, items: &[ItemId]) -> Vec<Actor> {
    vec![ack_as(stage, "failed", &items[..1], true), ack(stage, "succeeded", &items[1..])]
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "fail-beside-last-ack-small",
        about: "the failure that is one too many for a small fan-out is acked beside its last item",
        policy: plain,
        prepare: |stage| async move { Ok(one_fails(stage, &small(stage).await?)) }.boxed(),
    },
    Case {
        name: "fail-beside-last-ack",
        about: "the failure that is one too many is acked beside the last item, in two groups",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = two_groups(stage, Tolerance::Count(0)).await?;
                stage.alone(seal(stage)).await?;
                Ok(one_fails(stage, &items))
            }
            .boxed()
        },
    },
    Case {
        name: "fail-beside-cancel",
        about: "a fan-out is cancelled while the failure that is one too many is acked",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = two_groups(stage, Tolerance::Count(0)).await?;
                Ok(vec![ack_as(stage, "failed", &items[..1], true), cancel(stage)])
            }
            .boxed()
        },
    },
    Case {
        name: "fail-beside-seal",
        about: "a failure is acked beside the seal, after which its share is judged",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = two_groups(stage, Tolerance::Percentage(0)).await?;
                Ok(vec![ack_as(stage, "failed", &items[..1], true), seal(stage)])
            }
            .boxed()
        },
    },
];
