//! What a fan-out is opened with, and whether it can be.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::ItemId;
#[cfg(feature = "openapi")]
use crate::limits::{CONTENT_BYTES_MAX, CONTENT_DEPTH_MAX};
use crate::limits::{IDLE_LIMITS, ITEMS_PER_ADD_MAX, OPENED_TASKS_BYTES_MAX, TASKS_PER_FANOUT_MAX, USER_KEY_BYTES_MAX};
use crate::messages::TaskRequest;
use crate::policy::{Destination, Span};
use crate::producing::Producer;
use crate::store::fanouts::{IdleLimit, Mode, NotifyOn, OpenedTasks, Then, Tolerance};
use crate::tracking::TrackingError;
use crate::tracking::add::items_out_of_range;

/// A request to open a fan-out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenRequest {
    /// How it is tracked: `exact`, by items, or `estimated`, by counters. An estimated fan-out has no items: `total` begins at `items`.
    #[serde(default, skip_serializing_if = "Mode::is_exact")]
    pub mode: Mode,
    /// How many items it has at first.
    #[cfg_attr(feature = "openapi", schemars(range(max = ITEMS_PER_ADD_MAX)))]
    #[serde(default, deserialize_with = "crate::whole::u32")]
    pub items: u32,
    /// Whether to seal it at once: no more items can be added.
    #[serde(default)]
    pub seal: bool,
    /// Your own name for it, which responses and notices carry.
    #[cfg_attr(feature = "openapi", schemars(length(max = USER_KEY_BYTES_MAX), extend("x-max-bytes" = USER_KEY_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_key: Option<String>,
    /// Where Fanfold reports its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Destination>,
    /// Which ends Fanfold reports there, and at which percentages of its items its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify_on: Option<NotifyOn>,
    /// How many items may fail: a number, or a percentage of all items as text such as `5%`, which is judged once it is sealed. If more fail,
    /// the fan-out is `failed`, and no more calls begin for it. By default any number may fail.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::tolerance"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerated_failures: Option<Tolerance>,
    /// How long it may be without activity before it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_limit: Option<IdleLimit>,
    /// An item of another fan-out. The end of this one acks it: as succeeded if it completes, otherwise as failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ItemId>,
    /// A task that Fanfold registers when it has ended, however it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
    /// Its tasks, each of any kind. The fan-out is opened sealed, with an item per task in their order, and Fanfold registers the tasks.
    /// `items`, `seal` and `producer` are not allowed with it.
    #[cfg_attr(feature = "openapi", schemars(length(min = 1, max = TASKS_PER_FANOUT_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<FanoutTask>>,
    /// A source of its tasks. Fanfold reads it, and seals the fan-out when all rows are registered. `items` and `seal` are not allowed
    /// with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<Producer>,
}

/// A task that a fan-out is opened with. Its id is that of its item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FanoutTask {
    /// Its kind. It must have a policy.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::kind_field"))]
    pub kind: String,
    /// What the batch API receives for it: any JSON, within the limits of size and nesting.
    #[cfg_attr(feature = "openapi", schemars(extend("x-max-bytes" = CONTENT_BYTES_MAX, "x-max-depth" = CONTENT_DEPTH_MAX)))]
    pub content: Value,
}

impl OpenRequest {
    /// Its tasks, as they are registered, but for their ids.
    #[must_use]
    pub fn task_requests(&self) -> Vec<TaskRequest> {
        let request =
            |task: &FanoutTask| TaskRequest { id: None, kind: task.kind.clone(), content: task.content.clone() };
        self.tasks.iter().flatten().map(request).collect()
    }

    /// How many items it has at first.
    #[must_use]
    pub fn opens_with(&self) -> u32 {
        self.tasks.as_ref().map_or(self.items, |tasks| u32::try_from(tasks.len()).unwrap_or(u32::MAX))
    }

    /// Whether it is sealed at once.
    #[must_use]
    pub fn seals(&self) -> bool {
        self.seal || self.tasks.is_some()
    }

