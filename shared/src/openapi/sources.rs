//! Schemas of what producers read.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::limits::{FUNCTION_BYTES_MAX, OBJECT_KEY_BYTES_MAX, OBJECT_KEYS_BYTES_MAX, OBJECT_KEYS_MAX};
use crate::producing::{BUCKET, FUNCTION};

pub(crate) fn function(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": FUNCTION_BYTES_MAX, "pattern": FUNCTION})
}

/// A function, or nothing.
pub(crate) fn optional_function(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "maxLength": FUNCTION_BYTES_MAX, "pattern": FUNCTION})
}

pub(crate) fn bucket(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": BUCKET})
}

/// Keys of objects. They are limited all together, too.
pub(crate) fn object_keys(_: &mut SchemaGenerator) -> Schema {
    let key = json_schema!({
        "type": "string", "minLength": 1, "maxLength": OBJECT_KEY_BYTES_MAX, "x-max-bytes": OBJECT_KEY_BYTES_MAX
    });
    json_schema!({
        "type": ["array", "null"], "minItems": 1, "maxItems": OBJECT_KEYS_MAX, "uniqueItems": true, "items": key,
        "x-max-bytes": OBJECT_KEYS_BYTES_MAX
    })
}
