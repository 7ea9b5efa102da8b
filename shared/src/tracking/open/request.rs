//! What a fan-out is opened with, and whether it can be.

use serde::{Deserialize, Serialize};

use crate::ids::ItemId;
use crate::limits::{IDLE_LIMITS, ITEMS_PER_ADD_MAX, USER_KEY_BYTES_MAX};
use crate::policy::{Destination, Span};
use crate::producing::Producer;
use crate::store::fanouts::{IdleLimit, Mode, NotifyOn, Then, Tolerance};
use crate::tracking::TrackingError;
use crate::tracking::add::items_out_of_range;

/// What a fan-out is opened with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OpenRequest {
    /// How it is tracked: `exact`, by items, or `estimated`, by counters, which count twice what is counted twice. An estimated
    /// one has no items: `items` is what its counters begin with.
    #[serde(default, skip_serializing_if = "Mode::is_exact")]
    pub mode: Mode,
    /// Items to add at once.
    #[cfg_attr(feature = "openapi", schemars(range(max = ITEMS_PER_ADD_MAX)))]
    #[serde(default, deserialize_with = "crate::whole::u32")]
    pub items: u32,
    /// Whether these are all.
    #[serde(default)]
    pub seal: bool,
    /// The producer's own name for it; comes back with every answer and notice.
    #[cfg_attr(feature = "openapi", schemars(length(max = USER_KEY_BYTES_MAX), extend("x-max-bytes" = USER_KEY_BYTES_MAX)))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_key: Option<String>,
    /// Where its end is to be reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<Destination>,
    /// Which of its ends are reported there, and at which shares of its items its progress is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify_on: Option<NotifyOn>,
    /// How many items may fail: a number, or a share of all items as text such as `5%`, judged once it is sealed. If more fail,
    /// it ends as `failed`, and nothing is begun for it any more. If not given, any number may fail.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::tolerance"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerated_failures: Option<Tolerance>,
    /// For how long nothing may happen to it before it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_limit: Option<IdleLimit>,
    /// An item of another fan-out, which its end acks: as succeeded if it completes, as failed at any other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ItemId>,
    /// A task that is registered when it ends, however it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
    /// A source of its tasks, which is read as soon as it is open. It seals the fan-out when all rows are registered: `items`
    /// and `seal` are not given then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub producer: Option<Producer>,
}

impl OpenRequest {
    /// Checks everything but what other records say.
    pub(super) fn check(&self) -> Result<(), TrackingError> {
        if self.items > ITEMS_PER_ADD_MAX {
            return Err(items_out_of_range("items", self.items, 0));
        }
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
