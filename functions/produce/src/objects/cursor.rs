//! Where a page of objects begins.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Cursor {
    /// With the first object behind this one.
    Behind { after: String },
    /// Within an object.
    Within(Within),
}

/// A place in an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Within {
    /// The object, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// Its version: another one has other rows at other places.
    pub(super) etag: String,
    /// So many bytes are before it.
    pub(super) at: u64,
    /// The number of its line, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
}

impl Cursor {
    /// Behind an object.
    pub(super) fn behind(name: &str) -> Value {
        json!({"after": name})
    }

    pub(super) fn value(&self) -> Value {
        // Texts and numbers can always be written.
        serde_json::to_value(self).unwrap_or_default()
    }
}
