//! `GET /fanouts/{id}/results`: what became of a fan-out's tasks, page by page.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::{Router, routing};
use fanfold::ids::{ItemId, TaskId};
use fanfold::limits::{RESULT_BATCHES_AT_ONCE, RESULTS_PER_PAGE_MAX};
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
    let summary = "Lists the results of a fan-out's tasks, page by page";
    let operation = describer.operation("GET", "/fanouts/{id}/results", "listResults", summary);
    let operation = operation.path::<Uuid>("id", "The fan-out.").problem(fanfold_http::Code::UnknownFanout);
    crate::routes::results::returned_by(operation, "A page of the tasks with an outcome.").end();
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
    let mut page = Page::default();
    let mut rest = items.as_slice();
    while !rest.is_empty() && !page.is_full() {
        let run;
        (run, rest) = rest.split_at(together(rest, &claimed));
        let left = add(&api, &mut page, run, &claimed).await?;
        page.more |= left > 0;
    }
    page.more |= more || !rest.is_empty();
    Ok(page.answer(&format!("/fanouts/{id}/results"), lines))
}

/// How many of the next items are in as few batches as may be in memory at once. At least one.
fn together(items: &[ItemId], claimed: &HashMap<TaskId, Uuid>) -> usize {
    let mut batches: HashSet<Uuid> = HashSet::new();
    let batch = |item: &ItemId| claimed.get(&TaskId::Item(*item));
    let fit = |item: &&ItemId| {
        batches.extend(batch(item));
        batches.len() <= RESULT_BATCHES_AT_ONCE
    };
    items.iter().take_while(fit).count()
}

/// Adds items to a page until it is full, those whose tasks have an outcome. Returns how many are left.
async fn add(api: &Api, page: &mut Page, items: &[ItemId], claimed: &HashMap<TaskId, Uuid>) -> Result<usize, Problem> {
    let ids: HashSet<Uuid> = items.iter().filter_map(|item| claimed.get(&TaskId::Item(*item))).copied().collect();
    let batches = api.batches.get_many(&ids.into_iter().collect::<Vec<_>>()).await?;
    let batches: HashMap<Uuid, Batch> = batches.into_iter().map(|batch| (batch.id, batch)).collect();
    // Where each item is, if it is in a batch.
    let place = |item: &ItemId| {
        let id = TaskId::Item(*item);
        let batch = batches.get(claimed.get(&id)?)?;
        Some((batch.id, batch.members.slot(&id)?))
    };
    let places: Vec<Option<(Uuid, usize)>> = items.iter().map(place).collect();
    let slots = |id: Uuid| places.iter().flatten().filter(move |(batch, _)| *batch == id).map(|(_, slot)| *slot);
    let reader = |(id, batch): (&Uuid, _)| (*id, api.batches.results(batch, slots(*id)));
    let mut readers: HashMap<Uuid, ResultReader<'_>> = batches.iter().map(reader).collect();
    for (at, (item, place)) in items.iter().zip(&places).enumerate() {
        if page.is_full() {
            return Ok(items.len() - at);
        }
        let id = TaskId::Item(*item);
        match place.and_then(|(batch, slot)| Some((readers.get_mut(&batch)?, slot))) {
            Some((reader, slot)) => page.look(id, reader, slot).await?,
            None => page.pass(id),
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_batches_are_in_memory_at_once() {
        let item = |index| ItemId { fanout: Uuid::nil(), group: Uuid::nil(), index };
        let items: Vec<ItemId> = (0..100).map(item).collect();
        let by = |per_batch: u16| -> HashMap<TaskId, Uuid> {
            let batch = |item: &ItemId| Uuid::from_u128((item.index / per_batch).into());
            items.iter().map(|item| (TaskId::Item(*item), batch(item))).collect()
        };
        assert_eq!(together(&items, &by(1)), RESULT_BATCHES_AT_ONCE);
        assert_eq!(together(&items, &by(2)), 2 * RESULT_BATCHES_AT_ONCE);
        assert_eq!(together(&items, &by(100)), 100);
        assert_eq!(together(&items, &HashMap::new()), 100, "without a batch they take no room");
        assert_eq!(together(&[], &by(1)), 0);
    }
}
