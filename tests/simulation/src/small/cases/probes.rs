//! A kind that stands still, and two batches that may probe it at once.

use std::time::Duration;

use fanfold::messages::TaskRequest;
use futures::FutureExt;
use serde_json::{Value, json};

use super::{Case, apart, formed, policy};
use crate::small::{Actor, Stage};

/// How long ago the kind was stopped: a probe is due.
const AGO: Duration = Duration::from_secs(3_600);

/// So much ahead that the other probe's lease is over.
const LATE: Duration = Duration::from_secs(3_600);

/// Notices tell users of each change.
fn noticed() -> Value {
    policy(&json!({"notify": {"queue": "notices"}}))
}

/// A task of a lane of its own, whose batch's first call is refused as everybody's is.
fn refused(key: &str) -> TaskRequest {
    let mut task = apart(key);
    task.content["refused"] = json!(true);
    task
}

/// Forms a batch of one task. Returns the message to handle it.
async fn batch_of(stage: &Stage, task: TaskRequest) -> Result<(String, String), String> {
    let key = task.content["k"].as_str().unwrap_or_default().to_owned();
    formed(stage, &key, &[task]).await
}

/// Three batches of other lanes are refused, which stops the kind. Returns the messages to handle two more.
async fn stopped(stage: &Stage, two: [TaskRequest; 2]) -> Result<[(String, String); 2], String> {
    stage.long_ago(AGO);
    let [one, other] = two;
    let two = [batch_of(stage, one).await?, batch_of(stage, other).await?];
    let mut others = Vec::new();
    for key in ["c", "d", "e"] {
        others.push(batch_of(stage, refused(key)).await?);
    }
    for message in others {
        stage.alone(Actor::message("HandleQueue", message)).await?;
    }
    stage.long_ago(Duration::ZERO);
    Ok(two)
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "probe-beside-probe",
        about: "two batches of a kind that stands still come when a probe is due; one would be refused again",
        policy: noticed,
        prepare: |stage| {
            async move {
                let messages = stopped(stage, [refused("a"), apart("b")]).await?;
                Ok(messages.map(|message| Actor::message("HandleQueue", message)).into())
            }
            .boxed()
        },
    },
    Case {
        name: "probe-slow-beside-probe",
        about: "a probe is answered so late that another worker takes its lease for over and probes, too",
        policy: noticed,
        prepare: |stage| {
            async move {
                let [slow, next] = stopped(stage, [refused("a"), refused("b")]).await?;
                Ok(vec![Actor::message("HandleQueue", slow), Actor::message("HandleQueue", next).ahead(LATE)])
            }
            .boxed()
        },
    },
];
