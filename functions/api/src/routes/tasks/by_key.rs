//! `GET /tasks?kind=…&key=…`: the task that has a key.

use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::limits::NAME_SHOWN_MAX;
use fanfold::store::tasks::{Key, Within};
use fanfold::text::shorten;
use fanfold_http::{Code, Json, Parameter, Problem, QueryParameter, decoded};
use uuid::Uuid;

use super::{TaskView, view};
use crate::Api;
use crate::routes::control::OfKind;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/tasks", routing::get(get))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/tasks", "findTask", "Returns the task that has a key")
        .says(
            "A key is accepted once per fan-out, or once among tasks that are not items: \
             name the `fanout`, or leave it out. If the policy of the kind has a `scope`, name its value instead. A \
             key that its task has released is found, too, until another task takes it.",
        )
        .needs::<OfKind>()
        .needs::<WithKey>()
        .query::<InScope>()
        .query::<OfFanout>()
        .returns::<TaskView>("The task.")
        .problem(Code::UnknownTask)
        .end();
}

/// `?key=…`
struct WithKey;

impl QueryParameter for WithKey {
    const NAME: &str = "key";
    const ABOUT: &str = "The value of the policy's `key`.";
    type Value = String;

    fn read(text: &str) -> Option<String> {
        decoded(text)
    }

    fn allowed() -> String {
        "percent-encoded UTF-8".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "examples": ["ORD-004711"]})
    }
}

/// `?scope=…`
struct InScope;

impl QueryParameter for InScope {
    const NAME: &str = "scope";
    const ABOUT: &str = "The value of the policy's `scope`, if it has one.";
    type Value = String;

    fn read(text: &str) -> Option<String> {
        decoded(text)
    }

    fn allowed() -> String {
        "percent-encoded UTF-8".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "examples": ["spring"]})
    }
}

/// `?fanout=…`
struct OfFanout;

impl QueryParameter for OfFanout {
    const NAME: &str = "fanout";
    const ABOUT: &str = "The fan-out of the task, if it is an item and the policy has no `scope`.";
    type Value = Uuid;

    fn read(text: &str) -> Option<Uuid> {
        text.parse().ok()
    }

    fn allowed() -> String {
        "the id of a fan-out, a UUID,".to_owned()
    }

    #[cfg(feature = "openapi")]
    fn schema() -> serde_json::Value {
        serde_json::json!({"type": "string", "format": "uuid"})
    }
}

async fn get(
    State(api): State<Arc<Api>>,
    kind: Parameter<OfKind>,
    key: Parameter<WithKey>,
    scope: Parameter<InScope>,
    fanout: Parameter<OfFanout>,
) -> Result<Json<TaskView>, Problem> {
    let unusable = |problem: &str| Problem::new(Code::InvalidParameter, format!("the query parameter {problem}"));
    let kind = kind.value.ok_or_else(|| unusable("`kind` is missing"))?;
    let value = key.value.ok_or_else(|| unusable("`key` is missing"))?;
    let within = match (&scope.value, fanout.value) {
        (Some(_), Some(_)) => {
            return Err(unusable("`fanout` is not allowed beside `scope`: fan-outs share a scope's keys"));
        }
        (Some(scope), None) => Within::Scope(scope),
        (None, Some(fanout)) => Within::Fanout(fanout),
        (None, None) => Within::Single,
    };
    let shown = shorten(&value, NAME_SHOWN_MAX).into_owned();
    let unknown = || Problem::new(Code::UnknownTask, format!("no task of kind `{kind}` has the key `{shown}` there"));
    let key = Key::within(&kind, within, value);
    let owner = api.tasks.owner(&key).await?.ok_or_else(unknown)?;
    let task = api.tasks.get(&owner).await?.ok_or_else(unknown)?;
    Ok(Json(view(&api, task).await?))
}
