//! `GET /fanouts?user_key=…`: the fan-outs with a user key, or with user keys that begin alike, page by page.

mod parameters;

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::limits::FANOUTS_PER_PAGE_MAX;
use fanfold::store::fanouts::{Fanout, UserKeys};
use fanfold_http::{Code, Json, Parameter, Problem, encoded};
use serde::Serialize;

use self::parameters::{Cursor, InState, Limit, OpenedAfter, OpenedBefore, Prefix, UserKey, cursor};
use super::view::FanoutView;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts", routing::get(list))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/fanouts", "listFanouts", "Lists the fan-outs with a user key, or a prefix of it, page by page")
        .says(
            "Either `user_key` or `user_key_prefix` is given. They are sorted by user key, those with the same one newest first. A \
             fan-out is listed within seconds of its opening, and shown as it stands.",
        )
        .query::<UserKey>()
        .query::<Prefix>()
        .query::<InState>()
        .query::<OpenedAfter>()
        .query::<OpenedBefore>()
        .query::<Limit>()
        .query::<Cursor>()
        .returns::<Found>("A page of them.")
        .end();
}

/// Fan-outs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Fanouts"))]
struct Found {
    /// The fan-outs.
    fanouts: Vec<FanoutView>,
    /// The path of the next page, if there may be more. A page may be empty although there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Which of the fan-outs with these user keys.
#[derive(Clone, Copy, Debug)]
struct Filter {
    state: Option<&'static str>,
    after: Option<u64>,
    before: Option<u64>,
}

impl Filter {
    fn takes(&self, fanout: &Fanout) -> bool {
        let created_at = fanout.created_at.0;
        self.state.is_none_or(|state| fanout.state.as_str() == state)
            && self.after.is_none_or(|after| created_at > after)
            && self.before.is_none_or(|before| created_at < before)
    }
}

/// The parameters that say which, for the next page.
type Filters = (Parameter<InState>, Parameter<OpenedAfter>, Parameter<OpenedBefore>);

async fn list(
    State(api): State<Arc<Api>>,
    (user_key, prefix): (Parameter<UserKey>, Parameter<Prefix>),
    (state, opened_after, opened_before): Filters,
    limit: Parameter<Limit>,
    after: Parameter<Cursor>,
) -> Result<Json<Found>, Problem> {
    let keys = wanted(user_key.value, prefix.value)?;
    let filter = Filter { state: state.value, after: opened_after.value, before: opened_before.value };
    if after.value.as_ref().is_some_and(|after| !keys.may_follow(after)) {
        return Err(invalid("`after`: is of no page of these fan-outs, a `next` of theirs is allowed"));
    }
    let most = limit.value.unwrap_or(FANOUTS_PER_PAGE_MAX);
    let page = api.tracking.fanouts.named(&keys, after.value, most).await?;
    let next = page.next.map(|next| path(&keys, filter, limit.value, &next));
    let fanouts = page.fanouts.into_iter().filter(|fanout| filter.takes(fanout));
    Ok(Json(Found { fanouts: fanouts.map(FanoutView::of_header).collect(), next }))
}

fn wanted(user_key: Option<String>, prefix: Option<String>) -> Result<UserKeys, Problem> {
    match (user_key, prefix) {
        (Some(key), None) => Ok(UserKeys::Exactly(key)),
        (None, Some(prefix)) => Ok(UserKeys::Beginning(prefix)),
        (None, None) => Err(invalid("`user_key`: is missing, it or `user_key_prefix` is required")),
        (Some(_), Some(_)) => Err(invalid("`user_key_prefix`: is there with `user_key`, one of them is allowed")),
    }
}

fn invalid(problem: &str) -> Problem {
    Problem::new(Code::InvalidParameter, format!("the query parameter {problem}"))
}

/// The path of the page after this sort key.
fn path(keys: &UserKeys, filter: Filter, limit: Option<usize>, after: &[u8]) -> String {
    let mut path = match keys {
        UserKeys::Exactly(key) => format!("/fanouts?user_key={}", encoded(key)),
        UserKeys::Beginning(prefix) => format!("/fanouts?user_key_prefix={}", encoded(prefix)),
    };
    let others = [
        ("state", filter.state.map(str::to_owned)),
        ("opened_after", filter.after.map(|at| at.to_string())),
        ("opened_before", filter.before.map(|at| at.to_string())),
        ("limit", limit.map(|limit| limit.to_string())),
        ("after", Some(cursor(after))),
    ];
    for (name, value) in others {
        if let Some(value) = value {
            // Writing to a text cannot fail.
            let _ = write!(path, "&{name}={value}");
        }
    }
    path
}
