//! `GET /fanouts/{id}/results`: what became of a fan-out's tasks, page by page.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::{Router, routing};
use fanfold::ids::{ItemId, TaskId};
use fanfold::limits::RESULTS_PER_PAGE_MAX;
use fanfold::store::batches::{Batch, ResultReader};
use fanfold_http::{Parameter, Path, Problem, WantsLines};
use uuid::Uuid;

use super::find;
use crate::Api;
use crate::routes::results::{AfterMember, Page};

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts/{id}/results", routing::get(results))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    use crate::routes::results::{ResultView, Results};
    describer
        .operation(
            "GET",
            "/fanouts/{id}/results",
            "listResults",
            "Lists the results of a fan-out's tasks, page by page",
        )
        .says("With `Accept: application/x-ndjson` a result per line; the header `Link` then has the next page.")
        .path::<Uuid>("id", "The fan-out.")
        .query::<AfterMember>()
        .returns::<Results>("A page of the tasks with an outcome.")
        .answered_by_lines::<ResultView>()
        .problem(fanfold_http::Code::UnknownFanout)
        .end();
}

async fn results(
    State(api): State<Arc<Api>>,
    Path(id): Path<Uuid>,
    after: Parameter<AfterMember>,
    lines: WantsLines,
) -> Result<Response, Problem> {
    let fanout = find(&api, id).await?;
    let after = match after.value {
        None => None,
        Some(TaskId::Item(item)) if item.fanout == id => Some(item),
        Some(other) => return Err(AfterMember::stranger(&other, "the fan-out")),
    };
    let (items, more) = api.tracking.items_after(&fanout, after, RESULTS_PER_PAGE_MAX).await?;
    let tasks: Vec<TaskId> = items.iter().copied().map(TaskId::Item).collect();
    let claimed = api.tasks.batches_of(&tasks).await?;
    let ids: Vec<Uuid> = claimed.values().copied().collect();
    let batches: HashMap<Uuid, Batch> =
        api.batches.get_many(&ids).await?.into_iter().map(|batch| (batch.id, batch)).collect();
    let mut readers: HashMap<Uuid, ResultReader<'_>> =
        batches.iter().map(|(id, batch)| (*id, api.batches.results(batch))).collect();
    let mut page = Page::default();
    page.more = more;
    for item in items {
        if page.is_full() {
            page.more = true;
            break;
        }
        add(&mut page, item, &claimed, &mut readers).await?;
    }
    Ok(page.answer(&format!("/fanouts/{id}/results"), lines))
}

/// Adds an item to a page, if its task has an outcome.
async fn add(
    page: &mut Page,
    item: ItemId,
    claimed: &HashMap<TaskId, Uuid>,
    readers: &mut HashMap<Uuid, ResultReader<'_>>,
) -> Result<(), Problem> {
    let id = TaskId::Item(item);
    let reader = claimed.get(&id).and_then(|batch| readers.get_mut(batch));
    let Some((reader, slot)) = reader.and_then(|reader| reader.batch().members.slot(&id).map(|slot| (reader, slot)))
    else {
        page.pass(id);
        return Ok(());
    };
    page.look(id, reader, slot).await
}
