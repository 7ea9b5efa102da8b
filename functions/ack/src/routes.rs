//! `POST /acks`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::messages::AckRequest;
use fanfold::policy::FieldError;
use fanfold::store::fanouts::FanoutState;
use fanfold::tracking::{AckRefusal, Acks, TrackingError, collect};
use fanfold_http::{Code, Json, Problem};
use serde::Serialize;
use uuid::Uuid;

use crate::Ack;

/// The route of this function, without fallbacks: see [`fanfold_http::with_fallbacks`].
pub fn router(ack: Arc<Ack>) -> Router {
    Router::new().route("/acks", routing::post(apply)).with_state(ack)
}

/// Describes the route of this function.
#[cfg(feature = "openapi")]
pub fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("POST", "/acks", "ackItems", "Acks items, which are done")
        .says(
            "An item may be acked more than once. The response has each fan-out as it stands then, and the groups of \
             which acks were refused. If all were refused, the response is a problem.",
        )
        .body::<AckRequest>()
        .returns::<AckAnswer>("The acks were applied, except those that `refused` lists.")
        .problem(Code::InvalidAcks)
        .end();
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct AckAnswer {
    /// The fan-outs it names, as they stand now.
    pub fanouts: Vec<FanoutAnswer>,
    /// Groups of which acks were refused: all, if the group does not exist, else those of items that it does not have.
    pub refused: Vec<RefusedGroup>,
}

/// A fan-out as it stands after an ack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct FanoutAnswer {
    /// Its id.
    pub id: Uuid,
    /// How far it has come.
    pub state: FanoutState,
    /// Whether everything is done.
    pub complete: bool,
    /// The producer's own name for it.
    pub user_key: Option<String>,
}

/// A group whose acks were refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
pub struct RefusedGroup {
    /// The fan-out.
    pub fanout: Uuid,
    /// The item group.
    pub group: Uuid,
    /// Why.
    pub problem: String,
    /// The same, typed.
    #[serde(skip)]
    pub refusal: AckRefusal,
}

impl Ack {
    /// Applies the acks of a request and returns how the fan-outs stand.
    ///
    /// # Errors
    /// The tables cannot be read or written, or a hint not sent. Repeating the request is safe.
    pub async fn apply(&self, request: &AckRequest) -> Result<AckAnswer, TrackingError> {
        let mut acks = Acks::new();
        collect(&mut acks, request);
        let refused = self.tracking.ack(&acks).await?;
        let names: BTreeSet<Uuid> = acks.keys().map(|(fanout, _)| *fanout).collect();
        let mut fanouts = Vec::with_capacity(names.len());
        for id in names {
            if let Some(fanout) = self.tracking.fanouts.get(id).await? {
                let complete = fanout.complete();
                fanouts.push(FanoutAnswer { id, state: fanout.state, complete, user_key: fanout.user_key });
            }
        }
        let refuse = |((fanout, group), refusal): ((Uuid, Uuid), AckRefusal)| RefusedGroup {
            fanout,
            group,
            problem: refusal.to_string(),
            refusal,
        };
        Ok(AckAnswer { fanouts, refused: refused.into_iter().map(refuse).collect() })
    }
}

/// If anything was applied, the answer lists what was refused; if nothing was, it is a problem.
async fn apply(State(ack): State<Arc<Ack>>, Json(request): Json<AckRequest>) -> Result<Json<AckAnswer>, Problem> {
    if request.batch.is_some() {
        let problem = "is for Fanfold's own messages, `items`, `failed` and `duplicates` are allowed".to_owned();
        return Err(Problem::fields(Code::InvalidBody, vec![FieldError { field: "batch".to_owned(), problem }]));
    }
    let answer = ack.apply(&request).await?;
    if !answer.refused.is_empty() && applied_nothing(&request, &answer.refused) {
        return Err(Problem::fields(Code::InvalidAcks, faults(&request, &answer.refused)));
    }
    Ok(Json(answer))
}

/// Whether every item of a request was refused.
fn applied_nothing(request: &AckRequest, refused: &[RefusedGroup]) -> bool {
    let refused: BTreeMap<_, _> = refused.iter().map(|group| ((group.fanout, group.group), &group.refusal)).collect();
    request
        .all()
        .all(|(_, _, item)| refused.get(&(item.fanout, item.group)).is_some_and(|refusal| refusal.concerns(item.index)))
}

/// One fault per refused group, at the first of its items; the problem names fan-out and group.
fn faults(request: &AckRequest, refused: &[RefusedGroup]) -> Vec<FieldError> {
    let mut first: BTreeMap<(Uuid, Uuid), String> = BTreeMap::new();
    for (field, at, item) in request.all() {
        first.entry((item.fanout, item.group)).or_insert_with(|| format!("{field}[{at}]"));
    }
    let fault = |group: &RefusedGroup| FieldError {
        field: first.get(&(group.fanout, group.group)).cloned().unwrap_or_default(),
        problem: group.problem.clone(),
    };
    refused.iter().map(fault).collect()
}
