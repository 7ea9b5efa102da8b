//! `/policies/{kind}/dev`: which dev session has the calls of a kind.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::control::{DevLease, DevQueues, DevSession, NotHeld};
use fanfold::limits::{ANSWERS_WITHIN_MIN, DEV_ANSWERS_WITHIN_DEFAULT, DEV_ANSWERS_WITHIN_MAX, NAME_SHOWN_MAX};
use fanfold::policy::{FieldError, Span};
use fanfold::store::policies::DevError;
use fanfold::text::shorten;
use fanfold_http::{Code, Json, Kind, Parameter, Path, Problem, QueryParameter};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/policies/{kind}/dev", routing::get(get).put(put).delete(delete))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/policies/{kind}/dev", "getDevSession", "Returns the dev session of a kind")
        .says("Says whether the stack allows dev sessions, and which has the calls of the kind.")
        .path::<Kind>("kind", "The kind of task.")
        .returns::<DevView>("What is allowed, and the lease that holds.")
        .problem(Code::UnknownPolicy)
        .end();
    describer
        .operation("PUT", "/policies/{kind}/dev", "putDevSession", "Takes or renews the lease on the calls of a kind")
        .says(
            "For a minute, or until the lease is given back, calls of the kind are sent to the session's queue instead \
             of the policy's batch API. Calls begin to be sent there within 7 seconds. Another session can take the \
             lease only when it has ended.",
        )
        .path::<Kind>("kind", "The kind of task.")
        .body::<DevBody>()
        .returns::<DevView>("The lease.")
        .problem(Code::UnknownPolicy)
        .problem(Code::DevSessionsOff)
        .problem(Code::DevSessionHeld)
        .problem(Code::DevSessionEnded)
        .problem(Code::InvalidDevSession)
        .end();
    describer
        .operation("DELETE", "/policies/{kind}/dev", "deleteDevSession", "Gives the lease on the calls of a kind back")
        .says(
            "No call is sent to the session's queue later than 7 seconds after the response. Repeating it does no \
             harm. Without `session` it ends whichever session has the calls.",
        )
        .path::<Kind>("kind", "The kind of task.")
        .query::<OfSession>()
        .returns::<DevView>("What is allowed. No lease holds.")
        .problem(Code::UnknownPolicy)
        .problem(Code::DevSessionHeld)
        .end();
}

/// A dev session that takes or renews the lease on the calls of a kind.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "DevSessionRequest"))]
#[serde(deny_unknown_fields)]
struct DevBody {
    /// The session.
    session: Uuid,
    /// The ARN of its queue: a standard queue, which begins with `queues` of `GET /policies/{kind}/dev`.
    queue: String,
    /// How long after a call was sent its outcomes may come, at most an hour. Then the batch is called again.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "fanfold::openapi::dev_answers_within"))]
    #[serde(default = "answers_within")]
    answers_within: Span,
    /// Whether the session has the lease: one that was given back is not taken again.
    #[serde(default)]
    renew: bool,
}

fn answers_within() -> Span {
    Span(DEV_ANSWERS_WITHIN_DEFAULT)
}

impl DevBody {
    fn checked(self, queues: &DevQueues) -> Result<DevSession, Problem> {
        let Self { session, queue, answers_within, .. } = self;
        let mut errors = Vec::new();
        if !queues.allow(&queue) {
            let queue = shorten(&queue, NAME_SHOWN_MAX);
            let problem = format!("is `{queue}`, the ARN of a standard queue is allowed that begins with `{queues}`");
            errors.push(FieldError { field: "queue".to_owned(), problem });
        }
        if answers_within.0 < ANSWERS_WITHIN_MIN || answers_within.0 > DEV_ANSWERS_WITHIN_MAX {
            let (least, most) = (Span(ANSWERS_WITHIN_MIN), Span(DEV_ANSWERS_WITHIN_MAX));
            let problem = format!("is {answers_within}, {least} to {most} is allowed");
            errors.push(FieldError { field: "answers_within".to_owned(), problem });
        }
        if errors.is_empty() {
            return Ok(DevSession { session, queue, answers_within });
        }
        Err(Problem::fields(Code::InvalidDevSession, errors))
    }
}

