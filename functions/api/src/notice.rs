//! The state of a notice, as the API shows it.

use fanfold::store::fanouts::{Fanout, Report};
use fanfold::store::notices::NoticeProgress;
use serde::Serialize;

/// The state of a notice.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Notice"))]
pub(crate) struct NoticeView {
    /// Its state.
    state: NoticeState,
    /// For a notice of progress: the percentage of the fan-out's items that it reports as done.
    #[serde(skip_serializing_if = "Option::is_none")]
    percentage: Option<String>,
    /// How many deliveries were tried.
    tries: u32,
    /// When the next try is due, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_at: Option<u64>,
    /// When it was given up, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    given_up_at: Option<u64>,
    /// The error of the last try that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The state of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum NoticeState {
    /// It is not delivered yet.
    Pending,
    /// It was delivered.
    Delivered,
    /// It was given up, and is in the dead-letter queue.
    Undeliverable,
}

impl NoticeView {
    /// The notice of a fan-out's end once that is to be reported, and before that of the percentage of its items that it reached last.
    pub(crate) fn of_fanout(fanout: &Fanout) -> Option<Self> {
        let percentage = match fanout.report()? {
            Report::Progress(reached) => Some(reached.percentage.to_string()),
            Report::End(_) => None,
        };
        Some(Self { percentage, ..Self::of(&fanout.notice) })
    }

    pub(crate) fn of(notice: &NoticeProgress) -> Self {
        let state = match (notice.delivered, notice.given_up) {
            (Some(_), _) => NoticeState::Delivered,
            (None, Some(_)) => NoticeState::Undeliverable,
            (None, None) => NoticeState::Pending,
        };
        Self {
            state,
            percentage: None,
            tries: notice.tries,
            next_at: notice.due.filter(|_| !notice.over()).map(|at| at.0),
            given_up_at: notice.given_up.map(|at| at.0),
            error: notice.error.clone(),
        }
    }
}
