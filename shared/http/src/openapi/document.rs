//! The whole document: routes, and the schemas they refer to.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Describer, REQUESTS, SCHEMAS};

type Schemas = Map<String, Value>;

impl Describer {
    /// The document. `info` and `servers` are as OpenAPI defines them.
    #[must_use]
    pub fn document(mut self, info: &Value, servers: &Value) -> Value {
        let requests = self.requests.take_definitions(true);
        let mut schemas = self.answers.take_definitions(true);
        let apart = apart(&requests, &schemas);
        for (name, mut schema) in requests {
            point_to_document(&mut schema, &apart);
            schemas.insert(name_in_document(&name, &apart), schema);
        }
        let mut paths = json!(self.paths);
        point_to_document(&mut paths, &apart);
        json!({
            "openapi": "3.1.0",
            "info": info,
            "servers": servers,
            "security": [{"sigv4": []}, {}],
            "paths": paths,
            "components": {
                "responses": self.responses,
                "schemas": schemas,
                "securitySchemes": {
                    "sigv4": {
                        "type": "apiKey",
                        "in": "header",
                        "name": "Authorization",
                        "description": "The deployed API requires requests that are signed with AWS Signature Version 4.",
                        "x-amazon-apigateway-authtype": "awsSigv4",
                    },
                },
            },
        })
    }
}

/// Names of schemas that differ between requests and answers: a field that may be left out of a request is always there in an
/// answer. A schema that refers to one of these differs, too.
fn apart(requests: &Schemas, answers: &Schemas) -> BTreeSet<String> {
    let mut apart = BTreeSet::new();
    loop {
        let differs = |(name, schema): &(&String, &Value)| {
            let mut schema = Value::clone(schema);
            point_to_document(&mut schema, &apart);
            answers.get(*name).is_some_and(|answer| *answer != schema)
        };
        let found: BTreeSet<String> = requests.iter().filter(differs).map(|(name, _)| name.clone()).collect();
        if found == apart {
            return apart;
        }
        apart = found;
    }
}

/// The name of a request's schema in the document.
fn name_in_document(name: &str, apart: &BTreeSet<String>) -> String {
    if apart.contains(name) { format!("{name}Request") } else { name.to_owned() }
}

/// Rewrites every reference to a schema of requests to its place in the document.
fn point_to_document(value: &mut Value, apart: &BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match field.as_str().and_then(|text| text.strip_prefix(REQUESTS)) {
                    Some(name) if key == "$ref" => {
                        *field = format!("{SCHEMAS}{}", name_in_document(name, apart)).into()
                    }
                    _ => point_to_document(field, apart),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| point_to_document(value, apart)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_that_differ_are_kept_apart_and_so_are_those_that_refer_to_them() {
        let same = json!({"type": "string"});
        let outer = |place: &str| json!({"items": {"$ref": format!("{place}Inner")}});
        let requests = json!({"Same": same, "Outer": outer(REQUESTS), "Inner": {"required": []}});
        let answers = json!({"Same": same, "Outer": outer(SCHEMAS), "Inner": {"required": ["x"]}});
        let schemas = |value: &Value| value.as_object().cloned().unwrap_or_default();
        let apart = apart(&schemas(&requests), &schemas(&answers));
        assert_eq!(apart.iter().collect::<Vec<_>>(), ["Inner", "Outer"]);
        let mut reference = outer(REQUESTS);
        point_to_document(&mut reference, &apart);
        assert_eq!(reference, json!({"items": {"$ref": "#/components/schemas/InnerRequest"}}));
    }
}
