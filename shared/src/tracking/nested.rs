//! Checks of a new fan-out's parent item, and of the task that follows its end.

use serde_json::Value;

use super::open::{NewFanout, OpenRequest};
use super::{Tracking, TrackingError};
use crate::content;
use crate::ids::ItemId;
use crate::limits::{THEN_BYTES_MAX, THEN_RESULTS_MAX};
use crate::store::fanouts::{END, Mode, RESULTS, RESULTS_LEFT_OUT, Then};

impl Tracking {
    /// Whether a fan-out was opened before, under the same idempotency key.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn opened_before(&self, new: NewFanout) -> Result<bool, TrackingError> {
        Ok(new.keyed && self.fanouts.get(new.id).await?.is_some())
    }

    /// Checks that the items exist that the end acks, or registers a task for. The new fan-out's own items do not exist
    /// yet, so it cannot be its own parent.
    pub(super) async fn check_follow(&self, request: &OpenRequest) -> Result<(), TrackingError> {
        if let Some(then) = &request.then {
            check_then(then, request.parent)?;
            check_results(then, request)?;
        }
        let named = named(request);
        if named.is_empty() {
            return Ok(());
        }
        let groups = self.groups_with(&items(&named)).await?;
        let refused = named.iter().find_map(|(field, item)| Some((*field, item, groups.refusal(item)?)));
        if let Some((field, item, refusal)) = refused {
            return Err(TrackingError::Follow { field, problem: refusal.of_field(item) });
        }
        Ok(())
    }

    /// Marks the groups of the items that a request names, before the header of the new fan-out is written. If that is
    /// there, this was done, or the key is refused.
    pub(super) async fn mark_parents(&self, request: &OpenRequest, new: NewFanout) -> Result<(), TrackingError> {
        let mut items = items(&named(request));
        if items.is_empty() {
            return Ok(());
        }
        let groups = self.groups_with(&items).await?;
        items.retain(|item| groups.is_to_be_marked(item));
        if items.is_empty() || self.opened_before(new).await? {
            return Ok(());
        }
        for item in &items {
            self.mark_parent(item).await?;
        }
        Ok(())
    }
}

/// The items that the end acks, or registers a task for, by the fields that name them.
fn named(request: &OpenRequest) -> Vec<(&'static str, ItemId)> {
    let then = request.then.as_ref().and_then(|then| then.id);
    let named = [("parent", request.parent), ("then.id", then)];
    named.into_iter().filter_map(|(field, item)| Some((field, item?))).collect()
}

fn items(named: &[(&'static str, ItemId)]) -> Vec<ItemId> {
    named.iter().map(|(_, item)| *item).collect()
}

/// Checks the task without reading records.
fn check_then(then: &Then, parent: Option<ItemId>) -> Result<(), TrackingError> {
    let refuse = |field, problem| Err(TrackingError::Follow { field, problem });
    if let Some(item) = then.id.filter(|item| Some(*item) == parent) {
        return refuse(
            "then.id",
            format!("is `{item}`, as `parent`, which the end acks; another item is allowed, or none"),
        );
    }
    if then.content.contains_key(END) {
        return refuse(
            "then.content",
            format!("has a field `{END}`, which the end is put in; any other field is allowed"),
        );
    }
    match content::encode(&Value::Object(then.content.clone())) {
        Ok(text) if text.len() > THEN_BYTES_MAX => {
            refuse("then.content", format!("has {} bytes as JSON, at most {THEN_BYTES_MAX} are allowed", text.len()))
        }
        Ok(_) => Ok(()),
        Err(error) => refuse("then.content", error.to_string()),
    }
}

/// Checks whether the task can get what became of the items, as far as their number is known.
fn check_results(then: &Then, request: &OpenRequest) -> Result<(), TrackingError> {
    let refuse = |field, problem| Err(TrackingError::Follow { field, problem });
    match request.opens_with() {
        _ if !then.results => Ok(()),
        _ if request.mode == Mode::Estimated => {
            refuse("then.results", "is true, but an estimated fan-out has no items; false is allowed".to_owned())
        }
        items if items as usize > THEN_RESULTS_MAX => refuse(
            "then.results",
            format!(
                "is true, but the fan-out has {items} items, at most {THEN_RESULTS_MAX} are allowed with it: have the task read \
                 `GET /fanouts/{{id}}/results`"
            ),
        ),
        _ => match [RESULTS, RESULTS_LEFT_OUT].into_iter().find(|field| then.content.contains_key(*field)) {
            Some(field) => refuse(
                "then.content",
                format!("has a field `{field}`, which the results are put in; any other field is allowed"),
            ),
            None => Ok(()),
        },
    }
}