    /// Checks its tasks, but for what their policies say.
    fn check_tasks(&self) -> Result<(), TrackingError> {
        let Some(tasks) = &self.tasks else { return Ok(()) };
        let refuse = |field, value: String, allowed: &str| {
            Err(TrackingError::OutOfRange { field, value, allowed: allowed.to_owned() })
        };
        match tasks.len() {
            _ if self.items > 0 => refuse("items", self.items.to_string(), "0 (each of its tasks is an item)"),
            _ if self.mode == Mode::Estimated => refuse("mode", "estimated".to_owned(), "exact (its tasks are items)"),
            _ if self.producer.is_some() => refuse("producer", "given".to_owned(), "no producer beside `tasks`"),
            tasks if !(1..=TASKS_PER_FANOUT_MAX).contains(&tasks) => {
                let allowed = format!("1 to {TASKS_PER_FANOUT_MAX} (`POST /tasks` registers more)");
                refuse("tasks", format!("{tasks} tasks long"), &allowed)
            }
            _ => match OpenedTasks::too_large(&self.task_requests()) {
                Some(bytes) => {
                    let allowed = format!("at most {OPENED_TASKS_BYTES_MAX} (`POST /tasks` registers larger ones)");
                    refuse("tasks", format!("{bytes} bytes long when compressed"), &allowed)
                }
                None => Ok(()),
            },
        }
    }

    /// Checks everything but what other records say.
    ///
    /// # Errors
    /// A field cannot be used.
    pub fn check(&self) -> Result<(), TrackingError> {
        if self.items > ITEMS_PER_ADD_MAX {
            return Err(items_out_of_range("items", self.items, 0));
        }
        self.check_tasks()?;
        if let Some(producer) = &self.producer {
            producer.check()?;
            let estimated = self.mode == Mode::Estimated;
            let given = [
                ("items", self.items.to_string(), "0 (its producer adds them)", self.items > 0),
                ("seal", "true".to_owned(), "false (its producer seals it)", self.seal),
                ("mode", "estimated".to_owned(), "exact (its producer adds items)", estimated),
            ];
            if let Some((field, value, allowed, _)) = given.into_iter().find(|(_, _, _, given)| *given) {
                return Err(TrackingError::OutOfRange { field, value, allowed: allowed.to_owned() });
            }
        }
        let limit = self.idle_limit.unwrap_or_default();
        for (field, limit) in [("idle_limit.open", limit.open), ("idle_limit.sealed", limit.sealed)] {
            let (least, most) = (Span(*IDLE_LIMITS.start()), Span(*IDLE_LIMITS.end()));
            if let Some(limit) = limit.filter(|limit| !IDLE_LIMITS.contains(&limit.0)) {
                let allowed = format!("{least} to {most}");
                return Err(TrackingError::OutOfRange { field, value: limit.to_string(), allowed });
            }
        }
        match self.user_key.as_ref().map(String::len) {
            Some(bytes) if bytes > USER_KEY_BYTES_MAX => Err(TrackingError::OutOfRange {
                field: "user_key",
                value: format!("{bytes} bytes long"),
                allowed: format!("at most {USER_KEY_BYTES_MAX} bytes"),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The digest of a request that opens several fan-outs is stored, and is made of such texts. A version that writes
    /// another text for the same request refuses its repetition. So a new field is left out where it is not given.
    #[test]
    fn its_text_stays_what_it_is() {
        let fields = [
            r#""mode":"estimated","items":2,"seal":true,"user_key":"order 4711""#,
            r#""notify":{"queue":"notices"},"notify_on":{"ends":["succeeded","failed"],"progress":["9.50%","50%"]}"#,
            r#""tolerated_failures":"5%","idle_limit":{"open":"1h","sealed":"1m 30s"}"#,
            r#""parent":"01890000-0000-7000-8000-000000000001:01890000-0000-7000-8000-000000000002:7""#,
            concat!(
                r#""then":{"id":"01890000-0000-7000-8000-000000000001:01890000-0000-7000-8000-000000000002:8","#,
                r#""kind":"report","content":{"depot":"117"},"results":true}"#
            ),
            r#""tasks":[{"kind":"parcel","content":{"depot":"117","order":null,"weight":1.5}}]"#,
            concat!(
                r#""producer":{"source":{"s3":{"bucket":"rows","keys":["b","a"],"format":"csv","kind":"parcel"}},"#,
                r#""partitions":4,"key":"content.order","tolerated_bad_rows":3}"#
            ),
        ];
        let given = format!("{{{}}}", fields.join(","));
        for text in [given.as_str(), r#"{"items":0,"seal":false}"#] {
            let request: OpenRequest = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
        }
    }
}
