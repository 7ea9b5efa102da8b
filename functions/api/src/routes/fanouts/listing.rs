//! `GET /fanouts`: all fan-outs, those in some states, or those whose user keys are alike, page by page.

mod parameters;
mod times;

use std::fmt::Write;
use std::sync::Arc;

use axum::extract::State;
use axum::{Router, routing};
use fanfold::clock::Timestamp;
use fanfold::limits::FANOUTS_PER_PAGE_MAX;
use fanfold::store::fanouts::{FanoutState, Listing, UserKeys};
use fanfold_http::{Code, Json, Parameter, Problem, encoded};
use serde::Serialize;

use self::parameters::{Cursor, InStates, Limit, Order, Prefix, UserKey, cursor};
use self::times::{OpenedAfter, OpenedBefore};
use super::view::FanoutView;
use crate::Api;

pub(super) fn router() -> Router<Arc<Api>> {
    Router::new().route("/fanouts", routing::get(list))
}

#[cfg(feature = "openapi")]
pub(super) fn describe(describer: &mut fanfold_http::openapi::Describer) {
    describer
        .operation("GET", "/fanouts", "listFanouts", "Lists fan-outs, page by page")
        .says(
            "Sorted by time of opening, newest first. With `user_key_prefix` sorted by user key, for each user key newest first; `order` \
             is not allowed then. A fan-out appears within seconds of its opening, and may be absent for seconds when its end is \
             decided. It is shown in its present state.",
        )
        .query::<InStates>()
        .query::<OpenedAfter>()
        .query::<OpenedBefore>()
        .query::<Order>()
        .query::<UserKey>()
        .query::<Prefix>()
        .query::<Limit>()
        .query::<Cursor>()
        .returns::<Found>("A page of fan-outs.")
        .end();
}

/// A page of fan-outs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Fanouts"))]
struct Found {
    /// The fan-outs.
    fanouts: Vec<FanoutView>,
    /// The path of the next page, if there may be one. A page may be empty and still have a next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The parameters that say which.
type Filters = (Parameter<InStates>, Parameter<OpenedAfter>, Parameter<OpenedBefore>, Parameter<Order>);

async fn list(
    State(api): State<Arc<Api>>,
    (user_key, prefix): (Parameter<UserKey>, Parameter<Prefix>),
    (states, opened_after, opened_before, order): Filters,
    limit: Parameter<Limit>,
    after: Parameter<Cursor>,
) -> Result<Json<Found>, Problem> {
    if prefix.value.is_some() && order.value.is_some() {
        return Err(invalid("`order`: is not allowed with `user_key_prefix`, which sorts by user key"));
    }
    let listing = Listing {
        user_keys: wanted(user_key.value, prefix.value)?,
        states: states.value.unwrap_or_default(),
        opened_after: opened_after.value.map(Timestamp),
        opened_before: opened_before.value.map(Timestamp),
        oldest_first: order.value == Some(Order::OLDEST),
    };
    if after.value.as_ref().is_some_and(|after| !listing.may_follow(after)) {
        return Err(invalid("`after`: does not belong to this list, the value in a `next` of this list is allowed"));
    }
    let most = limit.value.unwrap_or(FANOUTS_PER_PAGE_MAX);
    let page = api.tracking.fanouts.list(&listing, after.value.as_deref(), most).await?;
    let next = page.next.map(|next| path(&listing, limit.value, &next));
    Ok(Json(Found { fanouts: page.fanouts.into_iter().map(FanoutView::of_header).collect(), next }))
}

fn wanted(user_key: Option<String>, prefix: Option<String>) -> Result<UserKeys, Problem> {
    match (user_key, prefix) {
        (None, None) => Ok(UserKeys::Any),
        (Some(key), None) => Ok(UserKeys::Exactly(key)),
        (None, Some(prefix)) => Ok(UserKeys::Beginning(prefix)),
        (Some(_), Some(_)) => Err(invalid("`user_key_prefix`: is not allowed with `user_key`, one of them is")),
    }
}

fn invalid(problem: &str) -> Problem {
    Problem::new(Code::InvalidParameter, format!("the query parameter {problem}"))
}

/// The path of the page after this sort key.
fn path(listing: &Listing, limit: Option<usize>, after: &[u8]) -> String {
    let (user_key, prefix) = match &listing.user_keys {
        UserKeys::Any => (None, None),
        UserKeys::Exactly(key) => (Some(encoded(key)), None),
        UserKeys::Beginning(prefix) => (None, Some(encoded(prefix))),
    };
    let states: Vec<&str> = listing.states.iter().map(|state| FanoutState::as_str(*state)).collect();
    let parameters = [
        ("user_key", user_key),
        ("user_key_prefix", prefix),
        ("state", (!states.is_empty()).then(|| encoded(&states.join(",")))),
        ("opened_after", listing.opened_after.map(|at| at.0.to_string())),
        ("opened_before", listing.opened_before.map(|at| at.0.to_string())),
        ("order", listing.oldest_first.then(|| Order::OLDEST.to_owned())),
        ("limit", limit.map(|limit| limit.to_string())),
        ("after", Some(cursor(after))),
    ];
    let mut path = "/fanouts".to_owned();
    let mut mark = '?';
    for (name, value) in parameters {
        if let Some(value) = value {
            // Writing to a text cannot fail.
            let _ = write!(path, "{mark}{name}={value}");
            mark = '&';
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_asked_for_what_this_one_was() {
        assert_eq!(path(&Listing::default(), None, &[0xab, 1]), "/fanouts?after=ab01");
        let listing = Listing {
            user_keys: UserKeys::Exactly("a b".to_owned()),
            states: vec![FanoutState::Open, FanoutState::Sealed],
            opened_after: Some(Timestamp(7)),
            opened_before: Some(Timestamp(9)),
            oldest_first: true,
        };
        let expected =
            "/fanouts?user_key=a%20b&state=open%2Csealed&opened_after=7&opened_before=9&order=oldest&limit=5&after=ff";
        assert_eq!(path(&listing, Some(5), &[0xff]), expected);
    }
}
