//! Query parameters of the lists of lanes and switches, and of `POST /tasks/cancel`.

use fanfold::control::LaneCursor;
use fanfold::limits::{LOOKED_AT_MAX, PARTITIONS_MAX, TARGET_BYTES_MAX};
use fanfold::policy::{KIND_ALLOWED, is_kind};
use fanfold::store::tasks::PendingCursor;
use fanfold_http::{Choice, QueryParameter, decoded};

/// `?kind=…`
pub(crate) struct OfKind;

impl QueryParameter for OfKind {
    const NAME: &str = "kind";
    const ABOUT: &str = "The kind.";
    type Value = String;

    fn read(text: &str) -> Option<String> {
        decoded(text).filter(|kind| is_kind(kind))
    }

    fn allowed() -> String {
        KIND_ALLOWED.to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        fanfold::openapi::kind().to_value()
    }
}

/// `?target=…`
pub(crate) struct OfTarget;

impl QueryParameter for OfTarget {
    const NAME: &str = "target";
    const ABOUT: &str = "Lanes of this target; needs `kind`.";
    type Value = String;

    fn read(text: &str) -> Option<String> {
        decoded(text).filter(|target| target.len() <= TARGET_BYTES_MAX)
    }

    fn allowed() -> String {
        format!("percent-encoded UTF-8 of at most {TARGET_BYTES_MAX} bytes")
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "maxLength": TARGET_BYTES_MAX, "examples": ["NY/005"]})
    }
}

/// `?partition=…`
pub(crate) struct OfPartition;

impl QueryParameter for OfPartition {
    const NAME: &str = "partition";
    const ABOUT: &str = "The lane of this partition; needs `target`.";
    type Value = u32;

    fn read(text: &str) -> Option<u32> {
        let partition = text.parse().ok().filter(|partition: &u32| partition.to_string() == text)?;
        (partition < PARTITIONS_MAX).then_some(partition)
    }

    fn allowed() -> String {
        format!("0 to {}", PARTITIONS_MAX - 1)
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "integer", "minimum": 0, "maximum": PARTITIONS_MAX - 1})
    }
}

/// `?paused=true`
pub(crate) struct OnlyPaused;

impl Choice for OnlyPaused {
    const NAME: &str = "paused";
    const ALLOWED: &[&str] = &["true"];
    const ABOUT: &str = "Only lanes that are paused.";
}

/// `?limit=…`
pub(crate) struct LaneLimit;

impl QueryParameter for LaneLimit {
    const NAME: &str = "limit";
    const ABOUT: &str = "The number of lanes, or of records that wait, that a page looks at. Default: 100.";
    type Value = usize;

    fn read(text: &str) -> Option<usize> {
        let limit = text.parse().ok().filter(|limit: &usize| limit.to_string() == text)?;
        (1..=LOOKED_AT_MAX).contains(&limit).then_some(limit)
    }

    fn allowed() -> String {
        format!("1 to {LOOKED_AT_MAX}")
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "integer", "minimum": 1, "maximum": LOOKED_AT_MAX})
    }
}

/// `?after=…` of lanes, as in `next`.
pub(crate) struct AfterLane;

impl QueryParameter for AfterLane {
    const NAME: &str = "after";
    const ABOUT: &str = "Where the previous page ended: the value in its `next`.";
    type Value = LaneCursor;

    fn read(text: &str) -> Option<LaneCursor> {
        serde_json::from_str(&decoded(text)?).ok()
    }

    fn allowed() -> String {
        "the text in the `next` of the page before".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "examples": ["{\"busy\":\"parcel:0:NY/005\"}"]})
    }
}

/// `?after=…` of `POST /tasks/cancel`, as in `next`.
pub(crate) struct AfterTask;

impl QueryParameter for AfterTask {
    const NAME: &str = "after";
    const ABOUT: &str = "Where the previous page ended: the value in its `next`.";
    type Value = PendingCursor;

    fn read(text: &str) -> Option<PendingCursor> {
        serde_json::from_str(&decoded(text)?).ok()
    }

    fn allowed() -> String {
        "the text in the `next` of the page before".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "examples": ["{\"lane\":\"parcel:0:NY/005\"}"]})
    }
}

/// `?after=…` of switches: a kind.
pub(super) struct AfterKind;

impl QueryParameter for AfterKind {
    const NAME: &str = "after";
    const ABOUT: &str = "The last kind of the page before.";
    type Value = String;

    fn read(text: &str) -> Option<String> {
        OfKind::read(text)
    }

    fn allowed() -> String {
        OfKind::allowed()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        OfKind::schema()
    }
}
