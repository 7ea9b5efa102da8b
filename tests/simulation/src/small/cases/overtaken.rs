//! What overtakes a worker: the end of a fan-out while its progress is reported, and a pause while a sweep takes the
//! switch away that an earlier one has left.

use std::time::Duration;

use fanfold::control::Scope;
use fanfold::ids::ItemId;
use fanfold::store::fanouts::{NotifyOn, ProgressPercentage};
use fanfold::tracking::OpenRequest;
use fanfold_sweep::SweepRequest;
use futures::FutureExt;

use super::{Case, KIND, ack, fanout, open_as, plain, queue};
use crate::lock;
use crate::small::stage::{Again, Hands};
use crate::small::{Actor, Stage};

/// So long ago it was prepared: a notice is due, and what a resumed scope has left is a sweep's to take away.
const AGO: Duration = Duration::from_secs(60);

/// A sealed small fan-out of two items. Its user wants to know when half of them are done.
async fn told_of_half(stage: &Stage) -> Result<Vec<ItemId>, String> {
    stage.long_ago(AGO);
    let progress = ProgressPercentage::new(5_000).into_iter().collect();
    let on = NotifyOn { progress, ..NotifyOn::default() };
    let notify_on = Some(on.clone());
    let items =
        open_as(stage, OpenRequest { items: 2, seal: true, notify: queue(), notify_on, ..OpenRequest::default() })
            .await?;
    if let Some(model) = lock(&stage.sim.model).fanouts.get_mut(&fanout()) {
        model.notify_on = on;
    }
    Ok(items)
}

/// All lanes of the kind.
fn scope() -> Scope {
    Scope::Kind(KIND.to_owned())
}

/// An operator has paused the kind, and resumed it.
async fn resumed(stage: &Stage) -> Result<(), String> {
    stage.long_ago(AGO);
    let resume = |hands: Hands| {
        async move {
            let control = &hands.steps.control;
            control.pause(&scope()).await.is_ok() && control.resume(&scope()).await.is_ok()
        }
        .boxed()
    };
    stage.alone(Actor::request("api", Again::Nobody, resume)).await
}

/// An operator pauses the kind, and resumes it when everything rests.
fn pause_and_resume() -> Actor {
    Actor::request("api", Again::User, |hands| {
        async move {
            let control = &hands.steps.control;
            if hands.sim.gate.as_ref().is_some_and(|gate| gate.closed()) {
                // What comes next is for later.
                let _ = control.pause(&scope()).await;
                return false;
            }
            control.resume(&scope()).await.is_ok()
        }
        .boxed()
    })
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "notify-beside-last-ack",
        about: "the last item of a fan-out is acked while it is reported that half of its items are done",
        policy: plain,
        prepare: |stage| {
            async move {
                let items = told_of_half(stage).await?;
                stage.alone(ack(stage, "first", &items[..1])).await?;
                let message = stage.take("NotifyQueue")?;
                Ok(vec![Actor::message("NotifyQueue", message), ack(stage, "last", &items[1..])])
            }
            .boxed()
        },
    },
    Case {
        name: "pause-beside-sweep",
        about: "a kind is paused again while a sweep takes the switch away that its last pause has left",
        policy: plain,
        prepare: |stage| {
            async move {
                resumed(stage).await?;
                Ok(vec![Actor::sweep(SweepRequest::default()), pause_and_resume()])
            }
            .boxed()
        },
    },
];
