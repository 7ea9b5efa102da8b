//! Describes routes: each function describes what its routes take and return, by the types that they read and write.

mod document;
mod operation;
mod problems;

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

pub use operation::Operation;

/// Where schemas of requests are until they are compared with the answers' schemas of the same name.
const REQUESTS: &str = "#/components/requests/";
/// Where schemas are in the document.
const SCHEMAS: &str = "#/components/schemas/";

/// A description in the making.
#[derive(Debug)]
pub struct Describer {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
    responses: Map<String, Value>,
    paths: BTreeMap<&'static str, Map<String, Value>>,
}

impl Default for Describer {
    fn default() -> Self {
        let settings = |path: &'static str| SchemaSettings::draft2020_12().with(|it| it.definitions_path = path.into());
        Self {
            requests: settings(REQUESTS).for_deserialize().into_generator(),
            answers: settings(SCHEMAS).for_serialize().into_generator(),
            responses: Map::new(),
            paths: BTreeMap::new(),
        }
    }
}

impl Describer {
    /// Begins the description of one route; [`Operation::end`] adds it. `id` is its name in generated clients.
    pub fn operation(
        &mut self,
        method: &'static str,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Operation<'_> {
        Operation::new(self, method, path, id, summary)
    }

    fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    fn answer<T: JsonSchema>(&mut self) -> Value {
        self.answers.subschema_for::<T>().to_value()
    }
}
