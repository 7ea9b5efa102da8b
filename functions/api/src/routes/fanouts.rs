//! `/fanouts`: opened, shown, added to, sealed, cancelled, read from their producers.

mod cancel;
mod groups;
mod items;
mod list;
mod listing;
mod masks;
mod open;
mod opening;
mod producer;
mod reissue;
mod results;
mod seal;
mod show;
mod then;
mod view;
mod wait;

use std::sync::Arc;

use axum::Router;
use fanfold::store::fanouts::Fanout;
use fanfold::tracking::TrackingError;
use fanfold_http::Problem;
use uuid::Uuid;

use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    let routers = [
        open::router(),
        show::router(),
        groups::router(),
        items::router(),
        seal::router(),
        cancel::router(),
        list::router(),
        listing::router(),
        masks::router(),
        producer::router(),
        reissue::router(),
        results::router(),
    ];
    routers.into_iter().fold(Router::new(), Router::merge)
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    open::describe(describer);
    show::describe(describer);
    groups::describe(describer);
    items::describe(describer);
    seal::describe(describer);
    cancel::describe(describer);
    list::describe(describer);
    listing::describe(describer);
    masks::describe(describer);
    producer::describe(describer);
    reissue::describe(describer);
    results::describe(describer);
}

async fn find(api: &Api, id: Uuid) -> Result<Fanout, Problem> {
    Ok(api.tracking.fanouts.get(id).await?.ok_or(TrackingError::UnknownFanout(id))?)
}
