//! Schemas of what producers read.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::limits::FUNCTION_BYTES_MAX;
use crate::producing::{BUCKET, FUNCTION};

pub(crate) fn function(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": FUNCTION_BYTES_MAX, "pattern": FUNCTION})
}

pub(crate) fn bucket(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": BUCKET})
}
