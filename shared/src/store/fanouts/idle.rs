//! For how long nothing may happen to a fan-out before it expires.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Fanout, FanoutState};
use crate::clock::Timestamp;
use crate::limits::{IDLE_OPEN, IDLE_SEALED, IDLE_WITH_TASKS};
use crate::policy::Span;
use crate::store::groups::GroupRecord;

/// For how long nothing may happen to a fan-out, before and after it is sealed, before it expires: no items added, none done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct IdleLimit {
    /// While it is open. If not given: 7 days, or 12 weeks where tasks were registered for items that are not done.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::idle_limit"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Span>,
    /// Once it is sealed. If not given: 14 days, or 12 weeks where tasks were registered for items that are not done.
    #[cfg_attr(feature = "openapi", schemars(schema_with = "crate::openapi::idle_limit"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Span>,
}

impl IdleLimit {
    /// The limit of a fan-out in this state; `tasks`: of items for which tasks were registered, which may wait for long.
    fn of(self, state: FanoutState, tasks: bool) -> Duration {
        let (limit, default) = match state {
            FanoutState::Open => (self.open, IDLE_OPEN),
            _ => (self.sealed, IDLE_SEALED),
        };
        limit.map_or(if tasks { IDLE_WITH_TASKS } else { default }, |limit| limit.0)
    }

    /// The shorter of both. Whoever looks as often finds the end of either in time.
    pub(crate) fn least(self) -> Duration {
        self.of(FanoutState::Open, false).min(self.of(FanoutState::Sealed, false))
    }
}

impl Fanout {
    /// Until when it is not idle, as far as its header says.
    #[must_use]
    pub(crate) fn active_until(&self) -> Timestamp {
        self.updated_at.plus(self.idle_limit.of(self.state, false))
    }

    /// The same as far as a group says that is not done.
    #[must_use]
    pub(crate) fn active_in(&self, group: &GroupRecord) -> Timestamp {
        group.updated_at.max(self.updated_at).plus(self.idle_limit.of(self.state, group.tasks))
    }
}
