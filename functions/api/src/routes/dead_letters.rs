//! `/dead-letters`: lists the dead-letter queues, and moves their messages back.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::control::{DeadLetterError, DeadLetters, DeadQueue, Redriven};
use fanfold::text::start;
use fanfold_http::{Code, Json, Path, PathSegment, Problem};
use serde::Serialize;

use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route("/dead-letters", routing::get(list))
        .route("/dead-letters/{step}/redrive", routing::post(redrive))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/dead-letters", "listDeadLetters", "Returns the number of dead letters of each step")
        .says("SQS estimates the numbers: they may be out of date by a minute.")
        .returns::<DeadLetterList>("The dead-letter queues.")
        .end();
    describer
        .operation(
            "POST",
            "/dead-letters/{step}/redrive",
            "redriveDeadLetters",
            "Moves dead letters back to the queue of their step",
        )
        .says(
            "Moves one page of them: repeat the request while there may be `more`. No message is lost. A message may \
             be delivered twice, which does no harm, except to counts of estimated fan-outs: messages with these \
             stay.",
        )
        .path::<StepName>("step", "The step, as in the list.")
        .returns::<Redriven>("How many were moved.")
        .end();
}

/// A step with a queue, in a path.
struct StepName(&'static str);

impl PathSegment for StepName {
    #[cfg(feature = "openapi")]
    fn schema() -> schemars::Schema {
        schemars::json_schema!({"type": "string", "enum": DeadLetters::STEPS})
    }

    fn parse(text: &str) -> Result<Self, String> {
        let step = DeadLetters::STEPS.into_iter().find(|step| *step == text);
        let allowed = || format!("`{}` is not a step with a queue ({})", start(text), DeadLetters::STEPS.join(", "));
        step.map(Self).ok_or_else(allowed)
    }
}

/// The dead-letter queues.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "DeadLetters"))]
struct DeadLetterList {
    /// The queues, in the order in which work passes them.
    queues: Vec<DeadQueue>,
}

async fn list(State(api): State<Arc<Api>>) -> Result<Json<DeadLetterList>, Problem> {
    Ok(Json(DeadLetterList { queues: api.dead_letters.list().await.map_err(problem)? }))
}

async fn redrive(State(api): State<Arc<Api>>, Path(StepName(step)): Path<StepName>) -> Result<Json<Redriven>, Problem> {
    Ok(Json(api.dead_letters.redrive(step).await.map_err(problem)?))
}

pub(super) fn problem(error: DeadLetterError) -> Problem {
    match error {
        DeadLetterError::UnknownStep(_) => Problem::new(Code::InvalidId, error),
        DeadLetterError::Service { .. } => Problem::unavailable(&error),
    }
}
