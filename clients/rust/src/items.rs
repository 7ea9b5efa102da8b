//! Lists of what a fan-out has, page by page.

use futures::{Stream, TryStreamExt, stream};
use serde::Deserialize;
use uuid::Uuid;

use crate::client::{Fanfold, Page};
use crate::error::ClientError;
use crate::ids::{Item, ItemGroup, expand_ranges};
use crate::models::{ItemsState, TaskResult};

impl Fanfold {
    /// Lists all groups of a fan-out, page by page. New groups appear within seconds.
    pub fn groups(&self, fanout: Uuid) -> impl Stream<Item = Result<ItemGroup, ClientError>> {
        let groups = self.pages::<Groups>(format!("/fanouts/{fanout}/groups"));
        groups.map_ok(|page| stream::iter(page.groups.into_iter().map(Ok))).try_flatten()
    }

    /// Lists all items of a fan-out in that state, page by page, as ids and ranges that acks take.
    pub fn ranges(&self, fanout: Uuid, state: ItemsState) -> impl Stream<Item = Result<String, ClientError>> {
        let path = format!("/fanouts/{fanout}/items?state={}", state.name());
        self.pages::<Items>(path).map_ok(|page| stream::iter(page.items.into_iter().map(Ok))).try_flatten()
    }

    /// Lists all items of a fan-out in that state one by one, page by page.
    pub fn items(&self, fanout: Uuid, state: ItemsState) -> impl Stream<Item = Result<Item, ClientError>> {
        self.ranges(fanout, state)
            .and_then(async |range: String| match expand_ranges(&range) {
                Ok(items) => Ok(stream::iter(items.map(Ok))),
                Err(error) => Err(ClientError::Answer { request: "items".to_owned(), cause: error.to_string() }),
            })
            .try_flatten()
    }

    /// Lists the results of a fan-out's tasks, page by page: of those that succeeded or failed.
    pub fn results(&self, fanout: Uuid) -> impl Stream<Item = Result<TaskResult, ClientError>> {
        let results = self.pages::<Results>(format!("/fanouts/{fanout}/results"));
        results.map_ok(|page| stream::iter(page.results.into_iter().map(Ok))).try_flatten()
    }
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<ItemGroup>,
    next: Option<String>,
}

impl Page for Groups {
    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

#[derive(Deserialize)]
struct Items {
    items: Vec<String>,
    next: Option<String>,
}

impl Page for Items {
    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

#[derive(Deserialize)]
struct Results {
    results: Vec<TaskResult>,
    next: Option<String>,
}

impl Page for Results {
    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}
