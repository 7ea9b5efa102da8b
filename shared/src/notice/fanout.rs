//! What notices of fan-outs report beside how one ended.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Event, Notice};
use crate::clock::Timestamp;
use crate::ids::derived;
use crate::store::fanouts::{Fanout, ProgressPercentage, Reached};

/// How far a fan-out had come when it was found to have reached a percentage of its items. There were at least so many done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FanoutProgress {
    /// The fan-out.
    pub fanout: Uuid,
    /// The producer's own name for it.
    pub user_key: Option<String>,
    /// The percentage, as text such as `50%`.
    pub percentage: ProgressPercentage,
    /// Items added.
    pub total: u64,
    /// Items that were done: the three that follow.
    pub done: u64,
    /// Items that succeeded.
    pub succeeded: u64,
    /// Items that failed.
    pub failed: u64,
    /// Items that are duplicates.
    pub duplicates: u64,
    /// When it was opened, epoch milliseconds.
    pub opened_at: u64,
}

/// Which items are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingItems {
    /// Ids, and ranges of them, as acks take them.
    pub items: Vec<String>,
    /// How many more are missing, which are not named.
    #[serde(default)]
    pub more: u64,
}

impl MissingItems {
    /// What was found of a fan-out.
    pub(super) fn of(fanout: &Fanout) -> Option<Self> {
        let named = fanout.notice_facts.missing.as_ref()?;
        Some(Self { items: named.names(fanout.id), more: fanout.missing.saturating_sub(named.count()) })
    }
}

impl Notice {
    /// The notice of the percentage of its items that a fan-out had reached then.
    #[must_use]
    pub fn progress(fanout: &Fanout, reached: &Reached) -> Self {
        let Reached { percentage, at, done, failed, duplicates } = *reached;
        let event = Event::FanoutProgress(FanoutProgress {
            fanout: fanout.id,
            user_key: fanout.user_key.clone(),
            percentage,
            total: fanout.total,
            done,
            succeeded: done.saturating_sub(failed).saturating_sub(duplicates),
            failed,
            duplicates,
            opened_at: fanout.created_at.0,
        });
        let id = derived::progress_notice(fanout.id, percentage.ten_thousandths());
        Self::new(id, format!("/fanouts/{}", fanout.id), Timestamp(at), event)
    }
}
