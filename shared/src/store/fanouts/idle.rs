//! For how long nothing may happen to a fan-out before it expires.

use std::time::Duration;

use futures::future::try_join_all;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::opened::{IndexState, OPENED, STANDS, looked_at_by};
use super::{Fanout, FanoutState, Fanouts};
use crate::aws::attributes::{Reader, binary, time};
use crate::aws::{Extent, Range, Section, StoreError};
use crate::clock::Timestamp;
#[cfg(doc)]
use crate::limits::FEW_SHARDS;
use crate::limits::{IDLE_OPEN, IDLE_SEALED, IDLE_WITH_TASKS};
use crate::policy::Span;
use crate::store::groups::GroupRecord;
use crate::store::shards::few;

/// The index of fan-outs that are watched, by when a sweep looks next whether they are idle: its partition key, and its sort
/// key. New fan-outs have only the sort key, and so are not in it.
pub(super) const IDLE: &str = "idle";
pub(super) const LOOK_AT: &str = "look_at";

/// How long a fan-out may be without activity (no item added, none done) before it expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IdleLimit {
    /// While it is open. By default 7 days, or 12 weeks if items that are not done have tasks, or fan-outs under
    /// them, or are the `then` tasks of fan-outs.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::idle_limit"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Span>,
    /// Once it is sealed. By default 14 days, or 12 weeks in the same cases.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::idle_limit"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Span>,
}

impl IdleLimit {
    /// The limit of a fan-out in this state; `long`: if items are not done that have tasks, or fan-outs under them, or
    /// are the `then` tasks of fan-outs, since these may take long.
    fn of(self, state: FanoutState, long: bool) -> Duration {
        let (limit, default) = match state {
            FanoutState::Open => (self.open, IDLE_OPEN),
            _ => (self.sealed, IDLE_SEALED),
        };
        limit.map_or(if long { IDLE_WITH_TASKS } else { default }, |limit| limit.0)
    }

    /// The shorter of both: looks at this pace find the end of either in time.
    pub(crate) fn least(self) -> Duration {
        self.of(FanoutState::Open, false).min(self.of(FanoutState::Sealed, false))
    }

    /// When a sweep first looks at a fan-out that was opened then: after the usual limit, for which it need not be watched, or
    /// earlier if its own limit is shorter.
    pub(crate) fn first_look(self, opened: Timestamp) -> Timestamp {
        opened.plus(self.least().min(Self::default().least()))
    }
}

impl Fanouts {
    /// How many fan-outs are watched. The index may lag.
    ///
    /// # Errors
    /// The table cannot be read.
    pub async fn watched_extent(&self) -> Result<Extent, StoreError> {
        self.table.extent(IDLE).await
    }

    /// Ids of the fan-outs of a shard, of [`FEW_SHARDS`], whose next look is due. At most `limit` that were not looked at since they
    /// were opened, and if any are `watched`, as many of these.
    ///
    /// # Errors
    /// The table cannot be read, or a record is corrupt.
    pub async fn to_look_at(&self, shard: u64, limit: usize, watched: bool) -> Result<Vec<Uuid>, StoreError> {
        let now = self.table.world.now();
        let new = Section {
            range: Some((OPENED, Range::UpTo(binary(&looked_at_by(now))))),
            limit,
            ..Section::keyed(OPENED, STANDS, IndexState::New.nth(shard))
        };
        let of_watched =
            || Section { range: Some((LOOK_AT, Range::UpTo(time(now)))), limit, ..Section::all(IDLE, shard) };
        let sections = [new].into_iter().chain(watched.then(of_watched));
        let found = try_join_all(sections.map(|section| self.table.query(section))).await?;
        found.iter().flatten().map(|item| Reader::new("fanouts", "id", item).parsed("id")).collect()
    }

    /// Sets the next look at this fan-out to `then`: from now on it is watched.
    ///
    /// # Errors
    /// The table cannot be written.
    pub async fn look_again(&self, fanout: &Fanout, then: Timestamp) -> Result<(), StoreError> {
        let change = self.table.change("id", fanout.id).set(LOOK_AT, time(then)).set(IDLE, few(fanout.id));
        let change = change.set(STANDS, IndexState::Watched.key(fanout.id));
        // The attribute exists until the end is decided.
        change.when_same(LOOK_AT, fanout.look_at.map(time)).when_present(LOOK_AT).send().await.map(|_| ())
    }
}

impl Fanout {
    /// Until when it counts as active, as far as its header shows.
    #[must_use]
    pub(crate) fn active_until(&self) -> Timestamp {
        self.updated_at.plus(self.idle_limit.of(self.state, false))
    }

    /// The same as far as an unfinished group shows.
    #[must_use]
    pub(crate) fn active_in(&self, group: &GroupRecord) -> Timestamp {
        group.updated_at.max(self.updated_at).plus(self.idle_limit.of(self.state, group.tasks || group.children))
    }
}
