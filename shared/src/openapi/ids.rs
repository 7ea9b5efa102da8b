//! Schemas of ids, and of items named by their group.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{KIND_CHARACTERS, below};
use crate::ids::{GroupId, ItemId, TaskId};
use crate::lane::Lane;
use crate::limits::{GROUP_ITEMS_MAX, MASK_BYTES_MAX};
use crate::messages::{AckEntry, GroupMask};

/// A UUID in its canonical form.
const UUID: &str = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

/// An id that a request names; in answers ids are plain UUIDs.
#[must_use]
pub fn uuid() -> Schema {
    json_schema!({"type": "string", "format": "uuid", "pattern": format!("^{UUID}$")})
}

/// A fan-out that a body names.
pub(crate) fn fanout_id(_: &mut SchemaGenerator) -> Schema {
    uuid()
}

/// A task's id in a path.
#[must_use]
pub fn task_id() -> Schema {
    json_schema!({"type": "string", "pattern": format!("^{UUID}(:{UUID}:({}))?$", below(GROUP_ITEMS_MAX))})
}

/// Where a page of a fan-out's items ends, in a query.
#[must_use]
pub fn item_cursor() -> Schema {
    json_schema!({"type": "string", "pattern": format!("^{UUID}:[0-9]{{1,4}}$")})
}

/// Where a page of the records of batches ends, in a query.
#[must_use]
pub fn record_cursor() -> Schema {
    json_schema!({"type": "string", "pattern": format!("^{UUID}(:[0-9]{{1,10}}:[0-9]{{1,5}})?$")})
}

impl JsonSchema for ItemId {
    fn schema_name() -> Cow<'static, str> {
        "ItemId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An item of a fan-out: `<fan-out>:<group>:<index>`.",
            "type": "string",
            "pattern": format!("^{UUID}:{UUID}:({})$", below(GROUP_ITEMS_MAX)),
        })
    }
}

/// A bitfield of a group's items.
pub(crate) fn mask(_: &mut SchemaGenerator) -> Schema {
    let most = MASK_BYTES_MAX.div_ceil(3) * 4;
    let pattern = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$";
    json_schema!({
        "type": "string", "contentEncoding": "base64", "maxLength": most, "pattern": pattern,
        "x-max-bytes-decoded": MASK_BYTES_MAX,
    })
}

/// Indices of a group's items, and ranges of them.
#[must_use]
pub fn indices(_: &mut SchemaGenerator) -> Schema {
    let number = below(GROUP_ITEMS_MAX);
    json_schema!({"type": "array", "items": {"type": "string", "pattern": format!("^({number})(-({number}))?$")}})
}

impl JsonSchema for GroupId {
    fn schema_name() -> Cow<'static, str> {
        "GroupId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An item group: `<fan-out>:<group>`.", "type": "string", "pattern": format!("^{UUID}:{UUID}$"),
        })
    }
}

impl JsonSchema for AckEntry {
    fn schema_name() -> Cow<'static, str> {
        "AckEntry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let number = below(GROUP_ITEMS_MAX);
        let range = json_schema!({
            "title": "ItemRange",
            "description": "A range of items, both ends included: `<fan-out>:<group>:<first>-<last>`, where first is at most last.",
            "type": "string",
            "pattern": format!("^{UUID}:{UUID}:({number})-({number})$"),
        });
        json_schema!({
            "description": "An item, a range of items, or items of a group by a bitfield.",
            "anyOf": [generator.subschema_for::<ItemId>(), range, generator.subschema_for::<GroupMask>()],
        })
    }
}

impl JsonSchema for TaskId {
    fn schema_name() -> Cow<'static, str> {
        "TaskId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = task_id();
        let description = "A task's id: the item's id for an item of a fan-out, otherwise a UUID.";
        schema.insert("description".to_owned(), description.into());
        schema
    }
}

impl JsonSchema for Lane {
    fn schema_name() -> Cow<'static, str> {
        "Lane".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A lane, which is a partition of a target of a kind: `<kind>:<partition>:<target>`.",
            "type": "string",
            // A target may hold line breaks, which a dot would not match.
            "pattern": format!("^{KIND_CHARACTERS}:[0-9]+:[\\s\\S]*$"),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use regex::Regex;
    use uuid::Uuid;

    use super::*;
    use crate::openapi::testing::pattern;
    use crate::store::batches::RecordCursor;
    use crate::tracking::ItemCursor;

    #[test]
    fn ids_are_matched_as_they_are_read() {
        let regex = Regex::new(&pattern(&task_id())).unwrap();
        let id = Uuid::from_u128(0x0189_abcd_0000_7000_8000_0000_0000_0001).to_string();
        for (text, right) in [
            (id.clone(), true),
            (id.to_uppercase(), false),
            (id.replace('-', ""), false),
            (format!("{id}:{id}:7167"), true),
            (format!("{id}:{id}:7168"), false),
            (format!("{id}:{id}:07"), false),
            (format!("{id}:{id}"), false),
        ] {
            assert_eq!(regex.is_match(&text), right, "{text}");
            assert_eq!(text.parse::<TaskId>().is_ok(), right, "{text}");
        }
    }
    #[test]
    fn cursors_are_matched_as_they_are_read() {
        let id = Uuid::from_u128(7).to_string();
        let (items, records) = (pattern(&item_cursor()), pattern(&record_cursor()));
        let (items, records) = (Regex::new(&items).unwrap(), Regex::new(&records).unwrap());
        for text in
            ["", ":", ":7", ":7168", ":10000", ":-1", ":+1", ":1:0", ":4294967295:65535", ":1:", ":1:000000", ":1:1:1"]
        {
            let text = format!("{id}{text}");
            assert_eq!(items.is_match(&text), text.parse::<ItemCursor>().is_ok(), "{text}");
            assert_eq!(records.is_match(&text), text.parse::<RecordCursor>().is_ok(), "{text}");
        }
    }
}
