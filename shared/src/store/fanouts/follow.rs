//! What follows from the end of a fan-out, beside its notice: its parent item is acked, a task is registered.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::record::ENDING;
use super::{Fanout, Fanouts};
use crate::aws::StoreError;
use crate::aws::attributes::time;
use crate::clock::Timestamp;
use crate::content;
use crate::ids::{ItemId, TaskId, derived};
use crate::item_results::{ItemResults, left_out};
#[cfg(feature = "openapi")]
use crate::limits::{CONTENT_DEPTH_MAX, THEN_BYTES_MAX};
use crate::limits::{FOLLOW_PAUSE_MAX, HINT_LOST_AFTER};
use crate::messages::TaskRequest;
use crate::notice::FanoutEnded;

/// The attributes of what follows.
pub(super) const PARENT: &str = "parent_item";
pub(super) const THEN: &str = "then_task";
pub(super) const THEN_DUE: &str = "then_due";
pub(super) const FOLLOWED: &str = "followed";

/// A task that Fanfold registers when a fan-out has ended, however it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Then {
    /// An item of another fan-out, as which the task is registered. By default the task's id follows from the fan-out's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ItemId>,
    /// Its kind. It must have a policy.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::kind_field"))]
    pub kind: String,
    /// What the batch API receives for it: an object, to which Fanfold adds a field `fanout`: the `data` of the notice of the end.
    #[cfg_attr(feature = "openapi", schemars(extend("x-max-bytes" = THEN_BYTES_MAX, "x-max-depth" = CONTENT_DEPTH_MAX)))]
    pub content: Map<String, Value>,
    /// Whether the content also gets a field `results`: what became of each item, in their order. Of a reissue of such a fan-out, what
    /// became of all its items, those that had succeeded before included.
    #[serde(default, skip_serializing_if = "crate::unset::is_default")]
    pub results: bool,
}

/// The field of the task's content that says how the fan-out ended.
pub(crate) const END: &str = "fanout";

/// The field that says what became of each item.
pub(crate) const RESULTS: &str = "results";

/// The field that stands in its place, and says why.
pub(crate) const RESULTS_LEFT_OUT: &str = "results_left_out";

impl Then {
    /// A task of a kind. `content` is an object; anything else counts as an empty one.
    #[must_use]
    pub fn new(kind: &str, content: Value) -> Self {
        let content = if let Value::Object(content) = content { content } else { Map::new() };
        Self { id: None, kind: kind.to_owned(), content, results: false }
    }

    /// Its id, as the task that follows this fan-out.
    #[must_use]
    pub fn task(&self, fanout: uuid::Uuid) -> TaskId {
        self.id.map_or_else(|| derived::then_task(fanout), TaskId::Item)
    }

    /// The task as it is registered after this end. `results`: what became of the items, if it wants to know.
    #[must_use]
    pub fn request(&self, end: &FanoutEnded, results: Option<ItemResults>) -> TaskRequest {
        let with = |results: Option<ItemResults>| {
            let mut content = self.content.clone();
            content.insert(END.to_owned(), serde_json::to_value(end).unwrap_or_default());
            match results {
                Some(ItemResults::All(results)) => drop(content.insert(RESULTS.to_owned(), json!(results))),
                Some(ItemResults::LeftOut(why)) => {
                    drop(content.insert(RESULTS_LEFT_OUT.to_owned(), Value::String(why)))
                }
                None => {}
            }
            Value::Object(content)
        };
        let mut content = with(results);
        // A result may be nested deeper than a task's content.
        if let Err(error) = content::encode(&content)
            && self.results
        {
            content = with(Some(ItemResults::LeftOut(left_out(end.fanout, &format!("with them the content {error}")))));
        }
        TaskRequest { id: Some(self.task(end.fanout)), kind: self.kind.clone(), content }
    }
}

impl Fanout {
    /// Whether it has a parent item or a task that follows.
    #[must_use]
    pub fn has_follow_up(&self) -> bool {
        self.parent.is_some() || self.then.is_some()
    }

    /// Whether the ack of its parent or the task that follows is still due.
    #[must_use]
    pub fn to_follow(&self) -> bool {
        self.ended() && self.has_follow_up() && self.followed.is_none()
    }

    /// When the message of what follows is taken for lost.
    #[must_use]
    pub fn follows_by(&self) -> Timestamp {
        self.then_due.unwrap_or_else(|| self.ended_at.unwrap_or_default().plus(HINT_LOST_AFTER))
    }
}

