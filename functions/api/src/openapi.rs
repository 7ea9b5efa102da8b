//! What the routes take and return.

use std::borrow::Cow;

use axum::http::StatusCode;
use fanfold::ids::TaskId;
use fanfold::policy::Policy;
use fanfold::tracking::OpenRequest;
use fanfold_http::Code;
use fanfold_http::Kind;
use fanfold_http::openapi::Describer;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::batches::BatchView;
use crate::fanouts::{AddRequest, Added, Opened, Page, SealRequest, Told};
use crate::health::Health;
use crate::index::Index;
use crate::policies::List;
use crate::tasks::TaskView;
use crate::view::FanoutView;

/// Describes the routes of this function.
pub fn describe(describer: &mut Describer) {
    index(describer);
    fanouts(describer);
    tasks_and_batches(describer);
    policies(describer);
    describer
        .operation("GET", "/health", "health", "Whether the tables can be reached, and which kinds stand still")
        .answers::<Health>(StatusCode::OK, "They can.")
        .end();
}

fn index(describer: &mut Describer) {
    describer
        .operation("GET", "/", "index", "Where to begin")
        .says("A page for browsers (`Accept: text/html`), else JSON.")
        .answers::<Index>(StatusCode::OK, "Paths to begin with.")
        .end();
    describer
        .operation("GET", "/openapi.json", "getDescription", "Describes every route")
        .answers::<Description>(StatusCode::OK, "This description.")
        .end();
}

/// An OpenAPI document.
#[derive(serde::Serialize, JsonSchema)]
struct Description {
    /// The version of OpenAPI.
    openapi: String,
    /// About the API as a whole.
    info: Map<String, Value>,
    /// The routes, by path and method.
    paths: Map<String, Value>,
    /// What the routes share.
    components: Map<String, Value>,
}

fn fanouts(describer: &mut Describer) {
    describer
        .operation("POST", "/fanouts", "openFanout", "Opens a fan-out")
        .idempotent()
        .body::<OpenRequest>()
        .answers::<Opened>(StatusCode::CREATED, "The fan-out, and the groups of the items it was opened with.")
        .with_header("Location", "The fan-out's path.")
        .leads_to("getFanout", "id", "/id")
        .leads_to("addItems", "id", "/id")
        .leads_to("sealFanout", "id", "/id")
        .problem(Code::OutOfRange)
        .problem(Code::InvalidDestination)
        .end();
    describer
        .operation("GET", "/fanouts/{id}", "getFanout", "Returns how far a fan-out has come")
        .path::<Uuid>("id", "The fan-out.")
        .answers::<Told>(StatusCode::OK, "The fan-out as it stands, and its groups, or the first of them.")
        .problem(Code::UnknownFanout)
        .end();
    describer
        .operation("GET", "/fanouts/{id}/groups", "listGroups", "Lists a fan-out's groups, page by page")
        .path::<Uuid>("id", "The fan-out.")
        .paged("group")
        .answers::<Page>(StatusCode::OK, "A page of its groups.")
        .problem(Code::UnknownFanout)
        .end();
    describer
        .operation("POST", "/fanouts/{id}/items", "addItems", "Adds items to an open fan-out")
        .path::<Uuid>("id", "The fan-out.")
        .idempotent()
        .body::<AddRequest>()
        .answers::<Added>(StatusCode::CREATED, "The groups of the items.")
        .problem(Code::UnknownFanout)
        .problem(Code::FanoutNotOpen)
        .problem(Code::OutOfRange)
        .end();
    describer
        .operation("POST", "/fanouts/{id}/seal", "sealFanout", "Declares that no more items come")
        .says("Sealing a fan-out again changes nothing.")
        .path::<Uuid>("id", "The fan-out.")
        .optional_body::<SealRequest>()
        .answers::<FanoutView>(StatusCode::OK, "The fan-out as it stands then: it may be complete.")
        .problem(Code::UnknownFanout)
        .end();
}

fn tasks_and_batches(describer: &mut Describer) {
    describer
        .operation("GET", "/tasks/{id}", "getTask", "Returns what became of a task")
        .path::<TaskId>("id", "The task.")
        .answers::<TaskView>(StatusCode::OK, "The task as it stands.")
        .leads_to("getBatch", "id", "/batch")
        .problem(Code::UnknownTask)
        .end();
    describer
        .operation("GET", "/batches/{id}", "getBatch", "Returns a batch's members and their outcomes")
        .path::<Uuid>("id", "The batch.")
        .answers::<BatchView>(StatusCode::OK, "The batch as it stands.")
        .problem(Code::UnknownBatch)
        .end();
}

fn policies(describer: &mut Describer) {
    describer
        .operation("GET", "/policies", "listPolicies", "Lists all policies")
        .answers::<List>(StatusCode::OK, "The policies.")
        .end();
    describer
        .operation("GET", "/policies/{kind}", "getPolicy", "Returns the policy of a kind")
        .path::<Kind>("kind", "The kind of task.")
        .answers::<Policy>(StatusCode::OK, "The policy, with what was left out when it was given.")
        .problem(Code::UnknownPolicy)
        .end();
    describer
        .operation("PUT", "/policies/{kind}", "putPolicy", "Stores the policy of a kind")
        .says("Replaces the kind's earlier policy. Workers may use that one for some seconds more.")
        .path::<Kind>("kind", "The kind of task.")
        .body::<PolicyBody>()
        .answers::<Policy>(StatusCode::OK, "The policy as it is stored.")
        .leads_to("getPolicy", "kind", "/kind")
        .problem(Code::InvalidPolicy)
        .end();
}

/// A policy whose kind may be left out: the path names it.
struct PolicyBody;

impl JsonSchema for PolicyBody {
    fn schema_name() -> Cow<'static, str> {
        "PolicyBody".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Policy::json_schema(generator);
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|field| field != "kind");
        }
        let description = "A policy. Its kind may be left out; it is the one that the path names.";
        schema.insert("description".to_owned(), description.into());
        schema
    }
}
