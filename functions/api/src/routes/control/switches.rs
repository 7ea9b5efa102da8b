//! `GET /switches`.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::limits::SWITCHES_PER_KIND_MAX;
use fanfold_http::{Json, Parameter, Problem};
use serde::Serialize;

use super::parameters::AfterKind;
use super::view::SwitchView;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/switches", routing::get(list))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
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
