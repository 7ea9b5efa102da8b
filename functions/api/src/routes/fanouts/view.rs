//! A fan-out as the API shows it.

use fanfold::limits::GROUP_ITEMS_MAX;
use fanfold::store::fanouts::{Fanout, FanoutState};
use fanfold::tracking::Progress;
use serde::Serialize;
use uuid::Uuid;

use crate::notice::NoticeView;

/// A fan-out. Completion is exact, progress is not always.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Fanout"))]
pub(super) struct FanoutView {
    /// Its id.
    id: Uuid,
    /// How far it has come.
    state: FanoutState,
    /// Whether it is sealed and every item was acked.
    complete: bool,
    /// Items added.
    total: u64,
    /// Items that were acked.
    done: u64,
    /// Those of them that failed.
    failed: u64,
    /// Those of them that were dropped, because another task has their key.
    duplicates: u64,
    /// Those of them that succeeded.
    succeeded: u64,
    /// Whether these counts are exact.
    progress: Exactness,
    /// The producer's own name for it.
    user_key: Option<String>,
    /// When it was opened, in milliseconds since 1970.
    created_at: u64,
    /// When it last changed, in milliseconds since 1970.
    updated_at: u64,
    /// When the notice of its end was delivered, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    notified_at: Option<u64>,
    /// The notice of its end, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<NoticeView>,
}

/// Whether `done`, `failed`, `duplicates` and `succeeded` are exact, or may lag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Exactness {
    /// They are exact.
    Exact,
    /// They may lag.
    BestEffort,
}

impl FanoutView {
    /// A fan-out with the progress of its items, which comes from an index and may be wrong. The
    /// header is right, and each of its open groups has at least one item that is not done.
    pub(super) fn new(fanout: Fanout, progress: Progress) -> Self {
        let exact = fanout.inline.is_some() || fanout.open_groups == 0;
        let most = if exact { fanout.total } else { fanout.total.saturating_sub(fanout.open_groups) };
        let done = progress.done.clamp(least_done(&fanout), most);
        let failed = progress.failed.min(done);
        let duplicates = progress.duplicates.min(done - failed);
        let tells = fanout.complete() && fanout.notify.is_some();
        let notice = tells.then(|| NoticeView::of(&fanout.notice));
        Self {
            id: fanout.id,
            state: fanout.state,
            complete: fanout.complete(),
            total: fanout.total,
            done,
            failed,
            duplicates,
            succeeded: done - failed - duplicates,
            progress: if exact { Exactness::Exact } else { Exactness::BestEffort },
            user_key: fanout.user_key,
            created_at: fanout.created_at.0,
            updated_at: fanout.updated_at.0,
            notified_at: fanout.notice.delivered.map(|at| at.0),
            notice,
        }
    }

    /// A fan-out of which only the header is known, without a look at the groups.
    pub(super) fn of_header(fanout: Fanout) -> Self {
        let progress = Progress::of_header(&fanout, least_done(&fanout));
        Self::new(fanout, progress)
    }
}

/// Items that are done for certain: those of all groups that are not open.
fn least_done(fanout: &Fanout) -> u64 {
    match fanout.inline {
        Some(_) => 0,
        None => fanout.total.saturating_sub(fanout.open_groups.saturating_mul(u64::from(GROUP_ITEMS_MAX))),
    }
}

#[cfg(test)]
mod tests {
    use fanfold::bits::Bits;
    use fanfold::clock::Timestamp;
    use fanfold::store::fanouts::Inline;
    use fanfold::store::notices::NoticeProgress;

    use super::*;

    fn fanout(total: u64, open_groups: u64, failed: u64) -> Fanout {
        Fanout {
            opened_with: total,
            id: Uuid::nil(),
            state: FanoutState::Open,
            total,
            open_groups,
            failed,
            duplicates: 0,
            inline: None,
            user_key: None,
            notify: None,
            notice: NoticeProgress::default(),
            cursor: 0,
            created_at: Timestamp(1),
            updated_at: Timestamp(2),
        }
    }

    fn counts(view: &FanoutView) -> (u64, u64, u64, Exactness) {
        (view.done, view.failed, view.succeeded, view.progress)
    }

    #[test]
    fn an_index_that_lags_shows_nothing_impossible() {
        let view = |total, open, done, failed| {
            FanoutView::new(fanout(total, open, 0), Progress { done, failed, duplicates: 0 })
        };
        assert_eq!(counts(&view(10, 2, 5, 2)), (5, 2, 3, Exactness::BestEffort));
        assert_eq!(counts(&view(10, 2, 10, 0)), (8, 0, 8, Exactness::BestEffort), "no index entry yet");
        assert_eq!(counts(&view(10, 2, 1, 4)), (1, 1, 0, Exactness::BestEffort));
        assert_eq!(counts(&view(20_000, 1, 0, 0)).0, 20_000 - 7_168, "the other groups ended");
        assert_eq!(counts(&view(10, 0, 10, 3)), (10, 3, 7, Exactness::Exact));
        let view = FanoutView::new(fanout(10, 2, 0), Progress { done: 5, failed: 2, duplicates: 9 });
        assert_eq!((counts(&view), view.duplicates), ((5, 2, 0, Exactness::BestEffort), 3));
    }

    #[test]
    fn the_header_alone_shows_the_least() {
        assert_eq!(counts(&FanoutView::of_header(fanout(10_000, 2, 0))), (0, 0, 0, Exactness::BestEffort));
        assert_eq!(counts(&FanoutView::of_header(fanout(10_000, 1, 7))), (2_832, 7, 2_825, Exactness::BestEffort));
        let mut pending = Bits::ones(3);
        pending = pending.minus(&[0, 1].into_iter().collect());
        let inline = Inline { pending, failed: [1].into_iter().collect(), duplicates: [0].into_iter().collect() };
        let view = FanoutView::of_header(Fanout { inline: Some(inline), ..fanout(3, 0, 0) });
        assert_eq!((counts(&view), view.duplicates), ((2, 1, 0, Exactness::Exact), 1));
    }
}