/// When a message that is sent now is taken for lost. A task that cannot be registered becomes a dead letter each time, so each
/// pause is as long as all before it, up to an hour. `ended`: when the fan-out ended.
fn again(ended: Option<Timestamp>, now: Timestamp) -> Timestamp {
    now.plus(now.since(ended.unwrap_or(now)).clamp(HINT_LOST_AFTER, FOLLOW_PAUSE_MAX))
}

impl Fanouts {
    /// Notes that the message with the task that follows was sent, and when it is taken for lost.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn then_sent(&self, fanout: &Fanout) -> Result<(), StoreError> {
        let change =
            self.table.change("id", fanout.id).set(THEN_DUE, time(again(fanout.ended_at, self.table.world.now())));
        let change = change.when_present("id").when_absent(FOLLOWED);
        change.when_same(THEN_DUE, fanout.then_due.map(time)).send().await.map(|_| ())
    }

    /// Notes that all that follows from its end is done, except the notice, for which sweeps still look at it.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn followed(&self, fanout: &Fanout) -> Result<(), StoreError> {
        let change = self.table.change("id", fanout.id).set(FOLLOWED, time(self.table.world.now())).remove([THEN_DUE]);
        let change = if fanout.to_notify() { change } else { change.remove([ENDING]) };
        // If its notice was revived meanwhile, a sweep goes on looking at it.
        let change = change.when_same("undeliverable", fanout.notice.given_up.map(time));
        change.when_present("id").when_absent(FOLLOWED).send().await.map(|_| ())
    }

    /// Takes a fan-out for which nothing is left to be done out of the index. Two writers that finished at the same time may
    /// each have left that to the other.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn forget(&self, fanout: &Fanout) -> Result<(), StoreError> {
        let change = self.table.change("id", fanout.id).remove([ENDING]).when_present(ENDING);
        let change = change.when_same("notified", fanout.notice.delivered.map(time));
        change.when_same("undeliverable", fanout.notice.given_up.map(time)).send().await.map(|_| ())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::item_results::ItemResult;
    use crate::tracking::ItemState;

    fn end(fanout: Uuid) -> FanoutEnded {
        let end = json!({"fanout": fanout, "user_key": null, "state": "failed", "total": 3, "succeeded": 1, "failed": 2,
            "opened_at": 1, "ended_at": 2});
        serde_json::from_value(end).unwrap()
    }

    #[test]
    fn a_task_has_its_own_id_or_one_that_follows_and_says_how_it_ended() {
        let fanout = Uuid::from_u128(7);
        let then = Then::new("report", json!({"order": 4711}));
        let task = then.request(&end(fanout), None);
        assert_eq!((task.id, task.kind.as_str()), (Some(derived::then_task(fanout)), "report"));
        assert_eq!((&task.content["order"], &task.content["fanout"]["failed"]), (&json!(4711), &json!(2)));
        let item = ItemId { fanout, group: fanout, index: 1 };
        let task = Then { id: Some(item), ..then }.request(&end(fanout), None);
        assert_eq!(task.id, Some(TaskId::Item(item)));
    }

    #[test]
    fn it_is_told_what_became_of_the_items_or_why_not() {
        let fanout = Uuid::from_u128(7);
        let then = Then { results: true, ..Then::new("report", json!({"order": 4711})) };
        let result = |result: Value| ItemResult {
            id: ItemId { fanout, group: fanout, index: 0 },
            kind: Some("orders".to_owned()),
            outcome: ItemState::Succeeded,
            result: Some(result),
            result_left_out: None,
            error: None,
            code: None,
        };
        let content = |results| then.request(&end(fanout), Some(results)).content;
        let all = content(ItemResults::All(vec![result(json!({"sum": 5}))]));
        assert_eq!((&all["results"][0]["result"]["sum"], &all["results"][0]["kind"]), (&json!(5), &json!("orders")));
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        let deep = content(ItemResults::All(vec![result(deep)]));
        let why = deep["results_left_out"].as_str().unwrap();
        assert!(deep.get("results").is_none() && why.contains("nested more than 32 deep"), "{why}");
        assert!(why.contains(&format!("GET /fanouts/{fanout}/results")), "{why}");
    }

    #[test]
    fn pauses_double_up_to_an_hour() {
        let ended = Timestamp(1_000_000);
        let after = |seconds| {
            let now = ended.plus(Duration::from_secs(seconds));
            again(Some(ended), now).since(now).as_secs()
        };
        assert_eq!([0, 60, 240, 480, 3_599, 90_000].map(after), [120, 120, 240, 480, 3_599, 3_600]);
    }
}
