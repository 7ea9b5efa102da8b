//! `POST /pause`, `/resume` and `/drain`, and `GET /switches`.

mod parameters;
mod scope;

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::control::{ControlError, Scope, Switch, SwitchState, Switched};
use fanfold::limits::SWITCHES_PER_KIND_MAX;
use fanfold::store::policies::SwitchError;
use fanfold_http::{Code, Json, Parameter, Problem};
use serde::Serialize;

use self::parameters::AfterKind;
pub(super) use self::parameters::{AfterLane, AfterTask, LaneLimit, OfKind, OfPartition, OfTarget, OnlyPaused};
pub(super) use self::scope::ScopeBody;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new()
        .route("/pause", routing::post(pause))
        .route("/resume", routing::post(resume))
        .route("/drain", routing::post(drain))
        .route("/switches", routing::get(list))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("POST", "/pause", "pause", "Pauses a lane, a target, a kind, or everything")
        .says(
            "No call of a batch API begins there later than 7 seconds after the response. Calls that had begun run to their end, and \
             their outcomes count. Tasks are registered as usual, and wait. Pausing again changes nothing.",
        )
        .body::<ScopeBody>()
        .returns::<SwitchedView>("The scope's switch, and what pauses it.")
        .problem(Code::InvalidScope)
        .problem(Code::UnknownPolicy)
        .problem(Code::TooManySwitches)
        .end();
    describer
        .operation("POST", "/resume", "resume", "Resumes a scope that is paused, or that drains")
        .says(
            "What waits there is woken within seconds, in a very large scope within two minutes. Only this scope's own switch is \
             changed: a target that was paused on its own stays paused when its kind is resumed.",
        )
        .body::<ScopeBody>()
        .returns::<SwitchedView>("The scope's switch, and what pauses it.")
        .problem(Code::InvalidScope)
        .problem(Code::UnknownPolicy)
        .end();
    describer
        .operation(
            "POST",
            "/drain",
            "drain",
            "Forms the batches of a scope at once, until all that waits now is in a batch",
        )
        .says("Until then leaders do not linger. It ends by itself, or by `POST /resume`. A paused scope is resumed.")
        .body::<ScopeBody>()
        .returns::<SwitchedView>("The scope's switch, and what pauses it.")
        .problem(Code::InvalidScope)
        .problem(Code::UnknownPolicy)
        .problem(Code::TooManySwitches)
        .end();
    describer
        .operation(
            "GET",
            "/switches",
            "listSwitches",
            "Lists the scopes that are paused, that drain, or that were just resumed",
        )
        .query::<AfterKind>()
        .returns::<List>("A page of the switches.")
        .end();
}

/// A scope, as responses name it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Scope"))]
pub(super) struct ScopeView {
    /// True, if it is everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<bool>,
    /// The kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// The target, unless it is the whole kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// The partition, if it is one lane of the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<u32>,
}

impl ScopeView {
    pub(super) fn new(scope: &Scope) -> Self {
        Self {
            all: (*scope == Scope::All).then_some(true),
            kind: scope.kind().map(str::to_owned),
            target: scope.target().map(str::to_owned),
            partition: scope.partition(),
        }
    }
}

/// A switch.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Switch"))]
struct SwitchView {
    #[serde(flatten)]
    scope: ScopeView,
    /// `paused`, `draining`, or `resumed`: what waits in the scope is being woken.
    state: SwitchState,
    /// Since when, in milliseconds since 1970.
    since: u64,
}

impl SwitchView {
    fn new(scope: &Scope, switch: Switch) -> Self {
        Self { scope: ScopeView::new(scope), state: switch.state, since: switch.since.0 }
    }
}

/// The switch of a scope after a request.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Switched"))]
struct SwitchedView {
    /// The scope's own switch. Absent: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    switch: Option<SwitchView>,
    /// The scopes that pause all of it, the widest first. Empty: it is not paused as a whole.
    paused_by: Vec<ScopeView>,
}

impl SwitchedView {
    fn new(scope: &Scope, switched: Switched) -> Self {
        Self {
            switch: switched.switch.map(|switch| SwitchView::new(scope, switch)),
            paused_by: switched.paused_by.iter().map(ScopeView::new).collect(),
        }
    }
}

/// Switches.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Switches"))]
struct List {
    /// First the switch of everything, then those of each kind.
    switches: Vec<SwitchView>,
    /// The path of the next page, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

async fn pause(State(api): State<Arc<Api>>, Json(body): Json<ScopeBody>) -> Result<Json<SwitchedView>, Problem> {
    let scope = body.scope()?;
    let switched = api.control.pause(&scope).await.map_err(problem)?;
    Ok(Json(SwitchedView::new(&scope, switched)))
}

async fn resume(State(api): State<Arc<Api>>, Json(body): Json<ScopeBody>) -> Result<Json<SwitchedView>, Problem> {
    let scope = body.scope()?;
    let switched = api.control.resume(&scope).await.map_err(problem)?;
    Ok(Json(SwitchedView::new(&scope, switched)))
}

async fn drain(State(api): State<Arc<Api>>, Json(body): Json<ScopeBody>) -> Result<Json<SwitchedView>, Problem> {
    let scope = body.scope()?;
    let switched = api.control.drain(&scope).await.map_err(problem)?;
    Ok(Json(SwitchedView::new(&scope, switched)))
}

/// A page has whole kinds, until it has as many switches as one kind may have.
async fn list(State(api): State<Arc<Api>>, after: Parameter<AfterKind>) -> Result<Json<List>, Problem> {
    let board = api.control.switchboard().await?;
    let first = after.value.is_none();
    let mut switches: Vec<SwitchView> =
        board.all.iter().filter(|_| first).map(|(scope, switch)| SwitchView::new(scope, switch)).collect();
    let (mut last, mut next) = (None, None);
    let rest = board
        .kinds
        .iter()
        .filter(|(kind, of)| after.value.as_ref().is_none_or(|after| *kind > after) && of.iter().next().is_some());
    for (kind, of) in rest {
        if switches.len() >= SWITCHES_PER_KIND_MAX {
            next = last;
            break;
        }
        switches.extend(of.iter().map(|(scope, switch)| SwitchView::new(scope, switch)));
        last = Some(kind);
    }
    Ok(Json(List { switches, next: next.map(|kind| format!("/switches?after={kind}")) }))
}

pub(super) fn problem(error: ControlError) -> Problem {
    match error {
        ControlError::Switch(SwitchError::UnknownKind(_)) => Problem::new(Code::UnknownPolicy, error),
        ControlError::Switch(SwitchError::TooMany(_)) => Problem::new(Code::TooManySwitches, error),
        ControlError::Switch(SwitchError::Store(error)) | ControlError::Store(error) => error.into(),
        ControlError::Queue(error) => error.into(),
        ControlError::Tracking(error) => error.into(),
    }
}
