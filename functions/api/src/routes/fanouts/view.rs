//! A fan-out as the API shows it.

use fanfold::ids::{ItemId, TaskId};
use fanfold::store::fanouts::{Fanout, FanoutState, Mode};
use fanfold::tracking::Progress;
use serde::Serialize;
use uuid::Uuid;

use crate::notice::NoticeView;

/// A fan-out. `complete` is exact unless the fan-out is estimated; `progress` says how exact the counts are.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "Fanout"))]
pub(super) struct FanoutView {
    /// Its id.
    id: Uuid,
    /// Its state.
    state: FanoutState,
    /// `estimated` for an estimated fan-out; absent for others.
    #[serde(skip_serializing_if = "Mode::is_exact")]
    mode: Mode,
    /// Whether it is sealed and every item was acked.
    complete: bool,
    /// Whether it has ended and all counts are final. One that was cancelled, failed or expired has ended when nothing of it is in
    /// progress any more.
    ended: bool,
    /// Items added.
    total: u64,
    /// Items that were acked.
    done: u64,
    /// Those of them that failed.
    failed: u64,
    /// Those of them that are duplicates: another task has their key.
    duplicates: u64,
    /// Those of them that succeeded.
    succeeded: u64,
    /// Items that were not done when the fan-out was cancelled, failed or expired. `done` does not include them.
    missing: u64,
    /// How exact these counts are.
    progress: Exactness,
    /// The user's own name for it.
    user_key: Option<String>,
    /// The item of another fan-out that its end acks.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<ItemId>,
    /// The fan-out whose items it reissues.
    #[serde(skip_serializing_if = "Option::is_none")]
    reissue_of: Option<Uuid>,
    /// The latest fan-out that reissues items of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reissued_as: Option<Uuid>,
    /// The task that Fanfold registers when it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<ThenView>,
    /// When it was opened, in milliseconds since 1970.
    created_at: u64,
    /// When it last changed, in milliseconds since 1970.
    updated_at: u64,
    /// When the notice of its end was delivered, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    notified_at: Option<u64>,
    /// The notice of its end, once it has ended, if that end is reported. Before that, the latest notice of progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<NoticeView>,
}

/// The task that Fanfold registers when a fan-out has ended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema), schemars(rename = "ThenTask"))]
struct ThenView {
    /// Its id.
    id: TaskId,
    /// Its kind.
    kind: String,
    /// Whether it is known to be registered.
    registered: bool,
}

/// How exact `done`, `failed`, `duplicates`, `succeeded` and `missing` are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Exactness {
    /// They are exact.
    Exact,
    /// They count groups that have ended only: more items may be done.
    AtLeast,
    /// They are estimates: something may have been counted twice or not at all.
    Estimated,
}

impl FanoutView {
    /// A fan-out with the progress of its items.
    pub(super) fn new(fanout: Fanout, progress: Progress) -> Self {
        let Progress { done, failed, duplicates, missing, exact } = progress;
        let notice = NoticeView::of_fanout(&fanout);
        let (id, parent) = (fanout.id, fanout.parent);
        let progress = match (fanout.mode, exact) {
            (Mode::Estimated, _) => Exactness::Estimated,
            (Mode::Exact, true) => Exactness::Exact,
            (Mode::Exact, false) => Exactness::AtLeast,
        };
        let (reissue_of, reissued_as) = (fanout.reissue_of(), fanout.reissued_as);
        let registered = fanout.followed.is_some();
        let then = fanout.then.as_ref().map(|then| ThenView { id: then.task(id), kind: then.kind.clone(), registered });
        Self {
            id,
            state: fanout.state,
            mode: fanout.mode,
            complete: fanout.complete(),
            ended: fanout.ended(),
            total: fanout.total,
            done,
            failed,
            duplicates,
            succeeded: done.saturating_sub(failed).saturating_sub(duplicates),
            missing,
            progress,
            user_key: fanout.user_key,
            parent,
            reissue_of,
            reissued_as,
            then,
            created_at: fanout.created_at.0,
            updated_at: fanout.updated_at.0,
            notified_at: fanout.notice.delivered.filter(|_| fanout.ended_at.is_some()).map(|at| at.0),
            notice,
        }
    }

    /// A fan-out of which only the header is known.
    pub(super) fn of_header(fanout: Fanout) -> Self {
        let progress = Progress::of_header(&fanout);
        Self::new(fanout, progress)
    }
}

#[cfg(test)]
mod tests {
    use fanfold::bits::Bits;
    use fanfold::clock::Timestamp;
    use fanfold::store::fanouts::{IdleLimit, Inline, NoticeFacts};
    use fanfold::store::notices::NoticeProgress;

    use super::*;

    fn fanout(total: u64, open_groups: u64, done: u64) -> Fanout {
        Fanout {
            opened_with: total,
            id: Uuid::nil(),
            state: FanoutState::Open,
            mode: Mode::Exact,
            total,
            open_groups,
            done,
            failed: done / 2,
            duplicates: 0,
            missing: 0,
            inline: None,
            user_key: None,
            notify: None,
            notice_facts: NoticeFacts::default(),
            parent: None,
            then: None,
            tasks: None,
            then_due: None,
            followed: None,
            notice: NoticeProgress::default(),
            tolerated: None,
            failures: 0,
            idle_limit: IdleLimit::default(),
            look_at: None,
            producer: None,
            reissued_as: None,
            created_at: Timestamp(1),
            ended_at: None,
            updated_at: Timestamp(2),
        }
    }

    fn counts(view: &FanoutView) -> (u64, u64, u64, Exactness) {
        (view.done, view.failed, view.succeeded, view.progress)
    }

    #[test]
    fn the_header_alone_shows_groups_that_ended() {
        assert_eq!(counts(&FanoutView::of_header(fanout(10_000, 2, 0))), (0, 0, 0, Exactness::AtLeast));
        assert_eq!(counts(&FanoutView::of_header(fanout(10_000, 1, 7))), (7, 3, 4, Exactness::AtLeast));
        assert_eq!(counts(&FanoutView::of_header(fanout(10, 0, 10))), (10, 5, 5, Exactness::Exact));
        let mut pending = Bits::ones(3);
        pending = pending.minus(&[0, 1].into_iter().collect());
        let bits = |slot: usize| std::iter::once(slot).collect();
        let inline = Inline { pending, failed: bits(1), duplicates: bits(0), ..Inline::default() };
        let view = FanoutView::of_header(Fanout { inline: Some(inline), ..fanout(3, 0, 0) });
        assert_eq!((counts(&view), view.duplicates), ((2, 1, 0, Exactness::Exact), 1));
    }

    #[test]
    fn an_estimated_one_shows_what_was_counted() {
        let estimated = |total, state| Fanout { mode: Mode::Estimated, state, failed: 3, ..fanout(total, 0, 7) };
        let open = FanoutView::of_header(estimated(5, FanoutState::Open));
        assert_eq!((counts(&open), open.total, open.missing), ((7, 3, 4, Exactness::Estimated), 5, 0), "below zero");
        let cancelled = FanoutView::of_header(estimated(10, FanoutState::Cancelled));
        assert_eq!((counts(&cancelled), cancelled.missing), ((7, 3, 4, Exactness::Estimated), 3));
    }
}
