//! The body of `PUT /policies/{kind}`, as it is described.

use std::borrow::Cow;

use fanfold::policy::Policy;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// A policy whose kind may be left out: the path names it.
pub(super) struct PolicyBody;

impl JsonSchema for PolicyBody {
    fn schema_name() -> Cow<'static, str> {
        "PolicyBody".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Policy::json_schema(generator);
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|field| field != "kind");
        }
        let description = "A policy. `kind` may be left out, since the path names it.";
        schema.insert("description".to_owned(), description.into());
        schema
    }
}
