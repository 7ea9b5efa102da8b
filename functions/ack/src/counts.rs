//! Counts of estimated fan-outs: `POST /counts`, and messages of the ack queue.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::delivery::{Delivery, Failures};
use fanfold::messages::{CountEntry, CountRequest};
use fanfold::policy::FieldError;
use fanfold::store::fanouts::{Fanout, FanoutState};
use fanfold::tracking::{Counted, Counts, TrackingError, collect_counts};
use fanfold_http::{Code, Json, Problem};
use serde::Serialize;
use uuid::Uuid;

use crate::Ack;

pub(crate) fn router() -> Router<Arc<Ack>> {
    Router::new().route("/counts", routing::post(count))
}

#[cfg(feature = "openapi")]
pub(crate) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("POST", "/counts", "countFanouts", "Counts in estimated fan-outs")
        .says(
            "Every request counts: a request that is repeated counts twice. The response has the new counts of each fan-out, and \
             lists those that were refused. If all were refused, the response is a problem.",
        )
        .body::<CountRequest>()
        .returns::<CountAnswer>("The counts were applied, except those in the fan-outs that `refused` lists.")
        .problem(Code::InvalidCounts)
        .end();
}

/// The result of counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct CountAnswer {
    /// The fan-outs with their new counts.
    pub fanouts: Vec<CountedFanout>,
    /// Those in which nothing was counted.
    pub refused: Vec<RefusedCount>,
}

/// An estimated fan-out after a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct CountedFanout {
    /// Its id.
    pub id: Uuid,
    /// Its state.
    pub state: FanoutState,
    /// Whether it is sealed, and as many were counted as done as were added.
    pub complete: bool,
    /// Whether it has ended: nothing is counted any more.
    pub ended: bool,
    /// The user's own name for it.
    pub user_key: Option<String>,
    /// How many were added.
    pub total: u64,
    /// How many were counted as done. More than `total` if some were counted before they were added, or twice.
    pub done: u64,
    /// Those of them that failed.
    pub failed: u64,
}

/// A fan-out in which nothing was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct RefusedCount {
    /// Its id.
    pub fanout: Uuid,
    /// The problem's name; codes never change. With `unavailable` the count may have been applied.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "codes"))]
    pub code: &'static str,
    /// Why.
    pub problem: String,
}

#[cfg(feature = "openapi")]
fn codes(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let codes = [Code::UnknownFanout, Code::WrongMode, Code::FanoutNotOpen, Code::Unavailable, Code::Internal];
    schemars::json_schema!({"type": "string", "enum": codes.map(Code::name)})
}

impl From<&Fanout> for CountedFanout {
    fn from(fanout: &Fanout) -> Self {
        Self {
            id: fanout.id,
            state: fanout.state,
            complete: fanout.complete(),
            ended: fanout.ended(),
            user_key: fanout.user_key.clone(),
            total: fanout.total,
            done: fanout.done,
            failed: fanout.failed,
        }
    }
}

impl Ack {
    /// Counts what requests ask for: one write per fan-out. Repeating it counts again.
    pub async fn count(&self, requests: impl IntoIterator<Item = &CountRequest>) -> Counted {
        let mut counts = Counts::new();
        requests.into_iter().for_each(|request| collect_counts(&mut counts, request));
        self.tracking.count(&counts).await
    }

    /// Applies the counts of all messages together. A message of which any count was applied is done: if it came again, it
    /// would be counted again.
    pub(crate) async fn deliver_counts(&self, messages: Vec<(Delivery, CountRequest)>) -> Failures {
        let counted = self.count(messages.iter().map(|(_, request)| request)).await;
        let mut failures = Failures::new();
        for (Delivery { message_id, .. }, request) in messages {
            let mut refused = request.counts.iter().filter_map(|entry| refusal(entry, &counted)).peekable();
            if let Some(problem) = refused.peek() {
                tracing::warn!(%message_id, %problem, "some counts were refused");
            }
            if refused.count() == request.counts.len() {
                failures.push(message_id);
            }
        }
        failures
    }
}

/// Why an entry was not counted. Other entries may have added to its fan-out; an entry that only counts items as done is not
/// refused after the end.
fn refusal<'a>(entry: &CountEntry, counted: &'a Counted) -> Option<&'a TrackingError> {
    let error = counted.get(&entry.fanout)?.as_ref().err()?;
    (entry.add > 0 || !matches!(error, TrackingError::CountedOut { .. })).then_some(error)
}

/// If anything was counted, the answer lists what was refused; if nothing was, it is a problem.
async fn count(State(ack): State<Arc<Ack>>, Json(request): Json<CountRequest>) -> Result<Json<CountAnswer>, Problem> {
    request.check().map_err(|error| Problem::fields(Code::InvalidBody, vec![error]))?;
    let mut answer = CountAnswer { fanouts: Vec::new(), refused: Vec::new() };
    let mut faults = Vec::new();
    for (id, counted) in ack.count([&request]).await {
        match counted {
            Ok(fanout) => answer.fanouts.push(CountedFanout::from(&fanout)),
            Err(error) => {
                let problem = Problem::from(error);
                answer.refused.push(RefusedCount::of(id, &problem));
                faults.push(problem);
            }
        }
    }
    if !answer.fanouts.is_empty() {
        return Ok(Json(answer));
    }
    let of_fanfold = faults.into_iter().find(|problem| problem.code().status().is_server_error());
    Err(of_fanfold.unwrap_or_else(|| Problem::fields(Code::InvalidCounts, fields(&request, &answer.refused))))
}

impl RefusedCount {
    fn of(fanout: Uuid, problem: &Problem) -> Self {
        let code = problem.code();
        let problem = match code {
            Code::Unavailable => "the table could not be reached; the count may have been applied".to_owned(),
            _ => problem.detail().to_owned(),
        };
        Self { fanout, code: code.name(), problem }
    }
}

/// One fault per fan-out, at the first entry that names it.
fn fields(request: &CountRequest, refused: &[RefusedCount]) -> Vec<FieldError> {
    let fault = |RefusedCount { fanout, problem, .. }: &RefusedCount| {
        let at = request.counts.iter().position(|entry| entry.fanout == *fanout).unwrap_or_default();
        FieldError { field: format!("counts[{at}].fanout"), problem: problem.clone() }
    };
    refused.iter().map(fault).collect()
}
