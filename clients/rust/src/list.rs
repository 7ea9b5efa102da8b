//! Lists of fan-outs.

use futures::{Stream, TryStreamExt, stream};
use serde::Deserialize;

use crate::client::{Fanfold, Page};
use crate::error::ClientError;
use crate::models::{Fanout, State};
use crate::query::encoded;

/// Which fan-outs to list; by default all, newest first. See [`Fanfold::fanouts`].
#[derive(Clone, Debug, Default)]
pub struct ListFanouts {
    /// One of these states; if empty, any.
    pub states: Vec<State>,
    /// Exactly this user key.
    pub user_key: Option<String>,
    /// User keys that begin with this; sorts by user key.
    pub user_key_prefix: Option<String>,
    /// Opened later than this, in milliseconds since 1970.
    pub opened_after: Option<u64>,
    /// Opened earlier than this, in milliseconds since 1970.
    pub opened_before: Option<u64>,
    /// Oldest first, otherwise newest first.
    pub oldest_first: bool,
    /// How many fan-outs a page examines, up to 100.
    pub page: Option<u32>,
}

impl ListFanouts {
    fn path(&self) -> String {
        let states: Vec<&str> = self.states.iter().map(|state| state.name()).collect();
        let parameters = [
            ("state", (!states.is_empty()).then(|| encoded(&states.join(",")))),
            ("user_key", self.user_key.as_deref().map(encoded)),
            ("user_key_prefix", self.user_key_prefix.as_deref().map(encoded)),
            ("opened_after", self.opened_after.map(|at| at.to_string())),
            ("opened_before", self.opened_before.map(|at| at.to_string())),
            ("order", self.oldest_first.then(|| "oldest".to_owned())),
            ("limit", self.page.map(|page| page.to_string())),
        ];
        let given = parameters.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        let query = given.collect::<Vec<_>>().join("&");
        if query.is_empty() { "/fanouts".to_owned() } else { format!("/fanouts?{query}") }
    }
}

impl Fanfold {
    /// Lists the fan-outs that match, page by page. A new fan-out appears within seconds.
    pub fn fanouts(&self, list: &ListFanouts) -> impl Stream<Item = Result<Fanout, ClientError>> + use<'_> {
        let pages = self.pages::<Fanouts>(list.path());
        pages.map_ok(|page| stream::iter(page.fanouts.into_iter().map(Ok))).try_flatten()
    }
}

#[derive(Deserialize)]
struct Fanouts {
    fanouts: Vec<Fanout>,
    next: Option<String>,
}

impl Page for Fanouts {
    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_asked_for_by_its_path() {
        assert_eq!(ListFanouts::default().path(), "/fanouts");
        let list = ListFanouts {
            states: vec![State::Open, State::Sealed],
            user_key: Some("a b/ü".to_owned()),
            opened_before: Some(7),
            oldest_first: true,
            page: Some(5),
            ..ListFanouts::default()
        };
        let expected = "/fanouts?state=open%2Csealed&user_key=a%20b%2F%C3%BC&opened_before=7&order=oldest&limit=5";
        assert_eq!(list.path(), expected);
    }
}