/// `?session=…`
struct OfSession;

impl QueryParameter for OfSession {
    const NAME: &str = "session";
    const ABOUT: &str = "The session whose lease is given back. Without it, whichever session has the calls.";
    type Value = Uuid;

    fn read(text: &str) -> Option<Uuid> {
        text.parse().ok()
    }

    fn allowed() -> String {
        "the id of a session, a UUID,".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "format": "uuid"})
    }
}

/// What is allowed, and the lease that holds.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "DevSession"))]
struct DevView {
    /// Whether the stack allows dev sessions: its parameter `DevSessions` is `yes`.
    allowed: bool,
    /// What the ARNs of queues of dev sessions begin with, if they are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<String>,
    /// The lease that holds. Absent: the policy's own batch API is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<LeaseView>,
}

/// The lease of a dev session.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "DevLease"))]
struct LeaseView {
    /// The session.
    session: Uuid,
    /// The ARN of its queue.
    queue: String,
    /// When the lease ends unless it is renewed, in milliseconds since 1970.
    until: u64,
    /// How long after a call was sent its outcomes may come.
    #[cfg_attr(feature = "openapi", schemars(with = "String"))]
    answers_within: Span,
}

impl DevView {
    fn new(api: &Api, lease: Option<DevLease>) -> Self {
        let queues = api.dev_queues.as_ref().map(ToString::to_string);
        // Without permission no call is sent to a session, whatever lease there is.
        let holds = |lease: &DevLease| queues.is_some() && lease.holds(api.world.now());
        let view = |DevLease { session, queue, until, answers_within }| LeaseView {
            session,
            queue,
            until: until.0,
            answers_within,
        };
        let lease = lease.filter(holds).map(view);
        Self { allowed: queues.is_some(), queues, lease }
    }
}

async fn get(State(api): State<Arc<Api>>, Path(Kind(kind)): Path<Kind>) -> Result<Json<DevView>, Problem> {
    let lease = api.policies.change_dev(&kind, |lease, _| Ok(lease.cloned())).await.map_err(problem)?;
    Ok(Json(DevView::new(&api, lease)))
}

async fn put(
    State(api): State<Arc<Api>>,
    Path(Kind(kind)): Path<Kind>,
    Json(body): Json<DevBody>,
) -> Result<Json<DevView>, Problem> {
    let Some(queues) = &api.dev_queues else {
        let detail = "this stack allows no dev sessions; deploy it with the parameter DevSessions=yes";
        return Err(Problem::new(Code::DevSessionsOff, detail));
    };
    let renew = body.renew;
    let session = body.checked(queues)?;
    let take = |lease: Option<&DevLease>, now| match renew {
        true => DevLease::renewed(lease, &session, now).map(Some),
        false => Ok(Some(DevLease::taken(lease, &session, now)?)),
    };
    let lease = api.policies.change_dev(&kind, take).await.map_err(problem)?;
    Ok(Json(DevView::new(&api, lease)))
}

async fn delete(
    State(api): State<Arc<Api>>,
    Path(Kind(kind)): Path<Kind>,
    session: Parameter<OfSession>,
) -> Result<Json<DevView>, Problem> {
    let give = |lease: Option<&DevLease>, now| Ok(DevLease::given_back(lease, session.value, now)?);
    let lease = api.policies.change_dev(&kind, give).await.map_err(problem)?;
    Ok(Json(DevView::new(&api, lease)))
}

fn problem(error: DevError) -> Problem {
    match error {
        DevError::UnknownKind(kind) => Problem::unknown_policy(&kind),
        DevError::NotHeld(NotHeld::Another(_)) => Problem::new(Code::DevSessionHeld, error),
        DevError::NotHeld(NotHeld::Ended(_)) => Problem::new(Code::DevSessionEnded, error),
        DevError::Store(error) => error.into(),
    }
}
