//! `POST /acks`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use fanfold::messages::AckRequest;
use fanfold::policy::FieldError;
use fanfold_http::{Code, Json, Problem};
use uuid::Uuid;

use crate::{Ack, AckAnswer, RefusedGroup};

/// The route of this function, without fallbacks: see [`fanfold_http::with_fallbacks`].
pub fn router(ack: Arc<Ack>) -> Router {
    Router::new().route("/acks", post(apply)).with_state(ack)
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
