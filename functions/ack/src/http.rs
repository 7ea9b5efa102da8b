//! `POST /acks`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use fanfold::ids::ItemId;
use fanfold::messages::AckRequest;
use fanfold::policy::FieldError;
use fanfold::tracking::{Acks, TrackingError, collect};
use fanfold_http::{Code, Json, Problem};
use uuid::Uuid;

use crate::{Ack, AckAnswer, RefusedGroup};

/// The route of this function, without fallbacks: see [`fanfold_http::with_fallbacks`].
pub fn router(ack: Arc<Ack>) -> Router {
    Router::new().route("/acks", post(apply)).with_state(ack)
}

/// If anything was applied, the answer lists what was refused; if nothing was, it is a problem.
async fn apply(State(ack): State<Arc<Ack>>, Json(request): Json<AckRequest>) -> Result<Json<AckAnswer>, Problem> {
    if request.settles.is_some() {
        let problem = "is for Fanfold's own messages, `items`, `failed` and `duplicates` are allowed".to_owned();
        return Err(Problem::fields(Code::InvalidBody, vec![FieldError { field: "settles".to_owned(), problem }]));
    }
    let answer = ack.apply(&request).await?;
    if !answer.refused.is_empty() && ack.applied_nothing(&request, &answer.refused).await? {
        return Err(Problem::fields(Code::InvalidAcks, faults(&request, &answer.refused)));
    }
    Ok(Json(answer))
}

impl Ack {
    /// Whether every item of a request was refused. Applying it again changes nothing and shows which items were
    /// refused. That is needed only if every group refused some, as it may have applied others.
    async fn applied_nothing(&self, request: &AckRequest, refused: &[RefusedGroup]) -> Result<bool, TrackingError> {
        let mut acks = Acks::new();
        collect(&mut acks, request);
        if refused.len() < acks.len() {
            return Ok(false);
        }
        let refused = self.tracking.ack(&acks).await?;
        let concerned =
            |item: &ItemId| refused.get(&(item.fanout, item.group)).is_some_and(|refusal| refusal.concerns(item.index));
        Ok(request.all().all(|(_, _, item)| concerned(item)))
    }
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
